//! Operators, and what macros use.

use super::{Function, failed, mismatch};
use crate::ast::operators as names;
use crate::evaluate::{EvaluateError, Machine, Outcome};
use crate::value::{Key, Map, Value};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        names::NOT => not,
        names::NEGATE => negate,
        names::EQUALS => equals,
        names::NOT_EQUALS => |machine, args| match equals(machine, args) {
            Ok(Value::Bool(flag)) => Ok(Value::Bool(!flag)),
            // Values that cannot be compared are not equal.
            Err(error) if error == EvaluateError::no_such_overload() => Ok(Value::Bool(true)),
            other => other,
        },
        names::LESS => |_, args| ordered(args, Ordering::is_lt),
        names::LESS_EQUALS => |_, args| ordered(args, Ordering::is_le),
        names::GREATER => |_, args| ordered(args, Ordering::is_gt),
        names::GREATER_EQUALS => |_, args| ordered(args, Ordering::is_ge),
        names::ADD => add,
        names::SUBTRACT => subtract,
        names::MULTIPLY => |_, args| match args {
            [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
            [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
            [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
            _ => mismatch(),
        },
        names::DIVIDE => |_, args| match args {
            [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => failed("division by zero"),
            [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
            [Value::Uint(a), Value::Uint(b)] => uint(a.checked_div(*b)),
            [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
            _ => mismatch(),
        },
        names::MODULO => |_, args| match args {
            [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => failed("modulus by zero"),
            [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
            [Value::Uint(a), Value::Uint(b)] => uint(a.checked_rem(*b)),
            _ => mismatch(),
        },
        // Errors never get here: evaluation takes them for true.
        names::NOT_STRICTLY_FALSE => |_, args| Ok(Value::Bool(args != [Value::Bool(false)])),
        names::IN => contains,
        names::MAP_INSERT => map_insert,
        _ => return None,
    })
}

pub(super) fn int(result: Option<i64>) -> Outcome {
    result.map(Value::Int).ok_or_else(|| EvaluateError::Failed("integer overflow".to_owned()))
}

pub(super) fn uint(result: Option<u64>) -> Outcome {
    result.map(Value::Uint).ok_or_else(|| EvaluateError::Failed("unsigned integer overflow".to_owned()))
}

fn duration(result: Option<i64>) -> Outcome {
    result.map(Value::Duration).ok_or_else(|| EvaluateError::Failed("integer overflow".to_owned()))
}

fn timestamp(result: Option<crate::time::Time>) -> Outcome {
    result.map(Value::Timestamp).ok_or_else(|| EvaluateError::Failed("timestamp overflow".to_owned()))
}

fn not(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Bool(flag)] => Ok(Value::Bool(!flag)),
        _ => mismatch(),
    }
}

fn negate(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a)] => int(a.checked_neg()),
        [Value::Double(a)] => Ok(Value::Double(-a)),
        _ => mismatch(),
    }
}

fn equals(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        // Values of Kubernetes' own types compare with their like only, and with null.
        [
            first @ (Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(_)
            | Value::Url(_)
            | Value::Semver(_)
            | Value::Format(_)),
            second,
        ] if *second != Value::Null && first.type_name() != second.type_name() => mismatch(),
        [first, second] => machine.equal(first, second).map(Value::Bool),
        _ => mismatch(),
    }
}

fn ordered(args: &[Value], test: fn(Ordering) -> bool) -> Outcome {
    let [first, second] = args else { return mismatch() };
    let nan = |value: &Value| matches!(value, Value::Double(double) if double.is_nan());
    match first.compare(second) {
        Some(ordering) => Ok(Value::Bool(test(ordering))),
        None if nan(first) || nan(second) => failed("NaN values cannot be ordered"),
        None => mismatch(),
    }
}

pub(super) fn add(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => {
            machine.reserve(a.len() + b.len())?;
            Ok(format!("{a}{b}").into())
        }
        [Value::Bytes(a), Value::Bytes(b)] => {
            machine.reserve(a.len() + b.len())?;
            Ok(Value::Bytes([&**a, &**b].concat().into()))
        }
        [Value::List(a), Value::List(b)] => {
            machine.reserve_items(a.items.len() + b.items.len())?;
            Ok(Value::List(a.add(b)))
        }
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_add(*b)),
        [Value::Timestamp(time), Value::Duration(by)] | [Value::Duration(by), Value::Timestamp(time)] => {
            timestamp(time.plus(*by))
        }
        _ => mismatch(),
    }
}

fn subtract(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_sub(*b)),
        [Value::Timestamp(time), Value::Duration(by)] => {
            timestamp(by.checked_neg().and_then(|by| time.plus(by)))
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => duration(a.since(*b)),
        _ => mismatch(),
    }
}

fn contains(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [item, Value::List(list)] => {
            for other in list.items.iter() {
                if machine.equal(item, other)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        [key, Value::Map(map)] => Ok(Value::Bool(key.key().is_some_and(|key| map.contains_key(&key)))),
        _ => mismatch(),
    }
}

fn map_insert(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (map, more): (&Arc<Map>, Vec<_>) = match args {
        [Value::Map(map), key, value] => {
            let key = key.key().ok_or_else(|| EvaluateError::Failed("unsupported key type".to_owned()))?;
            (map, vec![(key, value.clone())])
        }
        [Value::Map(map), Value::Map(other)] => {
            (map, other.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        _ => return mismatch(),
    };
    machine.reserve_items(2 * (map.len() + more.len()))?;
    let mut map = (**map).clone();
    for (key, value) in more {
        let shown = match &key {
            Key::String(text) => text.to_string(),
            Key::Int(int) => int.to_string(),
            Key::Uint(uint) => uint.to_string(),
            Key::Bool(flag) => flag.to_string(),
        };
        if map.insert(key, value).is_some() {
            return failed(format!("insert failed: key {shown} already exists"));
        }
    }
    Ok(Value::Map(Arc::new(map)))
}
