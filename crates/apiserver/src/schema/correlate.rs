//! Finds, for a place in a new object, the value that stood there before.
//!
//! Ratcheting and transition rules need it. Fields and map entries are found by name, items of keyed
//! lists by their keys; items of other lists have no predecessor.

use super::defaults::schema_of;
use super::{ListType, Schema};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// An earlier value and the schema that says how its parts are found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old<'a> {
    pub value: &'a Value,
    pub schema: &'a Schema,
}

impl<'a> Old<'a> {
    /// What the field held before, if it was there and the schema specifies it.
    pub(super) fn field(self, name: &str) -> Option<Old<'a>> {
        let value = self.value.as_object()?.get(name)?;
        Some(Old { value, schema: schema_of(self.schema, name)? })
    }

    /// The earlier items by key, if this is a keyed list.
    pub(super) fn items(self) -> Option<OldItems<'a>> {
        let (Value::Array(items), ListType::Map(keys)) = (self.value, &self.schema.list) else {
            return None;
        };
        Some(OldItems { keys, by_key: index(keys, items), schema: self.schema.items.as_deref()? })
    }

    /// Whether `new` is the same. Order in keyed lists does not count; fields that the schema does not
    /// specify (and only preserves) make objects differ, as Kubernetes has it.
    pub(super) fn equals(self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Array(old), Value::Array(items)) => {
                if old.len() != items.len() {
                    return false;
                }
                match self.items() {
                    Some(known) => items.iter().all(|item| known.get(item).is_some_and(|o| o.equals(item))),
                    None => old == items,
                }
            }
            (Value::Object(old), Value::Object(map)) => {
                old.len() == map.len()
                    && map.iter().all(|(name, value)| self.field(name).is_some_and(|o| o.equals(value)))
            }
            (old, new) => old == new,
        }
    }
}

/// The items of an earlier keyed list.
#[derive(Debug)]
pub(super) struct OldItems<'a> {
    keys: &'a [String],
    by_key: HashMap<String, &'a Value>,
    schema: &'a Schema,
}

impl<'a> OldItems<'a> {
    /// The earlier item that has the same keys.
    pub(super) fn get(&self, item: &Value) -> Option<Old<'a>> {
        let key = key_of(self.keys, item.as_object()?)?;
        Some(Old { value: self.by_key.get(&key)?, schema: self.schema })
    }
}

fn index<'a>(keys: &[String], items: &'a [Value]) -> HashMap<String, &'a Value> {
    let mut by_key = HashMap::with_capacity(items.len());
    for item in items {
        if let Some(key) = item.as_object().and_then(|map| key_of(keys, map)) {
            by_key.entry(key).or_insert(item);
        }
    }
    by_key
}

/// The item's keys as one text; none if one is absent or no scalar.
fn key_of(keys: &[String], item: &Map<String, Value>) -> Option<String> {
    let mut out = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => out.push_str(&scalar.to_string()),
        }
        out.push('\0');
    }
    Some(out)
}
