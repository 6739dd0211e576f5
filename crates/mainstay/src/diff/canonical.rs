//! One text for each JSON value: keys in order, nulls of objects left out, numbers by value.
//!
//! Values that [`same`] calls equal have the same canonical text, and the other way round.

use std::convert::Infallible;

use serde_json::{Map, Number, Value};

/// Whether two values mean the same: whatever the order of keys, with a null field as an absent one, and `1`
/// as `1.0`.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => same_fields(a, b, |_, a, b| same(a, b)),
        _ => a == b,
    }
}

/// Whether two objects have the same fields, and `same` holds for each.
pub(super) fn same_fields(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    same: impl Fn(&str, &Value, &Value) -> bool,
) -> bool {
    named(a).count() == named(b).count()
        && named(a).all(|(name, a)| present(b.get(name)).is_some_and(|b| same(name, a, b)))
}

/// The fields of an object that are there: a null is an absent field.
pub(super) fn named(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().filter(|(_, value)| !value.is_null())
}

/// A value that is there, with null as absent.
pub(super) fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

pub(super) fn same_number(a: &Number, b: &Number) -> bool {
    a == b
        || match (integer(a), integer(b)) {
            (None, None) => a.as_f64() == b.as_f64(),
            (a, b) => a == b,
        }
}

/// A number that is whole, exactly.
#[expect(clippy::cast_possible_truncation, reason = "whole and within the range, as checked before")]
pub(super) fn integer(number: &Number) -> Option<i128> {
    if let Some(integer) = number.as_i64() {
        return Some(integer.into());
    }
    if let Some(integer) = number.as_u64() {
        return Some(integer.into());
    }
    // Up to 2^100 a whole float is an i128 without loss; what is larger is no count of anything.
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < 2f64.powi(100)).then_some(float as i128)
}

/// A copy without the null fields of objects.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(object) => {
            Value::Object(named(object).map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        _ => value.clone(),
    }
}

/// Takes the null fields out of objects, in place.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

/// The canonical text.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    push(value, &mut text);
    text
}

fn push(value: &Value, text: &mut String) {
    let Ok(()) = write(value, &mut |part| -> Result<(), Infallible> {
        text.push_str(part);
        Ok(())
    });
}

/// Hands the canonical text to `sink`, piece by piece, until it refuses one.
pub(super) fn write<E>(value: &Value, sink: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    match value {
        Value::Null => sink("null"),
        Value::Bool(value) => sink(if *value { "true" } else { "false" }),
        Value::Number(number) => match integer(number) {
            Some(integer) => sink(&integer.to_string()),
            None => sink(&number.to_string()),
        },
        Value::String(text) => write_string(text, sink),
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                sink(if position == 0 { "[" } else { "," })?;
                write(item, sink)?;
            }
            sink(if items.is_empty() { "[]" } else { "]" })
        }
        Value::Object(object) => write_fields(object, sink),
    }
}

fn write_fields<E>(
    object: &Map<String, Value>,
    sink: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut opened = false;
    let mut write_field = |name: &str, value: &Value| {
        sink(if opened { "," } else { "{" })?;
        opened = true;
        write_string(name, sink)?;
        sink(":")?;
        write(value, sink)
    };
    // serde_json keeps keys in order unless another crate of the program asks it to keep that of insertion.
    if object.keys().is_sorted() {
        named(object).try_for_each(|(name, value)| write_field(name, value))?;
    } else {
        let mut fields: Vec<_> = named(object).collect();
        fields.sort_by_key(|(name, _)| *name);
        fields.into_iter().try_for_each(|(name, value)| write_field(name, value))?;
    }
    sink(if opened { "}" } else { "{}" })
}

fn write_string<E>(text: &str, sink: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        sink("\"")?;
        sink(text)?;
        return sink("\"");
    }
    sink(&Value::from(text).to_string())
}

/// The first half of a SHA-256 over canonical texts. They are put together first: digests of many small pieces cost
/// more than their text.
pub(super) struct Hash(String);

impl Hash {
    pub(super) fn new() -> Self {
        Self(String::with_capacity(1024))
    }

    pub(super) fn text(&mut self, text: &str) {
        self.0.push_str(text);
    }

    pub(super) fn value(&mut self, value: &Value) {
        push(value, &mut self.0);
    }

    pub(super) fn finish(self) -> [u8; 16] {
        let mut half = [0; 16];
        let digest = ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes());
        half.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        half
    }
}

/// A hash of a value's content, whatever the order of its keys: 16 hexadecimal digits, the same everywhere and always. In an
/// annotation of a pod template it has pods replaced when something changes that they only read once.
pub fn content_hash(value: &Value) -> String {
    let mut hash = Hash::new();
    hash.value(value);
    let digest = u128::from_be_bytes(hash.finish());
    format!("{:016x}", digest >> 64)
}
