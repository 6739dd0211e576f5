//! How Kubernetes words the mistakes of a strategic merge patch.

use crate::patch::{PatchError, go_print};
use serde_json::Value;

pub(super) fn malformed(message: &str) -> PatchError {
    PatchError::Malformed(message.to_owned())
}

pub(super) fn unexpected(message: impl Into<String>) -> PatchError {
    PatchError::Unexpected(message.into())
}

pub(super) fn no_merge_key(item: &Value, key: &str) -> PatchError {
    unexpected(format!("map: {} does not contain declared merge key: {key}", go_print(item)))
}

pub(super) fn wrong_type(expected: &str, found: &Value) -> PatchError {
    let found = match found {
        // Go prints a missing type through a verb that does not fit it.
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    unexpected(format!("expected a {expected}, but received a {found}"))
}

pub(super) fn unknown_directive(directive: &Value, object: &Value) -> PatchError {
    let kind = match directive {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(flag) => format!("%!s(bool={flag})"),
        Value::Number(number) if number.is_f64() => format!("%!s(float64={})", go_print(directive)),
        Value::Number(number) => format!("%!s(int64={number})"),
        other => go_print(other),
    };
    unexpected(format!("unknown patch type: {kind} in map: {}", go_print(object)))
}
