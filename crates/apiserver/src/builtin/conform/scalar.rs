//! Values that hold no others.

use super::Walk;
use super::trail::Trail;
use crate::builtin::quantity;
use crate::builtin::time::{self, Normal, Precision};
use crate::schema::{Form, GoType};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Number, Value};

/// Like Go's standard encoding, indifferent to the bits behind the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

impl Walk {
    /// Reads a value that is not `null` into a type that is not a struct, list or map; anything that
    /// cannot be is a mismatch.
    pub(super) fn scalar(&mut self, value: &mut Value, go: GoType, trail: &Trail<'_>) {
        match (go.form, &mut *value) {
            (Form::String | Form::IntOrString, Value::String(_)) | (Form::Bool, Value::Bool(_)) => {}
            (Form::Int32, Value::Number(number)) => self.integer(number, true, go.name, trail),
            (Form::Int64, Value::Number(number)) => self.integer(number, false, go.name, trail),
            (Form::Float, Value::Number(number)) => shorten(number),
            (Form::Bytes, Value::String(text)) => match base64_fault(text) {
                Ok(true) => {}
                Ok(false) => recode(text),
                Err(at) => self.save(format!("illegal base64 data at input byte {at}")),
            },
            (Form::Bytes, Value::Array(list)) => {
                let bytes: Vec<u8> = list.iter().map(|item| self.byte(item, trail)).collect();
                *value = BASE64.encode(bytes).into();
            }
            (Form::Quantity, value) => self.quantity(value),
            (Form::IntOrString, Value::Number(number)) => {
                let before = self.mismatch.take();
                self.integer(number, true, "int32", trail);
                self.fatal = self.mismatch.take();
                self.mismatch = before;
            }
            (Form::IntOrString, value) => self.fatal = Some(self.describe_mismatch(value, "int32", trail)),
            (Form::Time, value) => self.time(value, Precision::Second, trail),
            (Form::MicroTime, value) => self.time(value, Precision::Microsecond, trail),
            (_, value) => {
                let message = self.describe_mismatch(value, go.name, trail);
                self.save(message);
            }
        }
    }

    fn save(&mut self, message: String) {
        self.mismatch.get_or_insert(message);
    }

    fn integer(&mut self, number: &mut Number, narrow: bool, type_name: &str, trail: &Trail<'_>) {
        if number.as_f64().is_some_and(|float| float == 0.0 && float.is_sign_negative()) {
            *number = 0.into();
        }
        let fits = number.as_i64().is_some_and(|value| !narrow || i32::try_from(value).is_ok());
        if !fits {
            let message = self.describe(&format!("number {number}"), type_name, trail);
            self.save(message);
        }
    }

    /// Bytes may also come as a list of numbers.
    fn byte(&mut self, item: &Value, trail: &Trail<'_>) -> u8 {
        let message = match item {
            Value::Null => return 0,
            Value::Number(number) => match number.as_u64().and_then(|value| u8::try_from(value).ok()) {
                Some(byte) => return byte,
                None => self.describe(&format!("number {number}"), "uint8", trail),
            },
            other => self.describe_mismatch(other, "uint8", trail),
        };
        self.save(message);
        0
    }

    fn quantity(&mut self, value: &mut Value) {
        let read = match &*value {
            Value::String(text) => quantity::canonical(text),
            other => {
                let text = other.to_string();
                quantity::canonical(&text).map(|changed| changed.or(Some(text)))
            }
        };
        match read {
            Ok(None) => {}
            Ok(Some(text)) => *value = text.into(),
            Err(message) => self.fatal = Some(message.to_owned()),
        }
    }

    fn time(&mut self, value: &mut Value, precision: Precision, trail: &Trail<'_>) {
        let Value::String(text) = &*value else {
            self.fatal = Some(self.describe_mismatch(value, "string", trail));
            return;
        };
        match time::normalise(text, precision) {
            Ok(Normal::AsIs) => {}
            Ok(Normal::Rewritten(text)) => *value = text.into(),
            Ok(Normal::Zero) => *value = Value::Null,
            Err(message) => self.fatal = Some(message),
        }
    }
}

/// Writes a float as Go does: without a fraction if it has none.
fn shorten(number: &mut Number) {
    let Some(float) = number.as_f64() else { return };
    #[expect(clippy::cast_possible_truncation, reason = "floats of this size hold every integer exactly")]
    if float.fract() == 0.0 && float.abs() < 9e15 {
        *number = (float as i64).into();
    } else if let Some(rounded) = Number::from_f64(float) {
        *number = rounded;
    }
}

/// Whether a text is base64 as Go writes it; false if Go would read it all the same, and the place of the
/// fault if it would not.
fn base64_fault(text: &str) -> Result<bool, usize> {
    let bytes = text.as_bytes();
    let is_newline = |at: usize| matches!(bytes.get(at), Some(b'\n' | b'\r'));
    let mut canonical = true;
    let (mut at, mut in_group, mut last) = (0, 0, 0);
    while at < bytes.len() {
        match (bytes[at], sextet(bytes[at])) {
            (_, Some(bits)) => {
                last = bits;
                in_group = (in_group + 1) % 4;
            }
            (b'\n' | b'\r', _) => canonical = false,
            (b'=', _) if in_group >= 2 => {
                let unused = if in_group == 2 { 0b1111 } else { 0b11 };
                canonical &= last & unused == 0;
                return padding_fault(bytes, at + 1, in_group, is_newline).map(|plain| canonical && plain);
            }
            _ => return Err(at),
        }
        at += 1;
    }
    if in_group == 0 { Ok(canonical) } else { Err(at - in_group) }
}

/// Checks what follows the first `=`, which ends at `at`.
fn padding_fault(
    bytes: &[u8],
    mut at: usize,
    in_group: usize,
    is_newline: impl Fn(usize) -> bool,
) -> Result<bool, usize> {
    let start = at;
    let needed = 3 - in_group;
    while is_newline(at) {
        at += 1;
    }
    if needed == 1 {
        match bytes.get(at) {
            None => return Err(bytes.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
    }
    while is_newline(at) {
        at += 1;
    }
    if at < bytes.len() { Err(at) } else { Ok(at == start + needed) }
}

const fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Writes base64 that Go can read the way that Go writes it.
fn recode(text: &mut String) {
    text.retain(|c| c != '\n' && c != '\r');
    // The text was checked, so it decodes; if it did not, it would stay as it is.
    if let Ok(bytes) = BASE64.decode(&*text) {
        *text = BASE64.encode(bytes);
    }
}
