//! Who owns which fields, from an object's `managedFields`.
//!
//! After a restart nothing is learned any more. When the desired child is the one that was applied last and a
//! live field differs nevertheless, its ownership tells why: if we still own it, the server made that of what
//! we sent; otherwise somebody changed it. In doubt a field is not ours, because then it is applied again and
//! no change of anybody is overlooked.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::canonical::{self, named, present, same};
use super::change::Change;
use super::compare::same_item;
use super::lists::{ListRule, MapKey, Rule, Rules};
use super::path::{FieldPath, Step, item_like, item_step};

/// A set of fields as the server writes it: a tree whose keys are `f:name`, `k:{"name":"web"}`, `v:"x"` and
/// `i:0`. An empty object, or one with the key `.`, is a member of the set.
type Fields = Map<String, Value>;

/// Which fields of an object one manager owns.
#[derive(Debug, Clone)]
pub struct Ownership<'a> {
    /// By server-side apply: what the next apply doesn't name is removed.
    applied: Vec<&'a Fields>,
    /// By other writes under the same name.
    updated: Vec<&'a Fields>,
    /// Of everybody else.
    others: Vec<&'a Fields>,
}

impl<'a> Ownership<'a> {
    /// What `manager` owns of an object, through the object itself (`""`) or one of its subresources
    /// (`"status"`).
    pub fn of(object: &'a Value, manager: &str, subresource: &str) -> Self {
        let mut ownership = Self { applied: Vec::new(), updated: Vec::new(), others: Vec::new() };
        let entries = object.get("metadata").and_then(|metadata| metadata.get("managedFields")?.as_array());
        for entry in entries.into_iter().flatten() {
            let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let Some(Value::Object(fields)) = entry.get("fieldsV1") else { continue };
            let ours = text("manager") == manager && text("subresource") == subresource;
            match text("operation") {
                "Apply" if ours => ownership.applied.push(fields),
                _ if ours => ownership.updated.push(fields),
                _ => ownership.others.push(fields),
            }
        }
        ownership
    }

    /// Whether the manager owns nothing, as when the server keeps no record.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.updated.is_empty()
    }

    /// Whether the manager owns this field. Of something that is owned as a whole, items by position are
    /// owned too.
    pub fn owns(&self, path: &FieldPath) -> bool {
        self.ours().any(|fields| {
            let mut at = fields;
            for step in path.steps() {
                match child(at, step) {
                    Some(inner) => at = inner,
                    None => return matches!(step, Step::Index(_)) && at.is_empty() && !path.is_root(),
                }
            }
            is_member(at) && !path.is_root()
        })
    }

    /// Whether the manager owns everything that this difference between desired and live would put there:
    /// then it is what the server made of it, and nobody else's doing.
    pub fn owns_change(&self, change: &Change, rules: &Rules) -> bool {
        let mut rule = rules.root();
        let mut at: Vec<&Fields> = self.ours().collect();
        for step in change.path.steps() {
            rule = match step {
                Step::Field(name) => rule.field(name),
                Step::Item(_) | Step::Member(_) | Step::Index(_) => rule.item(),
            };
            at = children(&at, step);
        }
        change.to.as_ref().is_some_and(|to| owns_value(&at, to, rule))
    }

    /// The fields that are ours by apply and that `desired` doesn't name any more: what applying it would
    /// remove. What somebody else owns too would stay, and is left out. Of an item that goes as a whole, only
    /// the item is named.
    pub fn paths_not_in(&self, desired: &Value, rules: &Rules) -> Vec<FieldPath> {
        let mut dropped = Vec::new();
        let others: Vec<&Fields> = self.others.iter().chain(&self.updated).copied().collect();
        find_dropped(&self.applied, &others, Some(desired), rules.root(), &FieldPath::root(), &mut dropped);
        dropped
    }

    /// The part of an object that is ours by apply: what the next apply must name, or it is removed. Null if there is none.
    pub fn applied_part(&self, object: &Value, rules: &Rules) -> Value {
        part(&self.applied, object, rules.root()).unwrap_or_default()
    }

    fn ours(&self) -> impl Iterator<Item = &'a Fields> {
        self.applied.iter().chain(&self.updated).copied()
    }
}

fn is_member(fields: &Fields) -> bool {
    fields.is_empty() || fields.contains_key(".")
}

/// What a set says of one step. Keys are looked up as the server most likely spells them, and else read one
/// by one.
fn child<'a>(fields: &'a Fields, step: &Step) -> Option<&'a Fields> {
    let (prefix, wanted) = match step {
        Step::Field(name) => return fields.get(&format!("f:{name}"))?.as_object(),
        Step::Index(index) => return fields.get(&format!("i:{index}"))?.as_object(),
        Step::Member(value) => ("v:", value.to_value()),
        Step::Item(keys) => ("k:", item_like(keys)),
    };
    let spelled = fields.get(&format!("{prefix}{}", canonical::text(&wanted)));
    let is_it = |key: &str| {
        let read = key.strip_prefix(prefix).map(serde_json::from_str::<Value>);
        matches!(read, Some(Ok(value)) if same(&value, &wanted))
    };
    spelled.or_else(|| fields.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value))?.as_object()
}

fn children<'a>(sets: &[&'a Fields], step: &Step) -> Vec<&'a Fields> {
    sets.iter().filter_map(|fields| child(fields, step)).collect()
}

/// Whether every leaf of a value is a member of one of the sets.
fn owns_value(sets: &[&Fields], value: &Value, rule: Rule<'_>) -> bool {
    match value {
        Value::Object(object) if !object.is_empty() && !rule.is_atomic_map() => {
            named(object).all(|(name, value)| {
                let step = Step::Field(name.as_str().into());
                owns_value(&children(sets, &step), value, rule.field(name))
            })
        }
        Value::Array(items) if !items.is_empty() => match rule.list(items) {
            ListRule::Atomic => sets.iter().any(|fields| is_member(fields)),
            ListRule::Set => items.iter().all(|item| !children(sets, &Step::Member(item.into())).is_empty()),
            ListRule::Map(keys) => items
                .iter()
                .all(|item| owns_value(&children(sets, &item_step(keys, item)), item, rule.item())),
        },
        _ => sets.iter().any(|fields| is_member(fields)),
    }
}

/// What of a value is a member of one of the sets, and what leads there.
fn part(sets: &[&Fields], value: &Value, rule: Rule<'_>) -> Option<Value> {
    let is_owned = || sets.iter().any(|fields| is_member(fields));
    let inner: Value = match value {
        Value::Object(object) if !rule.is_atomic_map() => {
            let owned = named(object).filter_map(|(name, value)| {
                let step = Step::Field(name.as_str().into());
                Some((name.clone(), part(&children(sets, &step), value, rule.field(name))?))
            });
            owned.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => match rule.list(items) {
            ListRule::Atomic => return is_owned().then(|| value.clone()),
            ListRule::Set => {
                let owned = |item: &&Value| !children(sets, &Step::Member((*item).into())).is_empty();
                items.iter().filter(owned).cloned().collect()
            }
            ListRule::Map(keys) => {
                let owned = items
                    .iter()
                    .filter_map(|item| part(&children(sets, &item_step(keys, item)), item, rule.item()));
                owned.collect()
            }
        },
        _ => return is_owned().then(|| value.clone()),
    };
    let is_empty =
        inner.as_object().is_some_and(Map::is_empty) || inner.as_array().is_some_and(Vec::is_empty);
    (!is_empty || is_owned()).then_some(inner)
}

/// Collects the members of `ours` that `desired` doesn't name and `others` don't have.
fn find_dropped(
    ours: &[&Fields],
    others: &[&Fields],
    desired: Option<&Value>,
    rule: Rule<'_>,
    path: &FieldPath,
    dropped: &mut Vec<FieldPath>,
) {
    let steps: BTreeSet<Step> =
        ours.iter().flat_map(|fields| fields.keys()).filter_map(|key| read(key)).collect();
    for step in steps {
        let (ours, others) = (children(ours, &step), children(others, &step));
        let wanted = desired.and_then(|desired| descend(desired, &step, rule));
        let path = path.join(step.clone());
        let member = ours.iter().any(|fields| is_member(fields));
        if wanted.is_none() && member && others.is_empty() {
            dropped.push(path);
            continue;
        }
        let rule = match &step {
            Step::Field(name) => rule.field(name),
            Step::Item(_) | Step::Member(_) | Step::Index(_) => rule.item(),
        };
        find_dropped(&ours, &others, wanted, rule, &path, dropped);
    }
}

/// The step that a key of a set stands for.
fn read(key: &str) -> Option<Step> {
    let (prefix, rest) = key.split_once(':')?;
    Some(match prefix {
        "f" => Step::Field(rest.into()),
        "i" => Step::Index(rest.parse().ok()?),
        "v" => Step::Member((&serde_json::from_str::<Value>(rest).ok()?).into()),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            let names: Vec<MapKey> = keys.keys().map(|name| MapKey::new(name, Value::Null)).collect();
            item_step(&names, &Value::from(keys))
        }
        _ => return None,
    })
}

/// What a value has one step further in.
fn descend<'a>(value: &'a Value, step: &Step, rule: Rule<'_>) -> Option<&'a Value> {
    let found = match step {
        Step::Field(name) => value.get(&**name),
        Step::Index(index) => value.get(index),
        Step::Member(member) => {
            let member = member.to_value();
            value.as_array()?.iter().find(|item| same(item, &member))
        }
        Step::Item(keys) => {
            let like = item_like(keys);
            let keys = rule.keys(keys.iter().map(|(name, _)| &**name));
            value.as_array()?.iter().find(|item| same_item(&keys, item, &like))
        }
    };
    present(found)
}
