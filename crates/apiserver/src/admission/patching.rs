//! The JSON patch in a mutating webhook's answer.
//!
//! The patch is applied like a client's JSON patch, but where that refusal says nothing, a webhook's
//! patch that does not fit the object is explained: it is a defect of the webhook, and its author needs
//! to know which operation.

use crate::gotext::json_type;
use crate::patch::{PatchError, json_patch};
use serde_json::Value;

/// Reads the bytes of a patch; the error is the decoder's sentence.
pub(super) fn decode(patch: &[u8]) -> Result<Value, String> {
    let patch: Value = serde_json::from_slice(patch).map_err(|error| syntax(&error, patch))?;
    match patch {
        Value::Array(_) | Value::Null => Ok(patch),
        other => {
            Err(format!("json: cannot unmarshal {} into Go value of type jsonpatch.Patch", json_type(&other)))
        }
    }
}

/// Whether the patch has no operations, which asks for nothing.
pub(super) fn is_empty(patch: &Value) -> bool {
    patch.as_array().is_none_or(Vec::is_empty)
}

/// The patched object, or why the patch does not fit.
pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, String> {
    json_patch::apply(object.clone(), patch, false).map_err(|error| match error {
        PatchError::Unprocessable => explain(object, patch),
        other => other.to_string(),
    })
}

fn syntax(error: &serde_json::Error, text: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1));
    let offender = line.and_then(|line| line.get(error.column().saturating_sub(1)));
    match offender {
        Some(byte) => format!("invalid character '{}' looking for beginning of value", char::from(*byte)),
        None => error.to_string(),
    }
}

/// Finds the operation that fails by halving, and words why.
fn explain(object: &Value, patch: &Value) -> String {
    let operations = patch.as_array().map_or(&[][..], Vec::as_slice);
    let applied = |count: usize| {
        let some = Value::Array(operations.iter().take(count).cloned().collect());
        json_patch::apply(object.clone(), &some, false).ok()
    };
    // `good` operations apply, `bad` ones don't.
    let (mut good, mut bad) = (0, operations.len());
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        if applied(middle).is_some() { good = middle } else { bad = middle }
    }
    let before = applied(good);
    let before = before.as_ref().unwrap_or(object);
    operations.get(good).map_or_else(String::new, |operation| explain_operation(before, operation))
}

fn explain_operation(document: &Value, operation: &Value) -> String {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let op = text("op").unwrap_or("unknown");
    if !matches!(op, "add" | "remove" | "replace" | "move" | "test" | "copy") {
        return format!("Unexpected kind: {op}");
    }
    let moves = matches!(op, "move" | "copy");
    if moves {
        let Some(from) = text("from") else {
            return format!(
                "{op} operation failed to decode from: operation, missing from field: missing value"
            );
        };
        match container(document, from) {
            None => {
                return format!(
                    "{op} operation does not apply: doc is missing from path: {from}: missing value"
                );
            }
            Some((holder, key)) => {
                if let Some(why) = missing(holder, &key) {
                    return if op == "move" {
                        format!("error in move for path: '{key}': {why}")
                    } else {
                        format!("error in copy for from: '{from}': {why}")
                    };
                }
            }
        }
    }
    let Some(path) = text("path") else {
        return match op {
            "add" | "remove" | "copy" => format!("{op} operation failed to decode path: missing value"),
            _ => format!("{op} operation failed to decode path: operation missing path field: missing value"),
        };
    };
    let Some((holder, key)) = container(document, path) else {
        return match op {
            "add" | "remove" => {
                format!("{op} operation does not apply: doc is missing path: \"{path}\": missing value")
            }
            "test" if path.is_empty() => format!("testing value {path} failed: test failed"),
            "test" => format!("test operation does not apply: is missing path: {path}: missing value"),
            "replace" if path.is_empty() => {
                "replace operation value must be object or array: %!w(<nil>)".to_owned()
            }
            "replace" => {
                format!("replace operation does not apply: doc is missing path: {path}: missing value")
            }
            _ => format!(
                "{op} operation does not apply: doc is missing destination path: {path}: missing value"
            ),
        };
    };
    let why = missing(holder, &key);
    match (op, why) {
        ("remove", Some(why)) => format!("error in remove for path: '{path}': {why}"),
        ("replace", _) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        ("test", Some(why)) if holder.is_array() => format!("error in test for path: '{path}': {why}"),
        ("test", _) => format!("testing value {path} failed: test failed"),
        ("copy", why) => format!("error while adding value during copy: {}", why.unwrap_or_default()),
        (op, why) => format!("error in {op} for path: '{path}': {}", why.unwrap_or_default()),
    }
}

/// The object or list that holds what a path names, and the last step.
fn container<'a>(document: &'a Value, path: &str) -> Option<(&'a Value, String)> {
    let (parents, last) = path.rsplit_once('/')?;
    // What stands before the first slash is ignored.
    let parents = parents.find('/').map_or("", |at| &parents[at..]);
    let holder = document.pointer(parents)?;
    let key = last.replace("~1", "/").replace("~0", "~");
    (holder.is_object() || holder.is_array()).then_some((holder, key))
}

/// Why `key` names nothing in `holder`.
fn missing(holder: &Value, key: &str) -> Option<String> {
    match holder {
        Value::Object(members) => (!members.contains_key(key))
            .then(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => match key.parse::<i64>() {
            Err(_) => Some(format!(
                "value was not a proper array index: '{key}': strconv.Atoi: parsing \"{key}\": invalid syntax"
            )),
            Ok(index) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                (index >= length || index < -length)
                    .then(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
            }
        },
        _ => None,
    }
}
