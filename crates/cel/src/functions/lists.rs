//! Functions on lists and sets.

use super::{Function, failed, mismatch, operators};
use crate::evaluate::{EvaluateError, Machine, Outcome};
use crate::value::{List, Value};
use std::cmp::Ordering;

pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => is_sorted,
        "sum" => sum,
        "min" => |_, args| extreme(args, "min", Ordering::is_gt),
        "max" => |_, args| extreme(args, "max", Ordering::is_lt),
        "slice" => slice,
        "flatten" => flatten,
        "sort" => |machine, args| match args {
            [Value::List(list)] => sorted(machine, list, list),
            _ => mismatch(),
        },
        "@sortByAssociatedKeys" => |machine, args| match args {
            [Value::List(list), Value::List(keys)] => sorted(machine, list, keys),
            _ => mismatch(),
        },
        "lists.range" => |machine, args| match args {
            [Value::Int(count)] => {
                machine.reserve_items(usize::try_from(*count).unwrap_or(0))?;
                Ok(Value::list((0..*count).map(Value::Int).collect()))
            }
            _ => mismatch(),
        },
        "reverse" => |machine, args| match args {
            [Value::List(list)] => {
                machine.reserve_items(list.items.len())?;
                Ok(Value::list(list.items.iter().rev().cloned().collect()))
            }
            _ => mismatch(),
        },
        "distinct" => distinct,
        "first" => |_, args| match args {
            [Value::List(list)] => Ok(list.items.first().cloned().map_or(Value::Optional(None), Value::some)),
            _ => mismatch(),
        },
        "last" => |_, args| match args {
            [Value::List(list)] => Ok(list.items.last().cloned().map_or(Value::Optional(None), Value::some)),
            _ => mismatch(),
        },
        "sets.contains" => |machine, args| match args {
            [Value::List(list), Value::List(part)] => contains_all(machine, list, part).map(Value::Bool),
            _ => mismatch(),
        },
        "sets.equivalent" => |machine, args| match args {
            [Value::List(first), Value::List(second)] => {
                let both = contains_all(machine, first, second)? && contains_all(machine, second, first)?;
                Ok(Value::Bool(both))
            }
            _ => mismatch(),
        },
        "sets.intersects" => |machine, args| match args {
            [Value::List(first), Value::List(second)] => {
                for item in first.items.iter() {
                    if position(machine, second, item, false)?.is_some() {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            _ => mismatch(),
        },
        _ => return None,
    })
}

fn position(
    machine: &mut Machine<'_>,
    list: &List,
    item: &Value,
    last: bool,
) -> Result<Option<usize>, EvaluateError> {
    let count = list.items.len();
    for index in 0..count {
        let index = if last { count - 1 - index } else { index };
        if machine.equal(&list.items[index], item)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn contains_all(machine: &mut Machine<'_>, list: &List, part: &List) -> Result<bool, EvaluateError> {
    for item in part.items.iter() {
        if position(machine, list, item, false)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn index(found: Option<usize>) -> Value {
    Value::Int(found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1))
}

pub(super) fn index_of(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::List(list), item] => Ok(index(position(machine, list, item, false)?)),
        _ => mismatch(),
    }
}

pub(super) fn last_index_of(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::List(list), item] => Ok(index(position(machine, list, item, true)?)),
        _ => mismatch(),
    }
}

fn is_sorted(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::List(list)] = args else { return mismatch() };
    let rises = |pair: &[Value]| pair[0].compare(&pair[1]) != Some(Ordering::Greater);
    Ok(Value::Bool(list.items.windows(2).all(rises)))
}

fn sum(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::List(list)] = args else { return mismatch() };
    let mut total = match list.items.first() {
        None => return Ok(Value::Int(0)),
        Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        Some(_) => return mismatch(),
    };
    for item in list.items.iter() {
        total = operators::add(machine, &[total, item.clone()])?;
    }
    Ok(total)
}

fn extreme(args: &[Value], name: &str, prefers_next: fn(Ordering) -> bool) -> Outcome {
    let [Value::List(list)] = args else { return mismatch() };
    let mut best: Option<&Value> = None;
    for item in list.items.iter() {
        best = Some(match best {
            Some(best) if !best.compare(item).is_some_and(prefers_next) => best,
            _ => item,
        });
    }
    best.cloned().map_or_else(|| failed(format!("{name} called on empty list")), Ok)
}

fn slice(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else { return mismatch() };
    let call = format!("cannot slice({start}, {end})");
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return failed(format!("{call}, negative indexes not supported"));
    };
    if from > to {
        return failed(format!("{call}, start index must be less than or equal to end index"));
    }
    let Some(items) = list.items.get(from..to) else {
        return failed(format!("{call}, list is length {}", list.items.len()));
    };
    machine.reserve_items(items.len())?;
    Ok(Value::list(items.to_vec()))
}

fn flatten(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (list, depth) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return mismatch(),
    };
    if depth < 0 {
        return failed("level must be non-negative");
    }
    let mut out = Vec::new();
    flatten_into(machine, list, depth, &mut out)?;
    Ok(Value::list(out))
}

fn flatten_into(
    machine: &mut Machine<'_>,
    list: &List,
    depth: i64,
    out: &mut Vec<Value>,
) -> Result<(), EvaluateError> {
    for item in list.items.iter() {
        match item {
            Value::List(inner) if depth > 0 => flatten_into(machine, inner, depth - 1, out)?,
            other => {
                machine.reserve_items(1)?;
                out.push(other.clone());
            }
        }
    }
    Ok(())
}

fn sorted(machine: &mut Machine<'_>, list: &List, keys: &List) -> Outcome {
    let (count, key_count) = (list.items.len(), keys.items.len());
    if count != key_count {
        return failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got \
             {count} and {key_count} elements respectively"
        ));
    }
    let Some(first) = keys.items.first() else { return Ok(Value::List(list.clone())) };
    if first.compare(first).is_none() {
        return failed("list elements must be comparable");
    }
    if keys.items.iter().any(|key| key.type_name() != first.type_name()) {
        return failed("list elements must have the same type");
    }
    machine.reserve_items(count.saturating_mul(2))?;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| keys.items[*a].compare(&keys.items[*b]).unwrap_or(Ordering::Equal));
    Ok(Value::list(order.into_iter().map(|index| list.items[index].clone()).collect()))
}

fn distinct(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::List(list)] = args else { return mismatch() };
    machine.reserve_items(list.items.len())?;
    let mut unique = List { items: std::sync::Arc::default(), identity: crate::value::Identity::Place };
    for item in list.items.iter() {
        if position(machine, &unique, item, false)?.is_none() {
            std::sync::Arc::make_mut(&mut unique.items).push(item.clone());
        }
    }
    Ok(Value::List(unique))
}
