//! Fills in the defaults a kind's schema gives.
//!
//! Defaulting is idempotent. It runs on every write, before validation, and on every read, because a
//! schema may have gained defaults after an object was stored.

use super::{Additional, Schema};
use serde_json::{Map, Value};

/// Gives absent fields their defaults, throughout the object.
///
/// A `null` where the schema is not nullable counts as absent: it is replaced by the default, or removed
/// if there is none. (In a list, where removing would shift the others, it stays and fails validation.)
pub(crate) fn apply_defaults(value: &mut Value, schema: &Schema) {
    default_value(value, schema, Nulls::Dropped);
}

/// The same for the outcome of a server-side apply, in which a `null` without a default stays: an apply that takes the last
/// field out of an object that it names leaves one, and validation has its say on it.
pub(crate) fn apply_defaults_to_applied(value: &mut Value, schema: &Schema) {
    default_value(value, schema, Nulls::Kept);
}

/// What becomes of a `null` where the schema is not nullable and has no default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Dropped,
    Kept,
}

fn default_value(value: &mut Value, schema: &Schema, nulls: Nulls) {
    match value {
        Value::Object(map) => default_map(map, schema, nulls),
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for item in items {
                if item.is_null()
                    && !item_schema.nullable
                    && let Some(default) = &item_schema.default
                {
                    *item = default.clone();
                }
                default_value(item, item_schema, nulls);
            }
        }
        _ => {}
    }
}

fn default_map(map: &mut Map<String, Value>, schema: &Schema, nulls: Nulls) {
    map.retain(|name, value| {
        !value.is_null()
            || nulls == Nulls::Kept
            || schema_of(schema, name).is_none_or(|field| field.nullable || field.default.is_some())
    });
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else { continue };
        match map.get_mut(name) {
            Some(value) if value.is_null() && !property.nullable => *value = default.clone(),
            Some(_) => {}
            None => drop(map.insert(name.clone(), default.clone())),
        }
    }
    for (name, value) in map.iter_mut() {
        let Some(field) = schema_of(schema, name) else { continue };
        if value.is_null()
            && !field.nullable
            && let Some(default) = &field.default
        {
            *value = default.clone();
        }
        default_value(value, field, nulls);
    }
}

/// The schema of one field: its own, or that of all a map's values.
pub(super) fn schema_of<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    match (schema.properties.get(name), &schema.additional) {
        (Some(property), _) => Some(property),
        (None, Additional::Values(values)) => Some(values),
        (None, _) => None,
    }
}
