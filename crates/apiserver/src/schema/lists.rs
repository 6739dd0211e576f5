//! Uniqueness in lists that are sets or keyed.

use super::defaults::schema_of;
use super::{ListType, Schema};
use crate::field::{ERRORS_MAX, FieldError, Path};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Reports items that stand twice in a set, or share their keys in a keyed list. Each repeated item is
/// reported once, at its second place.
pub(super) fn check_lists(value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(value, schema, &Path::ROOT, &mut errors);
    errors
}

fn walk(value: &Value, schema: &Schema, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= ERRORS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let Some(field) = schema_of(schema, name) else { continue };
                if schema.properties.contains_key(name) {
                    walk(value, field, &at.field(name), errors);
                } else {
                    walk(value, field, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                ListType::Atomic => {}
                ListType::Set => {
                    for index in repeated(items.iter()).into_iter().take(ERRORS_MAX) {
                        errors.push(FieldError::duplicate(&at.index(index), &items[index]));
                    }
                }
                ListType::Map(keys) => check_keyed(items, keys, at, errors),
            }
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    walk(item, item_schema, &at.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_keyed(items: &[Value], keys: &[String], at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = wrong {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&at.index(index), &items[index], detail));
        return;
    }
    if items.len() < 2 {
        return;
    }
    let keys_of = |item: &Value| -> Value {
        let given = |key: &String| Some((key.clone(), item.get(key)?.clone()));
        Value::Object(keys.iter().filter_map(given).collect::<Map<_, _>>())
    };
    let found: Vec<Value> = items.iter().map(keys_of).collect();
    for index in repeated(found.iter()).into_iter().take(ERRORS_MAX) {
        errors.push(FieldError::duplicate(&at.index(index), &found[index]));
    }
}

/// Where values stand for the second time.
fn repeated<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<usize> {
    let mut seen: HashMap<&Value, u32> = HashMap::new();
    let mut places = Vec::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value).or_insert(0);
        *times += 1;
        if *times == 2 {
            places.push(index);
        }
    }
    places
}
