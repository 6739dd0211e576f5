//! Removes what a kind's schema does not know.
//!
//! Pruning is idempotent and touches nothing the schema specifies. The paths it returns are those that
//! `fieldValidation=Strict` refuses and `Warn` warns about.

use super::{Additional, Schema};
use crate::field::Path;
use serde_json::{Map, Value};

/// Removes fields unknown to `schema` from an object and returns their paths, sorted.
///
/// `apiVersion`, `kind` and `metadata` of the object itself and of embedded resources stay as they are;
/// what may stand in `metadata` is the business of [`super::coerce`].
pub(crate) fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_resource(object, schema, &mut unknown);
    unknown.sort_unstable();
    unknown
}

/// Removes unknown fields from a part of an object.
pub(super) fn prune_value_of(value: &mut Value, schema: &Schema) {
    prune_value(value, schema, &Path::ROOT, &mut Vec::new());
}

fn prune_resource(object: &mut Value, schema: &Schema, unknown: &mut Vec<String>) {
    if let Value::Object(map) = object {
        prune_map(map, schema, true, &Path::ROOT, unknown);
    }
}

/// Whether the field is one that every resource has, whatever its schema says.
pub(super) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn prune_value(value: &mut Value, schema: &Schema, at: &Path<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => prune_map(map, schema, schema.embedded_resource, at, unknown),
        Value::Array(items) => match &schema.items {
            Some(item_schema) => {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_item(item, item_schema, schema.preserve_unknown, &at.index(index), unknown);
                }
            }
            None if schema.preserve_unknown => {}
            None => {
                for (index, item) in items.iter_mut().enumerate() {
                    clear(item, &at.index(index), unknown);
                }
            }
        },
        _ => {}
    }
}

/// Items of a list that preserves unknown fields preserve theirs too, unless they hold specified ones.
fn prune_item(item: &mut Value, schema: &Schema, kept: bool, at: &Path<'_>, unknown: &mut Vec<String>) {
    match item {
        Value::Object(map) if kept => prune_known(map, schema, schema.embedded_resource, at, unknown),
        Value::Array(items) if kept => {
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_item(item, item_schema, true, &at.index(index), unknown);
                }
            }
        }
        other => prune_value(other, schema, at, unknown),
    }
}

fn prune_map(
    map: &mut Map<String, Value>,
    schema: &Schema,
    resource: bool,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) {
    prune_known(map, schema, resource, at, unknown);
    if schema.preserve_unknown || !matches!(schema.additional, Additional::None) {
        return;
    }
    map.retain(|name, _| {
        let known = schema.properties.contains_key(name) || (resource && is_meta(name));
        if !known {
            unknown.push(at.field(name).to_string());
        }
        known
    });
}

/// Descends into the fields that the schema specifies.
fn prune_known(
    map: &mut Map<String, Value>,
    schema: &Schema,
    resource: bool,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) {
    for (name, value) in map.iter_mut() {
        if resource && is_meta(name) {
            continue;
        }
        if let Some(property) = schema.properties.get(name) {
            prune_value(value, property, &at.field(name), unknown);
        } else {
            match &schema.additional {
                Additional::Values(values) => prune_value(value, values, &at.field(name), unknown),
                // `additionalProperties: true` allows any value but specifies none.
                Additional::Any => clear(value, &at.field(name), unknown),
                Additional::None => {}
            }
        }
    }
}

/// Prunes a value that no schema specifies: its objects lose all their fields.
fn clear(value: &mut Value, at: &Path<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            unknown.extend(map.keys().map(|name| at.field(name).to_string()));
            map.clear();
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                clear(item, &at.index(index), unknown);
            }
        }
        _ => {}
    }
}
