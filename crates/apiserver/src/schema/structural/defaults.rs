//! Defaults must be valid themselves, and contain nothing that would be pruned.

use crate::field::{FieldError, Path};
use crate::schema::cel::Rules;
use crate::schema::embedded::check_embedded;
use crate::schema::prune::{is_meta, prune_value_of};
use crate::schema::values::check_values;
use crate::schema::{Schema, coerce};
use serde_json::Value;
use std::sync::atomic::AtomicBool;

/// Reports defaults that an object with them would be refused for.
pub(super) fn check(schema: &Schema, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, true, false, at, &mut errors);
    errors
}

fn walk(schema: &Schema, root: bool, in_metadata: bool, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let resource = root || schema.embedded_resource;
    if let Some(default) = &schema.default {
        check_default(default, schema, resource, in_metadata && !resource, &at.field("default"), errors);
    }
    if let Some(items) = &schema.items {
        walk(items, false, in_metadata, &at.field("items"), errors);
    }
    let at = at.field("properties");
    for (name, property) in &schema.properties {
        let in_metadata = (in_metadata && !resource) || (resource && is_meta(name));
        walk(property, false, in_metadata, &at.key(name), errors);
    }
}

fn check_default(
    default: &Value,
    schema: &Schema,
    resource: bool,
    in_metadata: bool,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !in_metadata {
        let mut pruned = default.clone();
        prune_value_of(&mut pruned, schema);
        if pruned != *default {
            errors.push(FieldError::invalid(at, default, "must not have unknown fields"));
        }
        if let Err(error) = coerce::check_embedded_metadata(default.clone(), schema, at) {
            errors.push(error);
            return;
        }
        let mut embedded = check_embedded(default, schema, at);
        if !embedded.is_empty() {
            errors.append(&mut embedded);
            return;
        }
    }
    let mut wrong = check_values(default, None, schema, &at.to_string());
    if !wrong.is_empty() {
        errors.append(&mut wrong);
        return;
    }
    let Some(rules) = Rules::compile(schema, resource) else { return };
    let waiting = AtomicBool::new(false);
    // A default stands for the value before and after, and for a value that was not there before.
    let mut failed = rules.check(default, Some(default), schema, at, &mut Vec::new(), &waiting);
    if failed.is_empty() {
        failed = rules.check(default, None, schema, at, &mut Vec::new(), &waiting);
    }
    errors.append(&mut failed);
}
