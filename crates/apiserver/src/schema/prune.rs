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
    let mut unknown = Unknown::default();
    prune_resource(object, schema, &mut unknown);
    unknown.paths.sort_unstable();
    unknown.paths
}

/// How many bytes the paths of unknown fields may have together; the others are removed without being named. A path is as
/// long as the keys on the way to it, and an object can have hundreds of thousands below one key.
const UNKNOWN_BYTES_MAX: usize = 1 << 20;

/// Paths of fields that were removed.
#[derive(Default)]
struct Unknown {
    paths: Vec<String>,
    bytes: usize,
}

impl Unknown {
    fn push(&mut self, at: &Path<'_>, name: &str) {
        if self.bytes < UNKNOWN_BYTES_MAX {
            let path = at.field(name).to_string();
            self.bytes += path.len() + size_of::<String>();
            self.paths.push(path);
        }
    }
}

/// Removes unknown fields from a part of an object.
pub(super) fn prune_value_of(value: &mut Value, schema: &Schema) {
    prune_value(value, schema, &Path::ROOT, &mut Unknown::default());
}

fn prune_resource(object: &mut Value, schema: &Schema, unknown: &mut Unknown) {
    if let Value::Object(map) = object {
        prune_map(map, schema, true, &Path::ROOT, unknown);
    }
}

/// Whether the field is one that every resource has, whatever its schema says.
pub(super) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn prune_value(value: &mut Value, schema: &Schema, at: &Path<'_>, unknown: &mut Unknown) {
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
fn prune_item(item: &mut Value, schema: &Schema, kept: bool, at: &Path<'_>, unknown: &mut Unknown) {
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
    unknown: &mut Unknown,
) {
    prune_known(map, schema, resource, at, unknown);
    if schema.preserve_unknown || !matches!(schema.additional, Additional::None) {
        return;
    }
    map.retain(|name, _| {
        let known = schema.properties.contains_key(name) || (resource && is_meta(name));
        if !known {
            unknown.push(at, name);
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
    unknown: &mut Unknown,
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
fn clear(value: &mut Value, at: &Path<'_>, unknown: &mut Unknown) {
    match value {
        Value::Object(map) => {
            map.keys().for_each(|name| unknown.push(at, name));
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
