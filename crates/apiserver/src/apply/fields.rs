//! Sets of fields made from values, and fitted to the schema.

use super::node::{Form, Node};
use super::path::Element;
use super::set::{FieldNode, FieldSet};
use serde_json::Value;

/// The fields that whoever applies this valid value owns.
///
/// Entries of maps and items of lists are members themselves; fields that the schema names are so only
/// if there is nothing inside them that could be.
pub(super) fn fields_of(value: &Value, node: Node<'_>) -> FieldSet {
    collect(value, node).1
}

/// Whether the value itself is a member, and what is below it.
fn collect(value: &Value, node: Node<'_>) -> (bool, FieldSet) {
    let mut below = FieldSet::default();
    match (node.form(value), value) {
        (Form::Scalar, _) => return (true, below),
        (Form::List, _) if node.is_atomic_list() => return (true, below),
        (Form::Map, _) if node.is_atomic_map() => return (true, below),
        (Form::List, Value::Array(items)) => below = collect_items(items, node),
        (Form::Map, Value::Object(map)) => {
            for (key, inside) in map {
                // Valid objects have no fields that may not be there.
                let (own, inner) = collect(inside, node.field(key).unwrap_or(Node::Deduced));
                let nothing_inside = match inside {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    _ => false,
                };
                below.push(Element::field(key), own || nothing_inside || !node.declares(key), inner);
            }
        }
        _ => {}
    }
    (false, below)
}

fn collect_items(items: &[Value], node: Node<'_>) -> FieldSet {
    let mut steps: Vec<(Element, &Value)> =
        items.iter().filter_map(|item| Some((node.element(item).ok()?, item))).collect();
    steps.sort_by(|a, b| a.0.cmp(&b.0));
    let mut set = FieldSet::default();
    for same in steps.chunk_by(|a, b| a.0 == b.0) {
        // Items that no path tells apart are owned together.
        let below = match same {
            [(_, item)] => collect(item, node.item()).1,
            _ => FieldSet::default(),
        };
        set.push(same[0].0.clone(), true, below);
    }
    set
}

/// The set with the fields that the schema names added wherever something inside them is a member.
pub(super) fn with_named_fields(set: &FieldSet, node: Option<Node<'_>>) -> FieldSet {
    let mut out = FieldSet::default();
    for FieldNode { element, member, below } in set.nodes() {
        let (named, inside) = match element {
            Element::Field(name) => {
                let node = node.filter(|node| node.is_map());
                (node.is_some_and(|node| node.declares(name)), node.and_then(|node| node.field(name)))
            }
            Element::Key(_) => (false, node.filter(|node| node.is_list()).map(Node::item)),
            Element::Value(_) | Element::Index(_) => (false, None),
        };
        let named = named && !below.is_empty();
        out.push(element.clone(), *member || named, with_named_fields(below, inside));
    }
    out
}

/// What fitting a set to the schema comes to.
pub(super) enum Fitted {
    Same,
    /// The place has become one value: its owner keeps it and loses what is inside.
    Whole,
    Changed(FieldSet),
}

/// Fits the fields below a place to a schema that may have changed since they were recorded: where a map
/// or list was granular and is atomic now, who owned parts owns the whole.
pub(super) fn fit(below: &FieldSet, whole: bool, node: Node<'_>) -> Fitted {
    match node.form_of_none() {
        Form::Scalar => return Fitted::Same,
        Form::Map if node.is_deduced_map() => return Fitted::Same,
        Form::Map if !whole && node.is_atomic_map() => {
            return if below.is_empty() { Fitted::Same } else { Fitted::Whole };
        }
        Form::List if !whole && node.is_atomic_list() => return Fitted::Whole,
        Form::Map | Form::List => {}
    }
    let inside = |field: &FieldNode| match (node.form_of_none(), &field.element) {
        (Form::List, _) => Some(node.item()),
        (_, Element::Field(name)) => node.field(name),
        _ => node.entry(),
    };
    let fitted: Vec<Fitted> = below
        .nodes()
        .iter()
        .map(|field| match inside(field) {
            Some(inside) => fit(&field.below, field.member && field.below.is_empty(), inside),
            None => Fitted::Same,
        })
        .collect();
    if fitted.iter().all(|fitted| matches!(fitted, Fitted::Same)) {
        return Fitted::Same;
    }
    let mut out = FieldSet::default();
    for (field, fitted) in below.nodes().iter().zip(fitted) {
        let (member, below) = match fitted {
            Fitted::Same => (field.member, field.below.clone()),
            Fitted::Whole => (true, FieldSet::default()),
            Fitted::Changed(below) => (field.member, below),
        };
        out.push(field.element.clone(), member, below);
    }
    Fitted::Changed(out)
}

/// Takes these fields out of a value. A list or map of which nothing is left becomes null, as does one
/// that is owned as a whole.
pub(super) fn remove(value: &mut Value, fields: &FieldSet, node: Node<'_>) {
    let left = match (node.form(value), &mut *value) {
        (Form::Scalar, _) => return,
        (Form::List, Value::Array(items)) if !node.is_atomic_list() => {
            items.retain_mut(|item| {
                let Some(field) = node.element(item).ok().and_then(|element| fields.get(&element)) else {
                    return true;
                };
                if !field.member && !field.below.is_empty() {
                    remove(item, &field.below, node.item());
                }
                !field.member
            });
            !items.is_empty()
        }
        (Form::Map, Value::Object(map)) if !node.is_atomic_map() => {
            map.retain(|key, inside| {
                let Some(field) = fields.field(key) else { return true };
                if !field.member {
                    // Valid objects have no fields that may not be there.
                    remove(inside, &field.below, node.field(key).unwrap_or(Node::Deduced));
                }
                !field.member
            });
            !map.is_empty()
        }
        _ => false,
    };
    if !left {
        *value = Value::Null;
    }
}
