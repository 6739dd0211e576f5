//! Reading and filling JSON objects without caring whether a field is there.
//!
//! Absent, `null` and wrongly typed fields all read as the zero value of the type asked for, which is how
//! a decoded Go struct reads them.

use serde_json::{Map, Value};

/// What stands at a path of fields and places in lists: `/spec/ports/0`. Unlike a JSON pointer it knows no
/// escapes, and so costs nothing but the steps.
pub(crate) fn inside<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The field as text; empty if absent.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a pointer; empty if absent.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    inside(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The field as a whole number, if it is there.
pub(crate) fn int(value: &Value, field: &str) -> Option<i64> {
    value.get(field).and_then(Value::as_i64)
}

/// The field as a truth value; false if absent.
pub(crate) fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or_default()
}

/// The items of a list field; none if absent.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The items of a list field, to change.
pub(crate) fn list_mut<'a>(value: &'a mut Value, field: &str) -> &'a mut [Value] {
    value.get_mut(field).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// The field if it is set: absent and `null` are the same.
pub(crate) fn set<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    value.get(field).filter(|v| !v.is_null())
}

/// The field if it is an object, to change.
pub(crate) fn object_mut<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    value.get_mut(field).filter(|v| v.is_object())
}

/// The field as an object, made empty if it is not set. None if `value` itself is no object.
pub(crate) fn ensure_object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let slot = value.as_object_mut()?.entry(field).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.is_object().then_some(slot)
}

/// Sets the field unless it is set already (empty text counts as unset, as in Go).
pub(crate) fn default_to(value: &mut Value, field: &str, default: impl Into<Value>) {
    let Some(map) = value.as_object_mut() else { return };
    let unset = match map.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if unset {
        map.insert(field.to_owned(), default.into());
    }
}

/// Sets the field.
pub(crate) fn put(value: &mut Value, field: &str, new: impl Into<Value>) {
    if let Some(map) = value.as_object_mut() {
        map.insert(field.to_owned(), new.into());
    }
}

/// Removes the field and gives what it was.
pub(crate) fn take(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut().and_then(|map| map.remove(field))
}

/// Makes the field what it is in `old`, or absent if it is absent there.
pub(crate) fn keep(value: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(before) => put(value, field, before.clone()),
        None => drop(take(value, field)),
    }
}

/// Whether a value says nothing: absent, `null`, or an empty object, list or text.
pub(crate) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

/// Whether two optional values mean the same: absent, `null` and empty are one.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    a == b || (is_empty(a) && is_empty(b))
}

/// Whether the field means the same in both.
pub(crate) fn same_field(a: &Value, b: &Value, field: &str) -> bool {
    same(a.get(field), b.get(field))
}

/// Sets `metadata.generation`.
pub(crate) fn set_generation(object: &mut Value, generation: i64) {
    if let Some(meta) = ensure_object(object, "metadata") {
        put(meta, "generation", generation);
    }
}

/// `metadata.generation`; 0 if absent.
pub(crate) fn generation(object: &Value) -> i64 {
    object.get("metadata").and_then(|m| int(m, "generation")).unwrap_or(0)
}

/// Keeps the generation of `old`, one higher if `changed`.
pub(crate) fn bump_generation(new: &mut Value, old: &Value, changed: bool) {
    set_generation(new, generation(old) + i64::from(changed));
}

/// Sets a number field unless it holds a number other than zero.
pub(crate) fn default_nonzero(value: &mut Value, field: &str, default: i64) {
    if int(value, field).unwrap_or(0) == 0 {
        put(value, field, default);
    }
}
