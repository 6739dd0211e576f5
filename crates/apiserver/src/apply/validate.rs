//! Whether a value is what its schema says, as far as ownership needs it.
//!
//! The wording reaches clients when an applied configuration is refused.

use super::node::{Form, Node, Scalar};
use super::path::Element;
use crate::gotext;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// What is wrong with a value, at least one thing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mismatch(Vec<Wrong>);

#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    path: String,
    what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.path, self.what) }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            return one.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|wrong| write!(f, "\n  {wrong}"))
    }
}

impl std::error::Error for Mismatch {}

/// Whether items of a set or a keyed list may be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// As in live objects, which an update may have left so.
    Allowed,
    /// As in applied configurations.
    Refused,
}

/// Checks a whole value.
pub(super) fn validate(value: &Value, node: Node<'_>, duplicates: Duplicates) -> Result<(), Mismatch> {
    let mut wrong = Vec::new();
    check(value, node, duplicates, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(Mismatch(wrong)) }
}

/// How many mistakes are told.
const WRONG_MAX: usize = 1_000;

fn check(value: &Value, node: Node<'_>, duplicates: Duplicates, wrong: &mut Vec<Wrong>) {
    if wrong.len() >= WRONG_MAX {
        return;
    }
    let here = |what: String| Wrong { path: String::new(), what };
    match (node.form(value), value) {
        (Form::Scalar, _) => wrong.extend(check_scalar(value, node.scalar()).map(here)),
        (_, Value::Null) => {}
        (Form::List, Value::Array(items)) => check_items(items, node, duplicates, wrong),
        (Form::Map, Value::Object(map)) => {
            for (key, inside) in map {
                let before = wrong.len();
                let Some(field) = node.field(key) else {
                    wrong
                        .push(Wrong { path: format!(".{key}"), what: "field not declared in schema".into() });
                    // What is wrong with the fields after an unknown one is not told.
                    return;
                };
                check(inside, field, duplicates, wrong);
                prefix(wrong, before, || format!(".{key}"));
            }
        }
        (Form::List, _) => wrong.push(here(format!("expected list, got &{{{}}}", gotext::go_plain(value)))),
        (Form::Map, _) => wrong.push(here(format!("expected map, got &{{{}}}", gotext::go_plain(value)))),
    }
}

fn check_scalar(value: &Value, scalar: Scalar) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Truth, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, _) => {
            Some(format!("expected numeric (int or float), got {}", gotext::go_type(value)))
        }
        (Scalar::Text, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            gotext::go_syntax(value)
        )),
        (Scalar::Truth, _) => Some(format!("expected boolean, got &{{{}}}", gotext::go_plain(value))),
        (Scalar::Any, _) => Some(format!("expected any scalar, got &{{{}}}", gotext::go_plain(value))),
    }
}

fn check_items(items: &[Value], node: Node<'_>, duplicates: Duplicates, wrong: &mut Vec<Wrong>) {
    let mut seen = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let mut element = None;
        if !node.is_atomic_list() {
            let step = match duplicates {
                Duplicates::Allowed => node.check_item(item).map(|()| None),
                Duplicates::Refused => node.element(item).map(Some),
            };
            match step {
                Ok(step) => element = step,
                Err(what) => {
                    wrong.push(Wrong { path: String::new(), what: format!("element {i}: {what}") });
                    return;
                }
            }
        }
        let before = wrong.len();
        check(item, node.item(), duplicates, wrong);
        prefix(wrong, before, || step_text(node, item, i));
        if let Some(element) = element {
            let text = element.to_string();
            if !seen.insert(element) && wrong.len() < WRONG_MAX {
                let what = format!("duplicate entries for key {text}");
                wrong.insert(before, Wrong { path: String::new(), what });
            }
        }
    }
}

fn step_text(node: Node<'_>, item: &Value, index: usize) -> String {
    let element = if node.is_atomic_list() { None } else { node.element(item).ok() };
    element.unwrap_or_else(|| Element::Index(i64::try_from(index).unwrap_or(i64::MAX))).to_string()
}

fn prefix(wrong: &mut [Wrong], from: usize, text: impl FnOnce() -> String) {
    if from < wrong.len() {
        let text = text();
        for wrong in &mut wrong[from..] {
            wrong.path.insert_str(0, &text);
            crate::field::cut(&mut wrong.path);
        }
    }
}
