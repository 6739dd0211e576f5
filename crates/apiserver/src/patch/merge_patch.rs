//! JSON merge patch (RFC 7386), as kube-apiserver's library does it: `null` members inside lists that a
//! patch brings along are dropped too.

use super::{PatchError, check_object};
use serde_json::{Map, Value};

/// Applies a merge patch. `checked` is whether the request asks for field validation (`Strict` or
/// `Warn`, the default), which refuses other bodies than objects with other words. Unchecked, a list
/// as patch replaces the object, and it is the caller who finds that no kind is a list.
pub(crate) fn apply(mut target: Value, patch: Value, checked: bool) -> Result<Value, PatchError> {
    if checked {
        check_object(&patch, "error decoding patch: ")?;
    }
    match (&mut target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge(target, patch),
        (_, mut patch @ (Value::Object(_) | Value::Array(_))) => {
            prune_nulls(&mut patch);
            return Ok(patch);
        }
        _ => return Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
    }
    Ok(target)
}

fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, mut value) in patch {
        match (target.get_mut(&key), &mut value) {
            (_, Value::Null) => {
                target.remove(&key);
            }
            (Some(Value::Object(current)), Value::Object(patch)) => merge(current, std::mem::take(patch)),
            // A list or scalar that replaces an object is taken as it is.
            (Some(current @ Value::Object(_)), _) => *current = value,
            _ => {
                prune_nulls(&mut value);
                target.insert(key, value);
            }
        }
    }
}

fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
