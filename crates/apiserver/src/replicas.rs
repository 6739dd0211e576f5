//! What a custom object holds where its scale subresource looks: numbers that a scale can show.
//!
//! The paths come from the definition, whose schema need not say anything about them.

use crate::field::{FieldError, Path};
use crate::gotext;
use crate::kind::Scale;
use serde_json::Value;

/// What is wrong with a whole object.
pub(crate) fn check(object: &Value, scale: Option<&Scale>) -> Vec<FieldError> {
    let wanted = scale.and_then(|scale| check_number(object, &scale.spec));
    wanted.into_iter().chain(check_status(object, scale)).collect()
}

/// What is wrong with an object of which the status is written.
pub(crate) fn check_status(object: &Value, scale: Option<&Scale>) -> Vec<FieldError> {
    let Some(scale) = scale else { return Vec::new() };
    let selector = scale.selector.as_ref().and_then(|path| {
        let detail = look(object, path, "string", |value| value.is_string().then_some(())).err()?;
        Some(FieldError::invalid(&Path::of(path), &"".into(), detail))
    });
    check_number(object, &scale.status).into_iter().chain(selector).collect()
}

fn check_number(object: &Value, path: &str) -> Option<FieldError> {
    let (value, detail) = match look(object, path, "int64", Value::as_i64) {
        Err(detail) => (0, detail),
        Ok(Some(number)) if number < 0 => (number, "should be a non-negative integer".into()),
        Ok(Some(number)) if number > i64::from(i32::MAX) => {
            (number, format!("should be less than or equal to {}", i32::MAX))
        }
        Ok(_) => return None,
    };
    Some(FieldError::invalid(&Path::of(path), &value.into(), detail))
}

/// What is at a path, nothing if nothing is, or a complaint about the first thing of another type.
fn look<T>(
    object: &Value,
    path: &str,
    expected: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let wrong = |depth: usize, value: &Value, expected: &str| {
        let actual = if value.is_i64() { "int64" } else { gotext::go_type(value) };
        let at = names[..depth].join(".");
        Err(format!(
            ".{at} accessor error: {} is of the type {actual}, expected {expected}",
            gotext::go_plain(value)
        ))
    };
    let mut value = object;
    for (depth, name) in names.iter().enumerate() {
        match value {
            Value::Object(fields) => match fields.get(*name) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return wrong(depth + 1, other, "map[string]interface{}"),
        }
    }
    read(value).map_or_else(|| wrong(names.len(), value, expected), |found| Ok(Some(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_scale_can_show_is_refused_in_kubernetes_words() {
        let scale =
            Scale { spec: ".spec.n".into(), status: ".status.n".into(), selector: Some(".status.s".into()) };
        let complaints = |object: Value| {
            check(&object, Some(&scale))
                .iter()
                .map(|error| format!("{}: {}", error.field, error.body()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            complaints(json!({"spec": {"n": 1}, "status": {"n": 0, "s": "a=b"}})),
            Vec::<String>::new()
        );
        assert_eq!(complaints(json!({"spec": {}})), Vec::<String>::new());
        let refused = [
            (
                json!({"spec": {"n": "tall"}}),
                ".spec.n: Invalid value: 0: .spec.n accessor error: tall is of the type string, expected int64",
            ),
            (
                json!({"spec": {"n": 1.5}}),
                ".spec.n: Invalid value: 0: .spec.n accessor error: 1.5 is of the type float64, expected int64",
            ),
            (
                json!({"spec": "x"}),
                ".spec.n: Invalid value: 0: .spec.n accessor error: x is of the type string, expected map[string]interface{}",
            ),
            (json!({"spec": {"n": -1}}), ".spec.n: Invalid value: -1: should be a non-negative integer"),
            (
                json!({"status": {"n": 2_147_483_648_i64}}),
                ".status.n: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ),
            (
                json!({"status": {"s": 1}}),
                ".status.s: Invalid value: \"\": .status.s accessor error: 1 is of the type int64, expected string",
            ),
        ];
        for (object, complaint) in refused {
            assert_eq!(complaints(object), [complaint]);
        }
    }
}
