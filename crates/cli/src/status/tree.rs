//! Who belongs to whom, from owner references. Pure.

use super::state::{State, state};
use mainstay::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An object with all that was made for it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) object: Value,
    pub(crate) state: State,
    pub(crate) children: Vec<Tree>,
}

impl Tree {
    /// Whether all of it does its work.
    pub(crate) fn is_fine(&self) -> bool {
        self.state.is_fine() && self.children.iter().all(Tree::is_fine)
    }

    /// The object's own text at a pointer.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        text(&self.object, pointer)
    }

    /// Itself and all below.
    pub(crate) fn all(&self) -> Vec<&Tree> {
        std::iter::once(self).chain(self.children.iter().flat_map(Tree::all)).collect()
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An object's identity.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// The identities of those that an object belongs to.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().filter_map(|reference| reference["uid"].as_str())
}

/// Those of the objects that belong to a root, at any depth.
pub(crate) fn belonging(roots: &[Value], owned: &[(Kind, Value)]) -> Vec<(Kind, Value)> {
    let mut known: BTreeSet<&str> = roots.iter().map(uid).collect();
    let mut found: Vec<(Kind, Value)> = Vec::new();
    loop {
        let more: Vec<&(Kind, Value)> = owned
            .iter()
            .filter(|(_, object)| {
                !known.contains(uid(object)) && owners(object).any(|owner| known.contains(owner))
            })
            .collect();
        if more.is_empty() {
            return found;
        }
        known.extend(more.iter().map(|(_, object)| uid(object)));
        found.extend(more.into_iter().cloned());
    }
}

/// Puts everything below its owner. What has several owners is below each; what belongs to itself, however long the way, is
/// shown once.
pub(crate) fn grow(roots: Vec<Value>, objects: Vec<Value>) -> Vec<Tree> {
    let mut by_owner: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for object in objects {
        for owner in owners(&object) {
            by_owner.entry(owner.to_owned()).or_default().push(object.clone());
        }
    }
    let mut trees: Vec<Tree> =
        roots.into_iter().map(|root| tree(root, None, &by_owner, &mut BTreeSet::new())).collect();
    trees.sort_by(|a, b| place(&a.object).cmp(&place(&b.object)));
    trees
}

fn tree(
    object: Value,
    owner: Option<&State>,
    by_owner: &BTreeMap<String, Vec<Value>>,
    above: &mut BTreeSet<String>,
) -> Tree {
    let own = uid(&object).to_owned();
    let state = state(&object, owner);
    let mut children = Vec::new();
    if above.insert(own.clone()) {
        for child in by_owner
            .get(&own)
            .into_iter()
            .flatten()
            .filter(|child| !above.contains(uid(child)))
            .cloned()
            .collect::<Vec<_>>()
        {
            children.push(tree(child, Some(&state), by_owner, above));
        }
        above.remove(&own);
    }
    children.sort_by(|a, b| place(&a.object).cmp(&place(&b.object)));
    Tree { object, state, children }
}

/// The order in which objects are shown.
fn place(object: &Value) -> (&str, &str, &str) {
    (text(object, "/metadata/namespace"), text(object, "/kind"), text(object, "/metadata/name"))
}
