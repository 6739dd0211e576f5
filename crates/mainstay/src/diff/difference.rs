//! Everything that differs between two states of an object, for telling what a write did.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::canonical::{present, same, without_nulls};
use super::change::Change;
use super::compare::item_key;
use super::lists::{ListRule, Rule, Rules};
use super::path::{Literal, Trail};

/// How much of an object [`difference`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All but its status.
    WithoutStatus,
    /// Its status too.
    WithStatus,
}

/// What the server keeps about an object, which changes with every write or never.
const KEPT_BY_SERVER: [&str; 5] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];

/// What must change in `old` to become `new`, removals included. [`overlay`](super::overlay) with these
/// changes makes `new` of `old`.
///
/// Left out is what the server keeps about the object: `creationTimestamp`, `generation`, `managedFields`,
/// `resourceVersion` and `uid`. A null field is an absent one. The rules only decide how list items are
/// named.
pub fn difference(old: &Value, new: &Value, rules: &Rules, extent: Extent) -> Vec<Change> {
    let mut walk = Walk { extent, changes: Vec::new() };
    walk.value(Some(old), Some(new), rules.root(), &Trail::ROOT);
    walk.changes
}

struct Walk {
    extent: Extent,
    changes: Vec<Change>,
}

impl Walk {
    fn value(&mut self, old: Option<&Value>, new: Option<&Value>, rule: Rule<'_>, trail: &Trail<'_>) {
        match (present(old), present(new)) {
            (None, None) => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.object(old, new, rule, trail),
            (Some(Value::Array(old)), Some(Value::Array(new))) if self.list(old, new, rule, trail) => {}
            (Some(old), Some(new)) if same(old, new) => {}
            (old, new) => self.changes.push(Change {
                path: trail.to_path(),
                from: old.map(without_nulls),
                to: new.map(without_nulls),
            }),
        }
    }

    fn object(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        rule: Rule<'_>,
        trail: &Trail<'_>,
    ) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let left_out = (rule.is_metadata() && KEPT_BY_SERVER.contains(&name.as_str()))
                || (rule.is_object() && name == "status" && self.extent == Extent::WithoutStatus);
            if !left_out {
                self.value(old.get(name), new.get(name), rule.field(name), &trail.field(name));
            }
        }
    }

    /// Tells a list item by item, or returns false where that would not say what the new list is.
    fn list(&mut self, old: &[Value], new: &[Value], rule: Rule<'_>, trail: &Trail<'_>) -> bool {
        if old.iter().chain(new).any(Value::is_null) {
            return false;
        }
        let list = rule.list(if new.is_empty() { old } else { new });
        if *list == ListRule::Atomic {
            if old.len() == new.len() {
                for (position, (old, new)) in old.iter().zip(new).enumerate() {
                    self.value(Some(old), Some(new), rule.item(), &trail.index(position));
                }
            }
            return old.len() == new.len();
        }
        let step = |item| match list {
            ListRule::Map(keys) => trail.item(keys, item),
            ListRule::Set | ListRule::Atomic => trail.member(item),
        };
        let Some(pairs) = pairs(old, new, list) else { return false };
        for (old, new) in pairs {
            if let Some(item) = old.or(new) {
                self.value(old, new, rule.item(), &step(item));
            }
        }
        true
    }
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

/// The items of two lists: those in both, those that are new, and those that are gone. None if this
/// doesn't tell the order of the new list: it must be that of the old one with the new items at the end.
fn pairs<'a>(old: &'a [Value], new: &'a [Value], list: &ListRule) -> Option<Vec<Pair<'a>>> {
    let identity = |item: &Value| match list {
        ListRule::Map(keys) => item_key(keys, item),
        ListRule::Set | ListRule::Atomic => vec![Literal::from(item)],
    };
    let mut known: BTreeMap<Vec<Literal>, usize> = BTreeMap::new();
    for (position, item) in old.iter().enumerate() {
        if known.insert(identity(item), position).is_some() {
            return None;
        }
    }
    let mut pairs: Vec<Pair<'a>> = Vec::with_capacity(new.len());
    let mut seen: BTreeSet<Vec<Literal>> = BTreeSet::new();
    let mut last = 0;
    for item in new {
        let identity = identity(item);
        let position = known.remove(&identity);
        // An item that is new comes after all that are not.
        let place = position.unwrap_or(old.len());
        if place < last || !seen.insert(identity) {
            return None;
        }
        last = place;
        pairs.push((position.and_then(|position| old.get(position)), Some(item)));
    }
    pairs.extend(known.values().map(|position| (old.get(*position), None)));
    Some(pairs)
}
