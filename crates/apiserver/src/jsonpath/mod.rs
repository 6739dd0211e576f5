//! The `JSONPath` dialect of Kubernetes, as far as printer columns, selectable fields and scale paths use it.
//!
//! A path is parsed once and evaluated often. Evaluation never fails loudly: what kube-apiserver
//! treats as an evaluation error (an index out of bounds, a comparison of unlike things) is
//! [`Unresolved`], a missing field is an empty result.

mod parse;
#[cfg(test)]
mod tests;

use serde_json::{Number, Value};

/// A parsed path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    nodes: Vec<Node>,
}

/// The text is not a path; the reason in kubectl's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadPath(String);

/// The path cannot be evaluated against this object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unresolved;

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Node>>),
    Exists(Vec<Node>),
    Compare {
        left: Vec<Node>,
        by: Option<Comparison>,
        right: Vec<Node>,
    },
    Literal(Value),
    /// A bare word, which only templates (`range`, `end`) understand.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// `[-1]`: the end was computed from the start, and 0 means "up to the last".
    single: bool,
    step: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path without its braces. Text after a closing brace is ignored.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, BadPath> {
        parse::parse(text).map(|nodes| JsonPath { nodes }).map_err(BadPath)
    }

    /// The first value the path leads to, if any.
    pub(crate) fn first<'a>(&'a self, object: &'a Value) -> Option<&'a Value> {
        // Plain field paths, by far the most, need no lists.
        let mut at = object;
        for (index, node) in self.nodes.iter().enumerate() {
            let Node::Field(name) = node else {
                let mut left = VALUES_MAX;
                return walk(vec![at], &self.nodes[index..], &mut left).ok()?.first().copied();
            };
            at = at.get(name.as_str())?;
        }
        Some(at)
    }
}

/// How many values one evaluation may come across. A path can lead to the same value in many ways: each `..` goes on from
/// all that the one before it found.
const VALUES_MAX: usize = 1 << 20;

/// Counts values that were come across.
fn spend(left: &mut usize, values: usize) -> Result<(), Unresolved> {
    *left = left.checked_sub(values).ok_or(Unresolved)?;
    Ok(())
}

fn walk<'a>(
    mut values: Vec<&'a Value>,
    nodes: &'a [Node],
    left: &mut usize,
) -> Result<Vec<&'a Value>, Unresolved> {
    for node in nodes {
        values = step(values, node, left)?;
    }
    Ok(values)
}

fn step<'a>(
    values: Vec<&'a Value>,
    node: &'a Node,
    budget: &mut usize,
) -> Result<Vec<&'a Value>, Unresolved> {
    spend(budget, values.len())?;
    let mut out = Vec::new();
    match node {
        Node::Field(name) => out.extend(values.into_iter().filter_map(|v| v.get(name.as_str()))),
        Node::Wildcard => {
            for value in values {
                let children = children(value);
                spend(budget, children.len())?;
                out.extend(children);
            }
        }
        Node::Recursive => {
            for value in values {
                descend(value, &mut out, budget)?;
            }
        }
        Node::Slice(slice) => {
            for value in values {
                match value {
                    Value::Null => {}
                    Value::Array(items) => {
                        let before = out.len();
                        slice.select(items, &mut out)?;
                        spend(budget, out.len() - before)?;
                    }
                    _ => return Err(Unresolved),
                }
            }
        }
        Node::Union(branches) => {
            for branch in branches {
                spend(budget, values.len())?;
                out.extend(walk(values.clone(), branch, budget)?);
            }
        }
        Node::Exists(inner) => {
            for item in items_of(&values, budget)? {
                let found = walk(vec![item], inner, budget);
                // Having come across too much is not the same as not having found anything.
                spend(budget, 1)?;
                if found.is_ok_and(|found| !found.is_empty()) {
                    out.push(item);
                }
            }
        }
        Node::Compare { left, by, right } => {
            for item in items_of(&values, budget)? {
                if compare(item, left, *by, right, budget)? {
                    out.push(item);
                }
            }
        }
        Node::Literal(literal) => out.extend(values.iter().map(|_| literal)),
        Node::Word => return Err(Unresolved),
    }
    Ok(out)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: &'a Value, out: &mut Vec<&'a Value>, left: &mut usize) -> Result<(), Unresolved> {
    let inner = children(value);
    spend(left, 1 + inner.len())?;
    if !inner.is_empty() {
        out.push(value);
        for child in inner {
            descend(child, out, left)?;
        }
    }
    Ok(())
}

fn items_of<'a>(values: &[&'a Value], left: &mut usize) -> Result<Vec<&'a Value>, Unresolved> {
    let mut items = Vec::new();
    for value in values {
        let found = value.as_array().ok_or(Unresolved)?;
        spend(left, found.len())?;
        items.extend(found);
    }
    Ok(items)
}

fn compare<'a>(
    item: &'a Value,
    left: &'a [Node],
    by: Option<Comparison>,
    right: &'a [Node],
    budget: &mut usize,
) -> Result<bool, Unresolved> {
    let lefts = walk(vec![item], left, budget)?;
    let [left] = lefts.as_slice() else {
        return if lefts.is_empty() { Ok(false) } else { Err(Unresolved) };
    };
    let rights = walk(vec![item], right, budget)?;
    let [right] = rights.as_slice() else {
        return if rights.is_empty() { Ok(false) } else { Err(Unresolved) };
    };
    by.ok_or(Unresolved)?.holds(left, right)
}

impl Slice {
    fn select<'a>(&self, items: &'a [Value], out: &mut Vec<&'a Value>) -> Result<(), Unresolved> {
        let length = i64::try_from(items.len()).map_err(|_| Unresolved)?;
        let from_end = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
        let start = from_end(self.start.unwrap_or(0));
        let end = match self.end {
            None => length,
            Some(0) if self.single => length,
            Some(end) => from_end(end),
        };
        if start == end {
            return Ok(());
        }
        if start < 0 || start >= length || end < 0 || end > length || start > end {
            return Err(Unresolved);
        }
        let step = match self.step {
            None => 1,
            Some(step) if step > 0 => usize::try_from(step).map_err(|_| Unresolved)?,
            Some(_) => return Err(Unresolved),
        };
        let bound = |index: i64| usize::try_from(index).map_err(|_| Unresolved);
        out.extend(items[bound(start)?..bound(end)?].iter().step_by(step));
        Ok(())
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> Result<bool, Unresolved> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if let (Value::Bool(a), Value::Bool(b)) = (left, right) {
            return match self {
                Comparison::Equal => Ok(a == b),
                Comparison::NotEqual => Ok(a != b),
                _ => Err(Unresolved),
            };
        }
        let order = match (left, right) {
            (Value::String(a), Value::String(b)) => a.cmp(b),
            // Integers and floats are unlike things.
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, None) => a.as_f64().partial_cmp(&b.as_f64()).ok_or(Unresolved)?,
                _ => return Err(Unresolved),
            },
            _ => return Err(Unresolved),
        };
        Ok(match self {
            Comparison::Equal => order == Equal,
            Comparison::NotEqual => order != Equal,
            Comparison::Less => order == Less,
            Comparison::LessOrEqual => order != Greater,
            Comparison::Greater => order == Greater,
            Comparison::GreaterOrEqual => order != Less,
        })
    }
}

/// A value as kubectl's `JSONPath` prints it: text as it is, objects and lists as JSON.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => print_number(number),
        Value::Array(_) | Value::Object(_) => escape_html(&value.to_string()),
    }
}

/// Go's JSON writer escapes what would be markup in a page.
fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Integers plainly, floats as Go's `%v`: shortest, with an exponent from 1e21 and below 1e-4.
fn print_number(number: &Number) -> String {
    let (None, Some(float)) = (number.as_i64(), number.as_f64()) else {
        return number.to_string();
    };
    let size = float.abs();
    if float == 0.0 || (1e-4..1e21).contains(&size) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
