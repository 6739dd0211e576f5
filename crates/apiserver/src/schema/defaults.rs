//! Fills in the defaults a kind's schema gives.
//!
//! Defaulting is idempotent. It runs on every write, before validation, and on reads of objects that were stored under
//! another schema, because that may have gained defaults since.

use super::{Additional, Schema};
use crate::bounds::{OBJECT_BYTES_MAX, text_bytes};
use crate::status::ApiError;
use serde_json::{Map, Value};

/// Defaults would add more to an object than an object may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its defaults have more than {OBJECT_BYTES_MAX} bytes")]
pub(crate) struct TooManyDefaults;

impl From<TooManyDefaults> for ApiError {
    /// The object that would result is one that the store refuses.
    fn from(_: TooManyDefaults) -> Self {
        ApiError::too_large_to_store()
    }
}

/// Gives absent fields their defaults, throughout the object, which is left half done if they are too many.
///
/// A `null` where the schema is not nullable counts as absent: it is replaced by the default, or removed
/// if there is none. (In a list, where removing would shift the others, it stays and fails validation.)
pub(crate) fn apply_defaults(value: &mut Value, schema: &Schema) -> Result<(), TooManyDefaults> {
    apply_defaults_within(value, schema, OBJECT_BYTES_MAX)
}

/// The same, if the defaults have at most this many bytes.
pub(crate) fn apply_defaults_within(
    value: &mut Value,
    schema: &Schema,
    bytes_max: usize,
) -> Result<(), TooManyDefaults> {
    Filling { nulls: Nulls::Dropped, bytes_left: bytes_max }.value(value, schema)
}

/// The same for the outcome of a server-side apply, in which a `null` without a default stays: an apply that takes the last
/// field out of an object that it names leaves one, and validation has its say on it.
pub(crate) fn apply_defaults_to_applied(value: &mut Value, schema: &Schema) -> Result<(), TooManyDefaults> {
    Filling { nulls: Nulls::Kept, bytes_left: OBJECT_BYTES_MAX }.value(value, schema)
}

/// What becomes of a `null` where the schema is not nullable and has no default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Dropped,
    Kept,
}

struct Filling {
    nulls: Nulls,
    /// How many bytes of defaults may still be added. A default of a list's items is added once for each.
    bytes_left: usize,
}

impl Filling {
    /// A copy of a default, if there is room for it.
    fn copy(&mut self, name: &str, default: &Value) -> Result<Value, TooManyDefaults> {
        // With the quotes, the colon and the comma of its field.
        let bytes = text_bytes(default) + name.len() + 4;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(TooManyDefaults)?;
        Ok(default.clone())
    }

    fn value(&mut self, value: &mut Value, schema: &Schema) -> Result<(), TooManyDefaults> {
        match value {
            Value::Object(map) => self.map(map, schema),
            Value::Array(items) => {
                let Some(item_schema) = &schema.items else { return Ok(()) };
                for item in items {
                    self.null("", item, item_schema)?;
                    self.value(item, item_schema)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Replaces a `null` that counts as absent.
    fn null(&mut self, name: &str, value: &mut Value, schema: &Schema) -> Result<(), TooManyDefaults> {
        if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
            *value = self.copy(name, default)?;
        }
        Ok(())
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: &Schema) -> Result<(), TooManyDefaults> {
        map.retain(|name, value| {
            !value.is_null()
                || self.nulls == Nulls::Kept
                || schema_of(schema, name).is_none_or(|field| field.nullable || field.default.is_some())
        });
        for (name, property) in &schema.properties {
            if let (Some(default), false) = (&property.default, map.contains_key(name)) {
                map.insert(name.clone(), self.copy(name, default)?);
            }
        }
        for (name, value) in map.iter_mut() {
            let Some(field) = schema_of(schema, name) else { continue };
            self.null(name, value, field)?;
            self.value(value, field)?;
        }
        Ok(())
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
