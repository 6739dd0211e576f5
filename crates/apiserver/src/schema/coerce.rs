//! Fits objects into their schema: `metadata` into its Go type, the rest by pruning.
//!
//! `metadata` of a custom object, and of resources embedded in it, is decoded into Go's `ObjectMeta` and
//! written back: unknown fields vanish, unset ones too, and values of the wrong type are refused on a
//! write and dropped when read from the store.

use super::Schema;
use super::defaults::schema_of;
use super::meta_shape::{OBJECT_META, decode};
use super::prune::prune;
use crate::field::{FieldError, Path};
use serde_json::{Map, Value};

/// What becomes of metadata that has the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The object is refused: it comes from a client.
    Refuse,
    /// The fields are dropped: the object comes from the store.
    Drop,
}

/// Removes from an object what its schema does not know, returning the paths of it in the order that
/// Kubernetes reports them. Err is why the object cannot be decoded (a 400).
pub(crate) fn fit(object: &mut Value, schema: &Schema, malformed: Malformed) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    if let Value::Object(map) = object {
        match coerce_metadata(map, malformed, &Path::ROOT, &mut unknown) {
            Err(error) if malformed == Malformed::Refuse => return Err(error),
            _ => {}
        }
    }
    unknown.extend(prune(object, schema));
    let mut embedded = Vec::new();
    walk(object, schema, malformed, &Path::ROOT, &mut embedded).map_err(|error| error.to_string())?;
    embedded.sort_unstable();
    unknown.extend(embedded);
    Ok(unknown)
}

/// The first error in the metadata of resources embedded in a value, which stands at `at`.
pub(super) fn check_embedded_metadata(
    mut value: Value,
    schema: &Schema,
    at: &Path<'_>,
) -> Result<(), FieldError> {
    walk(&mut value, schema, Malformed::Refuse, at, &mut Vec::new())
}

fn walk(
    value: &mut Value,
    schema: &Schema,
    malformed: Malformed,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                coerce_resource(map, malformed, at, unknown)?;
            }
            for (name, value) in map.iter_mut() {
                let Some(field) = schema_of(schema, name) else { continue };
                let at = if schema.properties.contains_key(name) { at.field(name) } else { at.key(name) };
                walk(value, field, malformed, &at, unknown)?;
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, item_schema, malformed, &at.index(index), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    map: &mut Map<String, Value>,
    malformed: Malformed,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    for name in ["apiVersion", "kind"] {
        let Some(value) = map.get(name).filter(|value| !value.is_string()) else { continue };
        if malformed == Malformed::Refuse {
            return Err(FieldError::invalid(&at.field(name), value, "must be a string"));
        }
        map.remove(name);
    }
    match coerce_metadata(map, malformed, at, unknown) {
        Err(error) if malformed == Malformed::Refuse => {
            let value = map.get("metadata").unwrap_or(&Value::Null);
            Err(FieldError::invalid(&at.field("metadata"), value, error))
        }
        _ => Ok(()),
    }
}

/// Decodes and rewrites the metadata of one resource.
fn coerce_metadata(
    resource: &mut Map<String, Value>,
    malformed: Malformed,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let Some(metadata) = resource.get_mut("metadata") else { return Ok(()) };
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
        return Ok(());
    }
    let at = at.field("metadata");
    if malformed == Malformed::Drop
        && let Value::Object(map) = metadata
    {
        map.retain(|name, value| {
            OBJECT_META
                .field(name)
                .is_some_and(|shape| decode(value, shape, &Path::ROOT, &mut Vec::new()).is_ok())
        });
    }
    let decoded = decode(metadata, &OBJECT_META, &at, unknown)?;
    *metadata = decoded;
    Ok(())
}
