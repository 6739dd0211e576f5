//! Values as Go prints them.
//!
//! Kubernetes puts values into its messages with `%v`, `%q` and `json.Marshal`; clients match on the
//! result, so numbers and nested JSON must come out character for character the same.

use serde_json::{Number, Value};
use std::fmt::Write as _;

/// A JSON number as Go holds it after decoding: an integer if it fits 64 signed bits, else a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoNumber {
    Int(i64),
    Float(f64),
}

impl GoNumber {
    /// Reads a JSON number.
    pub(crate) fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(int) => GoNumber::Int(int),
            None => GoNumber::Float(number.as_f64().unwrap_or(f64::MAX)),
        }
    }

    /// The value as a float, with the precision that has.
    #[allow(clippy::cast_precision_loss)] // Kubernetes compares so, too
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            GoNumber::Int(int) => int as f64,
            GoNumber::Float(float) => float,
        }
    }
}

impl std::fmt::Display for GoNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GoNumber::Int(int) => write!(f, "{int}"),
            GoNumber::Float(float) => f.write_str(&go_float(*float)),
        }
    }
}

/// A float as `%v` prints it: shortest form, with an exponent from 1e21 up and below 1e-4.
pub(crate) fn go_float(float: f64) -> String {
    with_exponent_outside(float, 1e-4)
}

fn with_exponent_outside(float: f64, smallest: f64) -> String {
    let size = float.abs();
    if size != 0.0 && (size < smallest || size >= 1e21) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(positive) => ('-', positive),
            None => ('+', exponent),
        };
        format!("{digits}e{sign}{exponent:0>2}")
    } else {
        format!("{float}")
    }
}

/// A value as `json.Marshal` writes it: sorted keys, `<`, `>` and `&` escaped.
pub(crate) fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match GoNumber::of(number) {
            // Writing to a String cannot fail, here and below.
            GoNumber::Int(int) => drop(write!(out, "{int}")),
            GoNumber::Float(float) => out.push_str(&with_exponent_outside(float, 1e-6)),
        },
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write_json(out, item);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => drop(write!(out, "\\u{:04x}", c as u32)),
            c if (c as u32) < 0x20 => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_print_like_go() {
        let cases = [
            (1.0, "1"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (0.00001, "1e-05"),
            (0.0001, "0.0001"),
            (-2.5e300, "-2.5e+300"),
        ];
        for (float, text) in cases {
            assert_eq!(go_float(float), text);
        }
    }

    #[test]
    fn json_prints_like_go() {
        let value = json!({"b": "<a&b>", "a": [1, 1.5, null, true, 0.00001]});
        assert_eq!(go_json(&value), r#"{"a":[1,1.5,null,true,0.00001],"b":"\u003ca\u0026b\u003e"}"#);
    }
}
