//! Sets of fields, and their form in `fieldsV1`.

use super::path::{Element, ElementError};
use crate::field::cut;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// A set of fields of one object: a tree in which every node may be a member.
///
/// A field and the fields inside it are members independently of each other. Nodes are sorted, and each
/// is a member or has a member below, so equal sets are equal trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    nodes: Vec<FieldNode>,
}

/// One field of a [`FieldSet`] and what the set holds below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldNode {
    pub(super) element: Element,
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

/// Why a `fieldsV1` is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldsError {
    #[error("expected an object or null")]
    NotAnObject,
    #[error("parsing key as path element: {0}")]
    Element(#[from] ElementError),
}

impl FieldSet {
    /// The set of these fields, each a path of names.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(path.iter().map(|name| Element::field(name)));
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The fields at the top of the tree, in order.
    pub(super) fn nodes(&self) -> &[FieldNode] {
        &self.nodes
    }

    /// Adds the field at this path. The path of no steps is the object itself, which nobody owns.
    pub(super) fn insert(&mut self, path: impl IntoIterator<Item = Element>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let at = match set.nodes.binary_search_by(|node| node.element.cmp(&element)) {
                Ok(at) => at,
                Err(at) => {
                    set.nodes.insert(at, FieldNode { element, member: false, below: FieldSet::default() });
                    at
                }
            };
            let node = &mut set.nodes[at];
            node.member |= path.peek().is_none();
            set = &mut node.below;
        }
    }

    /// Adds a node that is in order after all others; one without members is left out.
    pub(super) fn push(&mut self, element: Element, member: bool, below: FieldSet) {
        debug_assert!(self.nodes.last().is_none_or(|last| last.element < element));
        if member || !below.is_empty() {
            self.nodes.push(FieldNode { element, member, below });
        }
    }

    /// What the set holds of and below this step.
    pub(super) fn get(&self, element: &Element) -> Option<&FieldNode> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        self.nodes.get(at)
    }

    /// What the set holds of and below this field.
    pub(super) fn field(&self, name: &str) -> Option<&FieldNode> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp_field(name)).ok()?;
        self.nodes.get(at)
    }

    /// Whether the field at this path is a member.
    pub(super) fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first).is_some_and(|node| node.below.has(rest)),
        }
    }

    /// What either holds.
    pub(crate) fn union(self, other: FieldSet) -> FieldSet {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let (mut left, mut right) = (self.nodes.into_iter().peekable(), other.nodes.into_iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.element.cmp(&b.element) {
                Ordering::Less => nodes.extend(left.next()),
                Ordering::Greater => nodes.extend(right.next()),
                Ordering::Equal => {
                    if let (Some(a), Some(b)) = (left.next(), right.next()) {
                        let below = a.below.union(b.below);
                        nodes.push(FieldNode { element: a.element, member: a.member || b.member, below });
                    }
                }
            }
        }
        nodes.extend(left);
        nodes.extend(right);
        FieldSet { nodes }
    }

    /// What both hold.
    pub(crate) fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet::default();
        for (a, b) in self.beside(other) {
            if let Some(b) = b
                && (a.member && b.member || !a.below.is_empty() && !b.below.is_empty())
            {
                out.push(a.element.clone(), a.member && b.member, a.below.intersection(&b.below));
            }
        }
        out
    }

    /// What this set holds and the other does not. A field stays when only fields inside it are taken
    /// away, and the fields inside stay when only the field is.
    pub(crate) fn difference(self, other: &FieldSet) -> FieldSet {
        self.without(other, false)
    }

    /// What this set holds outside the fields of the other.
    pub(crate) fn recursive_difference(self, other: &FieldSet) -> FieldSet {
        self.without(other, true)
    }

    fn without(mut self, other: &FieldSet, recursive: bool) -> FieldSet {
        if other.is_empty() {
            return self;
        }
        let mut others = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while others.next_if(|o| o.element < node.element).is_some() {}
            let Some(taken) = others.next_if(|o| o.element == node.element) else { return true };
            if taken.member {
                node.member = false;
                if recursive {
                    return false;
                }
            }
            node.below = std::mem::take(&mut node.below).without(&taken.below, recursive);
            node.member || !node.below.is_empty()
        });
        self
    }

    /// Whether every member of the other is a member of this.
    pub(super) fn contains_all(&self, other: &FieldSet) -> bool {
        other.beside(self).all(|(node, own)| match own {
            Some(own) => (own.member || !node.member) && own.below.contains_all(&node.below),
            None => false,
        })
    }

    /// Each node of this set, with the node of the other for the same step.
    fn beside<'a>(
        &'a self,
        other: &'a FieldSet,
    ) -> impl Iterator<Item = (&'a FieldNode, Option<&'a FieldNode>)> {
        let mut others = other.nodes.iter().peekable();
        self.nodes.iter().map(move |node| {
            while others.next_if(|o| o.element < node.element).is_some() {}
            (node, others.next_if(|o| o.element == node.element))
        })
    }

    /// How many members there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// The paths of the first `max` members as text: those at one level before those below it, as conflicts are listed.
    /// Long paths are cut off.
    pub(super) fn paths(&self, max: usize, render: fn(&Element) -> String) -> Vec<String> {
        let mut out = Vec::new();
        self.collect_paths("", max, render, &mut out);
        out
    }

    fn collect_paths(&self, prefix: &str, max: usize, render: fn(&Element) -> String, out: &mut Vec<String>) {
        let path = |node: &FieldNode| {
            let mut path = format!("{prefix}{}", render(&node.element));
            cut(&mut path);
            path
        };
        let members = self.nodes.iter().filter(|node| node.member);
        out.extend(members.take(max.saturating_sub(out.len())).map(path));
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            if out.len() >= max {
                return;
            }
            node.below.collect_paths(&path(node), max, render, out);
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn parse(fields: &Value) -> Result<FieldSet, FieldsError> {
        let map = match fields {
            Value::Null => return Ok(FieldSet::default()),
            Value::Object(map) => map,
            _ => return Err(FieldsError::NotAnObject),
        };
        let mut nodes = Vec::with_capacity(map.len());
        for (key, inside) in map {
            if key == "." {
                continue;
            }
            let Some(element) = Element::parse(key)? else { continue };
            let below = FieldSet::parse(inside)?;
            let member = below.is_empty() || inside.get(".").is_some();
            nodes.push(FieldNode { element, member, below });
        }
        // Texts of keys sort otherwise than keys do: `80` is after `443`.
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        nodes.dedup_by(|later, earlier| later.element == earlier.element);
        Ok(FieldSet { nodes })
    }

    /// The set as `fieldsV1`.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.to_map())
    }

    fn to_map(&self) -> Map<String, Value> {
        let inside = |node: &FieldNode| {
            let mut map = node.below.to_map();
            if node.member && !map.is_empty() {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            Value::Object(map)
        };
        self.nodes.iter().map(|node| (node.element.encode(), inside(node))).collect()
    }
}
