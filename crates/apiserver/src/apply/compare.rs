//! Which fields differ between two forms of an object.

use super::node::{Form, Node};
use super::path::{Element, equal};
use super::set::FieldSet;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// The fields that a change touched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// Leaves out these fields and all inside them.
    pub(super) fn without(self, fields: &FieldSet) -> Self {
        Comparison {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }

    fn attach(&mut self, element: impl Fn() -> Element, change: Change) {
        let Change { added, modified, removed, below } = change;
        let sets = [
            (&mut self.added, added, below.added),
            (&mut self.modified, modified, below.modified),
            (&mut self.removed, removed, below.removed),
        ];
        for (set, member, below) in sets {
            if member || !below.is_empty() {
                set.push(element(), member, below);
            }
        }
    }

    fn union(self, other: Comparison) -> Self {
        Comparison {
            added: self.added.union(other.added),
            modified: self.modified.union(other.modified),
            removed: self.removed.union(other.removed),
        }
    }
}

/// What became of one place.
#[derive(Default)]
struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    below: Comparison,
}

impl Change {
    fn and(self, other: Change) -> Change {
        Change {
            added: self.added || other.added,
            modified: self.modified || other.modified,
            removed: self.removed || other.removed,
            below: self.below.union(other.below),
        }
    }
}

/// Compares two valid objects of the same schema.
pub(super) fn compare(old: &Value, new: &Value, node: Node<'_>) -> Comparison {
    walk(Some(old), Some(new), node).below
}

fn walk(old: Option<&Value>, new: Option<&Value>, node: Node<'_>) -> Change {
    let forms = (old.map(|value| node.form(value)), new.map(|value| node.form(value)));
    match forms {
        (None, None) => Change::default(),
        (Some(form), None) | (None, Some(form)) => walk_as(form, old, new, node),
        (Some(before), Some(after)) if before == after => walk_as(after, old, new, node),
        (Some(before), Some(after)) => walk_as(before, old, new, node).and(walk_as(after, old, new, node)),
    }
}

fn walk_as(form: Form, old: Option<&Value>, new: Option<&Value>, node: Node<'_>) -> Change {
    let below = match form {
        Form::Scalar => return leaf(old, new),
        Form::List => {
            let old_items = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let new_items = new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            // Two empty ones are compared whole because null and empty differ.
            if node.is_atomic_list() || (old_items.is_empty() && new_items.is_empty()) {
                return leaf(old, new);
            }
            compare_items(old_items, new_items, node)
        }
        Form::Map => {
            let (old_map, new_map) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
            if node.is_atomic_map() || (empty(old_map) && empty(new_map)) {
                return leaf(old, new);
            }
            compare_fields(old_map, new_map, node)
        }
    };
    Change { added: old.is_none(), removed: new.is_none(), modified: false, below }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    let modified = matches!((old, new), (Some(old), Some(new)) if !equal(old, new));
    Change { added: old.is_none(), removed: new.is_none(), modified, below: Comparison::default() }
}

fn compare_fields(
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    node: Node<'_>,
) -> Comparison {
    let mut out = Comparison::default();
    let mut old = old.into_iter().flatten().peekable();
    let mut new = new.into_iter().flatten().peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return out,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let Some((key, _)) = before.or(after) else { return out };
        // Valid objects have no fields that may not be there.
        let field = node.field(key).unwrap_or(Node::Deduced);
        let change = walk(before.map(|(_, value)| value), after.map(|(_, value)| value), field);
        out.attach(|| Element::field(key), change);
    }
}

fn compare_items(old: &[Value], new: &[Value], node: Node<'_>) -> Comparison {
    let mut out = Comparison::default();
    if old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal(a, b)) {
        return out;
    }
    let step = |item| node.element(item).ok();
    let mut items: Vec<(Element, Option<&Value>, Option<&Value>)> = Vec::with_capacity(old.len() + new.len());
    items.extend(old.iter().filter_map(|item| Some((step(item)?, Some(item), None))));
    items.extend(new.iter().filter_map(|item| Some((step(item)?, None, Some(item)))));
    items.sort_by(|a, b| a.0.cmp(&b.0));
    for same in items.chunk_by(|a, b| a.0 == b.0) {
        let before: Vec<&Value> = same.iter().filter_map(|item| item.1).collect();
        let after: Vec<&Value> = same.iter().filter_map(|item| item.2).collect();
        out.attach(|| same[0].0.clone(), compare_same(&before, &after, node.item()));
    }
    out
}

/// Compares the items of a list that share one key. Several of them are owned as one value, since no
/// path tells them apart.
fn compare_same(old: &[&Value], new: &[&Value], item: Node<'_>) -> Change {
    match (old, new) {
        ([] | [_], [] | [_]) => walk(old.first().copied(), new.first().copied(), item),
        ([_, _, ..], [_, _, ..]) => {
            let same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal(a, b));
            Change { modified: !same, ..Change::default() }
        }
        ([_, _, ..], _) => {
            let fresh = new.first().map_or_else(Change::default, |new| walk(None, Some(new), item));
            Change { removed: true, ..fresh }
        }
        (_, [_, _, ..]) => {
            let gone = old.first().map_or_else(Change::default, |old| walk(Some(old), None, item));
            Change { added: true, ..gone }
        }
    }
}
