//! JSON patch (RFC 6902), as kube-apiserver's library does it.
//!
//! Beyond the RFC: negative list indices count from the end; `replace` of an absent member adds it;
//! an operation without `value` carries `null`; `test` of an absent member against `null` holds; the
//! part of a path before its first `/` is ignored.

use super::PatchError;
use crate::gotext::json_type;
use serde_json::{Map, Value};

/// How many operations a patch may have.
pub(crate) const OPERATIONS_MAX: usize = 10_000;

/// Applies a JSON patch: all operations, or none. `checked` is whether the request asks for field
/// validation (`Strict` or `Warn`, the default), which looks at the operations' fields first.
pub(crate) fn apply(mut target: Value, patch: &Value, checked: bool) -> Result<Value, PatchError> {
    let operations = decode(patch, checked)?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    for operation in operations {
        // `null` stands for an operation without fields, which is of no known kind.
        let operation = operation.as_object().ok_or(PatchError::Unprocessable)?;
        step(&mut target, operation).ok_or(PatchError::Unprocessable)?;
    }
    Ok(target)
}

/// Fields of operations that JSON patch does not know, worded for warnings and strict refusals.
pub(crate) fn unknown_fields(patch: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for (index, operation) in patch.as_array().into_iter().flatten().enumerate() {
        for name in operation.as_object().into_iter().flat_map(Map::keys) {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                unknown.push(format!("json patch unknown field \"[{index}].{name}\""));
            }
        }
    }
    unknown
}

fn decode(patch: &Value, checked: bool) -> Result<&[Value], PatchError> {
    let (prefix, list, item) = if checked {
        ("error decoding patch: ", "[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    } else {
        ("", "jsonpatch.Patch", "jsonpatch.Operation")
    };
    let refuse = |value: &Value, of: &str| {
        let found = json_type(value);
        PatchError::Malformed(format!("{prefix}json: cannot unmarshal {found} into Go {of}"))
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(refuse(other, &format!("value of type {list}"))),
    };
    for operation in operations {
        let fields = match operation {
            Value::Object(fields) => fields,
            Value::Null => continue,
            other => return Err(refuse(other, &format!("value of type {item}"))),
        };
        for name in ["op", "path", "from"].iter().filter(|_| checked) {
            if let Some(value) = fields.get(*name).filter(|value| !value.is_string() && !value.is_null()) {
                return Err(refuse(value, &format!("struct field jsonPatchOp.{name} of type string")));
            }
        }
    }
    Ok(operations)
}

fn step(document: &mut Value, operation: &Map<String, Value>) -> Option<()> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let given = operation.get("value");
    let value = || given.cloned().unwrap_or_default();
    match text("op")? {
        "add" => Place::find(document, text("path")?)?.add(value()),
        "remove" => Place::find(document, text("path")?)?.remove().map(drop),
        "replace" => match text("path")? {
            "" if value().is_object() || value().is_array() => {
                *document = value();
                Some(())
            }
            "" => None,
            path => Place::find(document, path)?.replace(value()),
        },
        "move" => {
            let moved = Place::find(document, text("from")?)?.remove()?;
            Place::find(document, text("path")?)?.add(moved)
        }
        "copy" => {
            let copied = Place::find(document, text("from")?)?.get()?.clone();
            Place::find(document, text("path")?)?.add(copied)
        }
        "test" => {
            let path = text("path")?;
            let found = if path.is_empty() { &*document } else { Place::find(document, path)?.get()? };
            (found == given.unwrap_or(&Value::Null)).then_some(())
        }
        _ => None,
    }
}

/// A member of an object or an item of a list, there or not yet.
enum Place<'a> {
    Member(&'a mut Map<String, Value>, String),
    Item(&'a mut Vec<Value>, String),
}

impl<'a> Place<'a> {
    fn find(document: &'a mut Value, path: &str) -> Option<Place<'a>> {
        let mut parts = path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
        let mut key = parts.next()?;
        let mut container = document;
        for next in parts {
            container = match container {
                Value::Object(map) => map.get_mut(&key)?,
                Value::Array(items) => {
                    let index = position(&key, items.len())?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
            key = next;
        }
        match container {
            Value::Object(map) => Some(Place::Member(map, key)),
            Value::Array(items) => Some(Place::Item(items, key)),
            _ => None,
        }
    }

    /// None where a list has no such item; an object's absent member is `null`.
    fn get(self) -> Option<&'a Value> {
        match self {
            Place::Member(map, key) => Some(map.get(&key).unwrap_or(&Value::Null)),
            Place::Item(items, key) => {
                let index = position(&key, items.len())?;
                items.get(index)
            }
        }
    }

    fn add(self, value: Value) -> Option<()> {
        match self {
            Place::Member(map, key) => drop(map.insert(key, value)),
            Place::Item(items, key) if key == "-" => items.push(value),
            Place::Item(items, key) => {
                let index = position(&key, items.len() + 1).filter(|index| *index <= items.len())?;
                items.insert(index, value);
            }
        }
        Some(())
    }

    fn replace(self, value: Value) -> Option<()> {
        match self {
            Place::Member(map, key) => drop(map.insert(key, value)),
            Place::Item(items, key) => {
                let index = position(&key, items.len())?;
                *items.get_mut(index)? = value;
            }
        }
        Some(())
    }

    fn remove(self) -> Option<Value> {
        match self {
            Place::Member(map, key) => map.remove(&key),
            Place::Item(items, key) => {
                let index = position(&key, items.len()).filter(|index| *index < items.len())?;
                Some(items.remove(index))
            }
        }
    }
}

/// The index a key names in a list of this length; negative ones count from the end.
fn position(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    if index < 0 {
        return length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
    }
    usize::try_from(index).ok()
}
