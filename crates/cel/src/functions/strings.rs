//! Functions on texts, and regular expressions.

use super::{Function, failed, formatting, mismatch};
use crate::evaluate::{EvaluateError, Machine, Outcome};
use crate::go_regex;
use crate::value::Value;
use regex::Regex;
use std::cell::RefCell;
use std::collections::HashMap;

pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "contains" => |machine, args| match args {
            [Value::String(text), Value::String(part)] => {
                machine.work(len(text.len()))?;
                Ok(Value::Bool(text.contains(&**part)))
            }
            _ => mismatch(),
        },
        "startsWith" => |_, args| match args {
            [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.starts_with(&**part))),
            _ => mismatch(),
        },
        "endsWith" => |_, args| match args {
            [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.ends_with(&**part))),
            _ => mismatch(),
        },
        "matches" => |_, args| match args {
            [Value::String(text), Value::String(pattern)] => {
                let found = with_regex(pattern, |regex| regex.is_match(text));
                found.map_or_else(failed, |found| Ok(Value::Bool(found)))
            }
            _ => mismatch(),
        },
        "find" => find,
        "findAll" => find_all,
        "charAt" => char_at,
        "indexOf" => index_of,
        "lastIndexOf" => last_index_of,
        "lowerAscii" => |machine, args| mapped(machine, args, str::to_ascii_lowercase),
        "upperAscii" => |machine, args| mapped(machine, args, str::to_ascii_uppercase),
        "trim" => |machine, args| mapped(machine, args, |text| text.trim_matches(is_go_space).to_owned()),
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "format" => formatting::format,
        "strings.quote" => quote,
        _ => return None,
    })
}

fn len(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// What Go's `strings.TrimSpace` takes off.
fn is_go_space(character: char) -> bool {
    character.is_whitespace() && character != '\u{1c}'
}

/// Applies a pattern. Patterns come from rules again and again, and compiling one costs more than matching.
fn with_regex<T>(pattern: &str, apply: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    const KEPT_MAX: usize = 256;
    const PATTERN_BYTES_MAX: usize = 1024;
    thread_local! {
        // One cache for each thread, so that nobody waits while another thread compiles.
        static CACHE: RefCell<HashMap<String, Regex>> = RefCell::default();
    }
    let known = CACHE.with_borrow(|cache| cache.get(pattern).cloned());
    if let Some(regex) = known {
        return Ok(apply(&regex));
    }
    let regex = go_regex::compile(pattern)?;
    if pattern.len() <= PATTERN_BYTES_MAX {
        CACHE.with_borrow_mut(|cache| {
            // Patterns can come out of objects, so their number is bounded.
            if cache.len() >= KEPT_MAX {
                cache.clear();
            }
            cache.insert(pattern.to_owned(), regex.clone());
        });
    }
    Ok(apply(&regex))
}

fn illegal(error: &str) -> Outcome {
    failed(format!("Illegal regex: {error}"))
}

fn find(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(pattern)] = args else { return mismatch() };
    machine.reserve(text.len())?;
    let found = with_regex(pattern, |regex| regex.find(text).map_or("", |found| found.as_str()).to_owned());
    found.map_or_else(|error| illegal(&error), |found| Ok(found.into()))
}

fn find_all(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (text, pattern, count) = match args {
        [Value::String(text), Value::String(pattern)] => (text, pattern, -1),
        [Value::String(text), Value::String(pattern), Value::Int(count)] => (text, pattern, *count),
        _ => return mismatch(),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    machine.reserve_items(text.len().min(count).saturating_add(1))?;
    machine.reserve(text.len())?;
    let all = with_regex(pattern, |regex| {
        regex.find_iter(text).take(count).map(|found| found.as_str().into()).collect::<Vec<Value>>()
    });
    all.map_or_else(|error| illegal(&error), |all| Ok(Value::list(all)))
}

fn mapped(machine: &mut Machine<'_>, args: &[Value], apply: fn(&str) -> String) -> Outcome {
    let [Value::String(text)] = args else { return mismatch() };
    machine.reserve(text.len())?;
    Ok(apply(text).into())
}

fn out_of_range<T>(index: i64) -> Result<T, EvaluateError> {
    failed(format!("index out of range: {index}"))
}

/// The byte at which a character starts; the end for the number of characters; none beyond.
fn byte_at(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

fn char_at(_: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::Int(index)] = args else { return mismatch() };
    match byte_at(text, *index) {
        Some(at) => Ok(text[at..].chars().next().map_or_else(String::new, String::from).into()),
        None => out_of_range(*index),
    }
}

fn characters(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn index_of(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (text, part, offset) = match args {
        [Value::List(_), _] => return super::lists::index_of(machine, args),
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(offset)] => (text, part, *offset),
        _ => return mismatch(),
    };
    machine.work(len(text.len()))?;
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return out_of_range(offset);
    }
    let Some(start) = byte_at(text, offset) else { return Ok(Value::Int(-1)) };
    Ok(Value::Int(text[start..].find(&**part).map_or(-1, |at| offset + characters(&text[start..start + at]))))
}

fn last_index_of(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (text, part, offset) = match args {
        [Value::List(_), _] => return super::lists::last_index_of(machine, args),
        [Value::String(text), Value::String(part)] if part.is_empty() => {
            return Ok(Value::Int(characters(text)));
        }
        [Value::String(text), Value::String(part)] if text.len() < part.len() => return Ok(Value::Int(-1)),
        [Value::String(text), Value::String(part)] => (text, part, characters(text) - 1),
        [Value::String(text), Value::String(part), Value::Int(offset)] => (text, part, *offset),
        _ => return mismatch(),
    };
    machine.work(len(text.len()))?;
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return out_of_range(offset);
    }
    if offset >= characters(text) {
        return Ok(Value::Int(-1));
    }
    let Some(start) = byte_at(text, offset) else { return Ok(Value::Int(-1)) };
    // The part may start at the offset and end behind it.
    let mut end = start.saturating_add(part.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let found = text[..end].rfind(&**part).filter(|at| *at <= start);
    Ok(Value::Int(found.map_or(-1, |at| characters(&text[..at]))))
}

fn replace(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (text, old, new, count) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, usize::MAX),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(count)] => {
            (text, old, new, usize::try_from(*count).unwrap_or(usize::MAX))
        }
        _ => return mismatch(),
    };
    machine.work(len(text.len()))?;
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.matches(&**old).count() };
    let places = places.min(count);
    let grown = new.len().saturating_sub(old.len()).saturating_mul(places);
    machine.reserve(text.len().saturating_add(grown))?;
    Ok(text.replacen(&**old, new, count).into())
}

fn split(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (text, by, count) = match args {
        [Value::String(text), Value::String(by)] => (text, by, usize::MAX),
        [_, _, Value::Int(0)] => return Ok(Value::list(Vec::new())),
        [Value::String(text), Value::String(by), Value::Int(count)] => {
            (text, by, usize::try_from(*count).unwrap_or(usize::MAX))
        }
        _ => return mismatch(),
    };
    machine.work(len(text.len()))?;
    let parts = if by.is_empty() { text.chars().count() } else { text.matches(&**by).count() + 1 };
    machine.reserve_items(parts.min(count))?;
    machine.reserve(text.len())?;
    if by.is_empty() {
        let mut parts = Vec::new();
        let mut rest = &**text;
        while let Some(first) = rest.chars().next() {
            if parts.len() + 1 == count {
                parts.push(rest.into());
                break;
            }
            let (part, after) = rest.split_at(first.len_utf8());
            parts.push(part.into());
            rest = after;
        }
        return Ok(Value::list(parts));
    }
    Ok(Value::list(text.splitn(count, &**by).map(Value::from).collect()))
}

fn substring(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => {
            if start > end {
                return failed(format!("invalid substring range. start: {start}, end: {end}"));
            }
            (text, *start, Some(*end))
        }
        _ => return mismatch(),
    };
    machine.reserve(text.len())?;
    let Some(from) = byte_at(text, start) else { return out_of_range(start) };
    let to = match end {
        None => text.len(),
        Some(end) => match byte_at(text, end) {
            Some(to) => to,
            None => return out_of_range(end),
        },
    };
    Ok(text[from..to].into())
}

fn join(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return mismatch(),
    };
    let mut texts = Vec::with_capacity(list.items.len());
    let mut bytes = list.items.len().saturating_mul(separator.len());
    for item in list.items.iter() {
        let Value::String(text) = item else { return failed("join: invalid input") };
        bytes = bytes.saturating_add(text.len());
        texts.push(&**text);
    }
    machine.reserve(bytes)?;
    Ok(texts.join(separator).into())
}

fn quote(machine: &mut Machine<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch() };
    machine.reserve(text.len() * 2 + 2)?;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    Ok(out.into())
}
