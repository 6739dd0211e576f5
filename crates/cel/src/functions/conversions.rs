//! Conversions between types, and optional values.

use super::operators::{int, uint};
use super::text::go_float;
use super::{Function, failed, mismatch};
use crate::evaluate::{EvaluateError, Machine, Outcome};
use crate::time;
use crate::value::Value;

pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "dyn" => |_, args| args.first().cloned().map_or_else(mismatch, Ok),
        "type" => |_, args| match args {
            [value] => Ok(Value::Type(value.type_name().into())),
            _ => mismatch(),
        },
        "size" => size,
        "int" => to_int,
        "uint" => to_uint,
        "double" => to_double,
        "bool" => to_bool,
        "string" => to_string,
        "bytes" => to_bytes,
        "duration" => to_duration,
        "timestamp" => to_timestamp,
        "optional.none" => |_, _| Ok(Value::Optional(None)),
        "optional.of" => {
            |_, args| args.first().cloned().map_or_else(mismatch, |value| Ok(Value::some(value)))
        }
        "optional.ofNonZeroValue" => |_, args| match args {
            [value] if is_zero(value) => Ok(Value::Optional(None)),
            [value] => Ok(Value::some(value.clone())),
            _ => mismatch(),
        },
        "hasValue" => |_, args| match args {
            [Value::Optional(inner)] => Ok(Value::Bool(inner.is_some())),
            _ => mismatch(),
        },
        "value" => |_, args| match args {
            [Value::Optional(Some(inner))] => Ok((**inner).clone()),
            [Value::Optional(None)] => failed("optional.none() dereference"),
            _ => mismatch(),
        },
        "optional.unwrap" | "unwrapOpt" => unwrap_all,
        _ => return None,
    })
}

fn unconvertible(to: &str) -> EvaluateError {
    EvaluateError::Failed(format!("type conversion error from 'string' to '{to}'"))
}

fn size(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(value.size().and_then(|size| i64::try_from(size).ok()).unwrap_or(i64::MAX)))
        }
        _ => mismatch(),
    }
}

fn unwrap_all(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::List(list)] = args else { return mismatch() };
    machine.reserve_items(list.items.len())?;
    let mut items = Vec::new();
    for item in list.items.iter() {
        match item {
            Value::Optional(inner) => items.extend(inner.as_ref().map(|inner| (**inner).clone())),
            _ => return mismatch(),
        }
    }
    Ok(Value::list(items))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn to_int(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => int(i64::try_from(*value).ok()),
        [Value::Double(value)] => {
            let fits = *value > -9_223_372_036_854_775_808.0 && *value < 9_223_372_036_854_775_807.0;
            int(fits.then_some(*value as i64))
        }
        [Value::String(text)] => go_integer(text)
            .and_then(|text| text.parse().ok())
            .map(Value::Int)
            .ok_or_else(|| unconvertible("int")),
        [Value::Timestamp(time)] => Ok(Value::Int(time.seconds())),
        [Value::Duration(nanoseconds)] => Ok(Value::Int(*nanoseconds)),
        _ => mismatch(),
    }
}

/// The text if it is digits with a sign, as Go wants them.
fn go_integer(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn to_uint(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => uint(u64::try_from(*value).ok()),
        [Value::Double(value)] => {
            uint((*value >= 0.0 && *value < 18_446_744_073_709_551_615.0).then_some(*value as u64))
        }
        [Value::String(text)] => {
            let digits = go_integer(text).filter(|text| !text.starts_with(['+', '-']));
            digits.and_then(|text| text.parse().ok()).map(Value::Uint).ok_or_else(|| unconvertible("uint"))
        }
        _ => mismatch(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as the conversion is defined")]
fn to_double(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => {
            // Go refuses what does not fit, unless it says so itself.
            let parsed = text.parse::<f64>().ok();
            let named = text.trim_start_matches(['+', '-']).starts_with(['i', 'I', 'n', 'N']);
            parsed
                .filter(|double| double.is_finite() || named)
                .map(Value::Double)
                .ok_or_else(|| unconvertible("double"))
        }
        _ => mismatch(),
    }
}

fn to_bool(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Bool(flag)] => Ok(Value::Bool(*flag)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unconvertible("bool")),
        },
        _ => mismatch(),
    }
}

fn to_string(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [value] = args else { return mismatch() };
    Ok(match value {
        Value::String(text) => Value::String(text.clone()),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Int(int) => int.to_string().into(),
        Value::Uint(uint) => uint.to_string().into(),
        Value::Double(double) => go_float(*double).into(),
        Value::Bytes(bytes) => {
            machine.reserve(bytes.len())?;
            match std::str::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(_) => return failed("invalid UTF-8 in bytes, cannot convert to string"),
            }
        }
        Value::Timestamp(timestamp) => timestamp.text().into(),
        Value::Duration(nanoseconds) => time::duration_text(*nanoseconds).into(),
        Value::Ip(ip) => ip.to_string().into(),
        Value::Cidr(cidr) => cidr.to_string().into(),
        _ => return mismatch(),
    })
}

fn to_bytes(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => {
            machine.reserve(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        _ => mismatch(),
    }
}

fn to_duration(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(nanoseconds)] => Ok(Value::Duration(*nanoseconds)),
        // Kubernetes declares this conversion, and cannot do it.
        [Value::Int(_)] => failed("type conversion error from 'int' to 'google.protobuf.Duration'"),
        [Value::String(text)] => time::parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| unconvertible("google.protobuf.Duration")),
        _ => mismatch(),
    }
}

fn to_timestamp(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Timestamp(timestamp)] => Ok(Value::Timestamp(*timestamp)),
        [Value::Int(seconds)] => {
            let timestamp = time::Time::from_seconds(*seconds);
            timestamp
                .map_or_else(|| failed("timestamp overflow"), |timestamp| Ok(Value::Timestamp(timestamp)))
        }
        [Value::String(text)] => time::parse_timestamp(text)
            .map(Value::Timestamp)
            .ok_or_else(|| unconvertible("google.protobuf.Timestamp")),
        _ => mismatch(),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Optional(None) => true,
        Value::Bool(flag) => !flag,
        Value::Int(int) | Value::Duration(int) => *int == 0,
        Value::Uint(uint) => *uint == 0,
        Value::Double(double) => *double == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.items.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}
