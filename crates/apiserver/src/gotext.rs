//! Values as Go prints them.
//!
//! Kubernetes puts values into its messages with `%v`, `%q` and `json.Marshal`; clients match on the
//! result, so numbers and nested JSON must come out character for character the same.

use crate::field::go_quote;
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
    #[expect(clippy::cast_precision_loss, reason = "kubernetes compares so, too")]
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

/// A float as `%v` prints it: shortest form, with an exponent from a million up and below 1e-4.
pub(crate) fn go_float(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..6 => float.to_string(),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

/// `%v` of a number of an applied configuration, where whole numbers are integers however they are written.
pub(crate) fn go_number(number: &Number) -> String {
    let value = number.as_f64().unwrap_or_default();
    // Whole floats of this size print without exponent or fraction.
    let whole = value.fract() == 0.0 && value.abs() < 9.2e18;
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None if whole => value.to_string(),
        None => go_float(value),
    }
}

/// `%v`.
pub(crate) fn go_plain(value: &Value) -> String {
    let spaced = |items: Vec<String>| items.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(value) => go_number(value),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", spaced(items.iter().map(go_plain).collect())),
        Value::Object(map) => {
            format!("map[{}]", spaced(map.iter().map(|(k, v)| format!("{k}:{}", go_plain(v))).collect()))
        }
    }
}

/// `%#v`.
pub(crate) fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("{}{{{}}}", go_type(value), items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(k, v)| format!("{}:{}", go_quote(k), go_syntax(v))).collect();
            format!("{}{{{}}}", go_type(value), entries.join(", "))
        }
        scalar => go_plain(scalar),
    }
}

/// `%T`.
pub(crate) const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's JSON decoder calls the type of a value that it refuses.
pub(crate) const fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as `json.Marshal` writes it: sorted keys, `<`, `>` and `&` escaped.
pub(crate) fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

/// [`go_json`] at the end of a text.
pub(crate) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match GoNumber::of(number) {
            // Writing to a String cannot fail, here and below.
            GoNumber::Int(int) => drop(write!(out, "{int}")),
            GoNumber::Float(float) if float == 0.0 || (1e-6..1e21).contains(&float.abs()) => {
                let _ = write!(out, "{float}");
            }
            GoNumber::Float(float) => {
                let text = format!("{float:e}");
                out.push_str(&if float.abs() < 1.0 { text } else { text.replace('e', "e+") });
            }
        },
        Value::String(text) => write_json_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_text(key, out);
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
    }
}

/// A text as JSON.
pub(crate) fn write_json_text(text: &str, out: &mut String) {
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
    fn floats_turn_scientific_at_a_million() {
        let cases = [
            (json!(0), "0", "0"),
            (json!(80), "80", "80"),
            (json!(999_999), "999999", "999999"),
            (json!(1_000_000), "1e+06", "1000000"),
            (json!(1.5e7), "1.5e+07", "15000000"),
            (json!(1_500_000.5), "1.5000005e+06", "1.5000005e+06"),
            (json!(1.5), "1.5", "1.5"),
            (json!(0.0001), "0.0001", "0.0001"),
            (json!(0.00001), "1e-05", "1e-05"),
            (json!(-1e6), "-1e+06", "-1000000"),
            (json!(-2.5e300), "-2.5e+300", "-2.5e+300"),
            (json!(12_345_678_901_234_567_890_u64), "1.2345678901234567e+19", "1.2345678901234567e+19"),
        ];
        for (value, as_float, as_written) in cases {
            let Value::Number(value) = value else { panic!("a number") };
            assert_eq!(
                (go_float(value.as_f64().unwrap()), go_number(&value)),
                (as_float.into(), as_written.into())
            );
        }
    }

    #[test]
    fn values_print_as_in_go() {
        let value = json!({"a": [1, "x", null, true, {"b": 1.5}], "q": "a\"b<c>"});
        assert_eq!(go_plain(&value), "map[a:[1 x <nil> true map[b:1.5]] q:a\"b<c>]");
        assert_eq!(
            go_syntax(&value),
            "map[string]interface {}{\"a\":[]interface {}{1, \"x\", interface {}(nil), true, \
             map[string]interface {}{\"b\":1.5}}, \"q\":\"a\\\"b<c>\"}"
        );
        assert_eq!(go_json(&value), r#"{"a":[1,"x",null,true,{"b":1.5}],"q":"a\"b\u003cc\u003e"}"#);
        assert_eq!(
            go_json(&json!([1.0, 1_000_000, 1e20, 0.00001])),
            "[1,1000000,100000000000000000000,0.00001]"
        );
        assert_eq!(go_json(&json!([1.5e21, 1e-7, -0.0])), "[1.5e+21,1e-7,-0]");
    }
}
