//! Types whose message is not what their JSON is.

use super::wire::{Reader, Wire};
use super::{Malformed, bytes, string, wrong_type};
use crate::builtin::quantity::Quantity;
use crate::builtin::time::{self, Precision};
use serde_json::{Number, Value};

pub(super) fn float(bits: u64) -> Result<Value, Malformed> {
    let float = f64::from_bits(bits);
    let number = Number::from_f64(float);
    Ok(Value::Number(number.ok_or_else(|| Malformed::new(format!("json: unsupported value: {float}")))?))
}

pub(super) fn quantity(message: &[u8]) -> Result<Value, Malformed> {
    let mut text = String::from("0");
    let mut reader = Reader(message);
    while let Some((number, content)) = reader.field()? {
        if number == 1 {
            text = string(bytes(content, "string")?);
        }
    }
    Quantity::parse(&text).map_err(Malformed::new)?;
    Ok(text.into())
}

pub(super) fn int_or_string(message: &[u8]) -> Result<Value, Malformed> {
    let (mut kind, mut int, mut text) = (0, 0, String::new());
    let mut reader = Reader(message);
    while let Some((number, content)) = reader.field()? {
        match (number, content) {
            (1, Wire::Varint(value)) => kind = value,
            (2, Wire::Varint(value)) => int = value,
            (3, Wire::Bytes(value)) => text = string(value),
            (1..=3, other) => return Err(wrong_type(other, "IntOrString")),
            _ => {}
        }
    }
    match kind {
        #[expect(clippy::cast_possible_truncation, reason = "go cuts off what does not fit")]
        0 => Ok((int as i32).into()),
        1 => Ok(text.into()),
        _ => Err(Malformed::new("impossible IntOrString.Type")),
    }
}

pub(super) fn timestamp(message: &[u8], precision: Precision) -> Result<Value, Malformed> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader(message);
    while let Some((number, content)) = reader.field()? {
        match (number, content) {
            (1, Wire::Varint(value)) => seconds = value.cast_signed(),
            #[expect(clippy::cast_possible_truncation, reason = "go cuts off what does not fit")]
            (2, Wire::Varint(value)) => nanos = value as i32,
            (1 | 2, other) => return Err(wrong_type(other, "Timestamp")),
            _ => {}
        }
    }
    let nanos = if precision == Precision::Second { 0 } else { nanos };
    match jiff::Timestamp::new(seconds, nanos) {
        Ok(instant) => Ok(time::render(instant, precision).into()),
        Err(_) => Err(Malformed::new("Time.MarshalJSON: year outside of range [0,9999]")),
    }
}

/// A value that travels as JSON.
pub(super) fn raw(message: &[u8]) -> Result<Value, Malformed> {
    let mut text: &[u8] = &[];
    let mut reader = Reader(message);
    while let Some((number, content)) = reader.field()? {
        if number == 1 {
            text = bytes(content, "raw")?;
        }
    }
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(text).map_err(|error| Malformed::new(format!("json: {error}")))
}
