//! `'%s is %d'.format([…])`

use super::text::{go_float, go_quote};
use super::{failed, mismatch};
use crate::evaluate::{Machine, Outcome};
use crate::format::{Clause, Part, next_part, read_clause};
use crate::time;
use crate::value::{Key, Value};
use std::fmt::Write as _;

/// Digits behind the point where none are asked for.
const PRECISION: usize = 6;

pub(super) fn format(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::String(pattern), Value::List(list)] = args else { return mismatch() };
    machine.reserve(pattern.len())?;
    let mut out = String::new();
    let mut rest = &**pattern;
    let mut next = 0;
    while let Some((part, behind)) = next_part(rest) {
        rest = behind;
        let clause = match part {
            Part::Text(text) => {
                out.push_str(text);
                continue;
            }
            Part::Percent("") => return failed("unexpected end of string"),
            Part::Percent(clause) => clause,
        };
        let Some(argument) = list.items.get(next) else {
            return failed(format!("index {next} out of range"));
        };
        next += 1;
        let (clause, precision, behind) = match read_clause(clause) {
            Ok(found) => found,
            Err(message) => return failed(message),
        };
        let precision = precision.unwrap_or(PRECISION);
        machine.reserve(precision)?;
        let text = match render(clause, precision, argument) {
            Ok(text) => text,
            Err(message) => return failed(format!("error during formatting: {message}")),
        };
        machine.reserve(text.len())?;
        out.push_str(&text);
        rest = behind;
    }
    Ok(out.into())
}

fn render(clause: Clause, precision: usize, value: &Value) -> Result<String, String> {
    let refused = || Err(clause.refusal(value.type_name()));
    // The standard library refuses more digits.
    let precision = precision.min(usize::from(u16::MAX));
    match (clause, value) {
        (Clause::Text, _) => string(value),
        (Clause::Decimal, Value::Int(int)) => Ok(int.to_string()),
        (Clause::Decimal, Value::Uint(uint)) => Ok(uint.to_string()),
        (Clause::Fixed, _) => double(value).map_or_else(refused, |double| Ok(fixed(double, precision))),
        (Clause::Scientific, _) => {
            double(value).map_or_else(refused, |double| Ok(scientific(double, precision)))
        }
        (Clause::Binary, Value::Int(int)) => Ok(signed(*int, &format!("{:b}", int.unsigned_abs()))),
        (Clause::Binary, Value::Uint(uint)) => Ok(format!("{uint:b}")),
        (Clause::Binary, Value::Bool(flag)) => Ok(u8::from(*flag).to_string()),
        (Clause::Octal, Value::Int(int)) => Ok(signed(*int, &format!("{:o}", int.unsigned_abs()))),
        (Clause::Octal, Value::Uint(uint)) => Ok(format!("{uint:o}")),
        (Clause::Hex { upper }, _) => {
            let hex = match value {
                Value::Int(int) => signed(*int, &format!("{:x}", int.unsigned_abs())),
                Value::Uint(uint) => format!("{uint:x}"),
                Value::String(text) => hex(text.as_bytes()),
                Value::Bytes(bytes) => hex(bytes),
                _ => return refused(),
            };
            Ok(if upper { hex.to_uppercase() } else { hex })
        }
        _ => refused(),
    }
}

fn signed(int: i64, digits: &str) -> String {
    if int < 0 { format!("-{digits}") } else { digits.to_owned() }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Text cannot fail to be written to.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(double) => Some(*double),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// In English notation, with commas between thousands.
fn fixed(double: f64, precision: usize) -> String {
    if !double.is_finite() {
        return special(double);
    }
    let double = if double == 0.0 { 0.0 } else { double };
    let text = format!("{double:.precision$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

fn special(double: f64) -> String {
    let text = if double.is_nan() {
        "NaN"
    } else if double > 0.0 {
        "∞"
    } else {
        "-∞"
    };
    text.to_owned()
}

/// Kubernetes takes the precision for the width, and always writes six digits.
fn scientific(double: f64, width: usize) -> String {
    if !double.is_finite() {
        return format!("{:>width$}", special(double));
    }
    let double = if double == 0.0 { 0.0 } else { double };
    let text = format!("{double:.PRECISION$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("⁻", rest));
    let raised = |digit: char| digit.to_digit(10).and_then(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize));
    let exponent: String = format!("{exponent:0>2}").chars().filter_map(raised).collect();
    format!("{:>width$}", format!("{digits}×10{sign}{exponent}"))
}

fn string(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => go_float(*double),
        Value::String(text) | Value::Type(text) => text.to_string(),
        Value::Bytes(bytes) => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                text.to_owned()
            } else {
                let why = "invalid UTF-8 in bytes, cannot convert to string";
                return Err(format!("could not convert argument \"{why}\" to string"));
            }
        }
        Value::Timestamp(timestamp) => timestamp.text(),
        Value::Duration(nanoseconds) => time::duration_text(*nanoseconds),
        Value::List(list) => {
            let items: Result<Vec<String>, String> = list.items.iter().map(member).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.iter() {
                let key = match key {
                    Key::String(text) => go_quote(text),
                    other => string(&Value::from(other.clone()))?,
                };
                entries.push((key, member(value)?));
            }
            entries.sort();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => return Err(Clause::Text.refusal(other.type_name())),
    })
}

/// A value within a list or a map, as a literal.
fn member(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => go_quote(text),
        Value::Bytes(_) => format!("b{}", go_quote(&string(value)?)),
        Value::Double(double) if double.is_finite() => format!("{double:.6}"),
        Value::Double(double) => go_quote(&go_float(*double)),
        Value::Timestamp(_) => format!("timestamp({})", go_quote(&string(value)?)),
        Value::Duration(_) => format!("duration({})", go_quote(&string(value)?)),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Type(_)
        | Value::List(_)
        | Value::Map(_) => string(value)?,
        other => return Err(format!("no formatting function for {}", other.type_name())),
    })
}
