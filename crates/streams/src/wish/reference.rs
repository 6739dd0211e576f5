//! Fields of a stream by their paths, and references to other objects in them.

use serde_json::Value;

use super::{INVALID_SPEC, Problem};

/// What a field refers to.
pub(super) struct Target {
    pub(super) kind: &'static str,
    /// Of its API; empty for the core one.
    pub(super) group: &'static str,
}

/// The field at a path with dots, from the object's root. None if it, or something on the way, is absent or null.
pub(super) fn field<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, Problem> {
    if path.is_empty() {
        return Ok(None);
    }
    let mut here = object;
    let mut end = 0;
    for part in path.split('.') {
        let fields = match here {
            Value::Null => return Ok(None),
            Value::Object(fields) => fields,
            other => return Err(wrong(path[..end].trim_end_matches('.'), other, "an object")),
        };
        let Some(next) = fields.get(part) else { return Ok(None) };
        here = next;
        end += part.len() + 1;
    }
    Ok(Some(here).filter(|value| !value.is_null()))
}

/// The name in a reference: the value itself, or its field `name`.
pub(super) fn name<'a>(
    value: &'a Value,
    path: &str,
    namespace: &str,
    target: &Target,
) -> Result<&'a str, Problem> {
    let kind = target.kind;
    let (name, path_of_name) = match value {
        Value::String(name) => (name.as_str(), path.to_owned()),
        Value::Object(_) => {
            let of_name = format!("{path}.name");
            let Some(name) = text(value, "name", path)? else {
                let message = format!("is not there, must be the name of a {kind}");
                return Err(Problem { reason: INVALID_SPEC, path: of_name, message });
            };
            (name, of_name)
        }
        other => return Err(wrong(path, other, &format!("the name of a {kind}, or an object with it"))),
    };
    if name.is_empty() {
        let message = format!("is empty, must be the name of a {kind}");
        return Err(Problem { reason: INVALID_SPEC, path: path_of_name, message });
    }
    // Only what an object says: a plain name cannot be about another namespace or kind.
    let fits = |field: &str, expected: &str, why: &str| match text(value, field, path)? {
        Some(given) if given != expected => {
            let message = format!("is {given:?}, must be {expected:?}{why}");
            Err(Problem { reason: INVALID_SPEC, path: format!("{path}.{field}"), message })
        }
        _ => Ok(()),
    };
    fits("namespace", namespace, ", the stream's own, or left out")?;
    fits("kind", kind, ", or left out")?;
    fits("apiGroup", target.group, ", or left out")?;
    Ok(name)
}

fn text<'a>(value: &'a Value, field: &str, path: &str) -> Result<Option<&'a str>, Problem> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(&format!("{path}.{field}"), other, "a string")),
    }
}

/// The problem that a field has another type than it must.
pub(super) fn wrong(path: &str, value: &Value, must_be: &str) -> Problem {
    let is = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Problem { reason: INVALID_SPEC, path: path.to_owned(), message: format!("is {is}, must be {must_be}") }
}
