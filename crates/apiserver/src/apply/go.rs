//! Values as Go's `fmt` and `encoding/json` print them, where that text reaches clients.
//!
//! In an applied configuration whole numbers are integers however they are written; in `managedFields` all
//! numbers are floats.

use crate::field::go_quote;
use serde_json::{Number, Value};
use std::fmt::Write as _;

/// `%v` of a number of a configuration.
pub(super) fn number(number: &Number) -> String {
    let value = number.as_f64().unwrap_or_default();
    // Whole floats of this size print without exponent or fraction.
    let whole = value.fract() == 0.0 && value.abs() < 9.2e18;
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None if whole => value.to_string(),
        None => float(number),
    }
}

/// `%v` of a number as a float.
pub(super) fn float(number: &Number) -> String {
    let number = number.as_f64().unwrap_or_default();
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..6 => number.to_string(),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

/// `%v`.
pub(crate) fn plain(value: &Value) -> String {
    let spaced = |items: Vec<String>| items.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", spaced(items.iter().map(plain).collect())),
        Value::Object(map) => {
            format!("map[{}]", spaced(map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect()))
        }
    }
}

/// `%#v`.
pub(super) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("{}{{{}}}", type_name(value), items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(k, v)| format!("{}:{}", go_quote(k), syntax(v))).collect();
            format!("{}{{{}}}", type_name(value), entries.join(", "))
        }
        scalar => plain(scalar),
    }
}

/// `%T`.
pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `json.Marshal`: compact, keys sorted, the characters that matter to HTML escaped.
pub(super) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

/// [`json`] at the end of a text.
pub(super) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_json_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json_text(key, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

fn write_number(number: &Number, out: &mut String) {
    let magnitude = number.as_f64().unwrap_or_default().abs();
    let text = match number.as_f64() {
        // Go writes neither `1.0` nor an exponent for numbers of this size.
        Some(float) if number.is_f64() && (magnitude == 0.0 || (1e-6..1e21).contains(&magnitude)) => {
            float.to_string()
        }
        _ => number.to_string(),
    };
    out.push_str(&text);
}

/// A text as JSON.
pub(super) fn write_json_text(text: &str, out: &mut String) {
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
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
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
            (json!(12_345_678_901_234_567_890_u64), "1.2345678901234567e+19", "1.2345678901234567e+19"),
        ];
        for (value, as_float, as_written) in cases {
            let Value::Number(value) = value else { panic!("a number") };
            assert_eq!((float(&value).as_str(), number(&value).as_str()), (as_float, as_written));
        }
    }

    #[test]
    fn values_print_as_in_go() {
        let value = json!({"a": [1, "x", null, true, {"b": 1.5}], "q": "a\"b<c>"});
        assert_eq!(plain(&value), "map[a:[1 x <nil> true map[b:1.5]] q:a\"b<c>]");
        assert_eq!(
            syntax(&value),
            "map[string]interface {}{\"a\":[]interface {}{1, \"x\", interface {}(nil), true, \
             map[string]interface {}{\"b\":1.5}}, \"q\":\"a\\\"b<c>\"}"
        );
        assert_eq!(json(&value), r#"{"a":[1,"x",null,true,{"b":1.5}],"q":"a\"b\u003cc\u003e"}"#);
        assert_eq!(json(&json!([1.0, 1_000_000, 1e20])), "[1,1000000,100000000000000000000]");
    }
}
