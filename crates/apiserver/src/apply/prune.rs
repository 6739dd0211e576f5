//! Removal of what a manager applied before and applies no more.

use super::Target;
use super::fields::{fields_of, remove, with_named_fields};
use super::managers::{Identity, Manager, Managers};
use super::node::Node;
use super::set::FieldSet;
use crate::schema::SchemaRef;
use serde_json::Value;

/// An object as it is in one version.
#[derive(Clone)]
struct View<'a> {
    object: Value,
    version: &'a str,
    /// None in the version of the request, whose schema the target has.
    schema: Option<SchemaRef>,
    target: &'a Target<'a>,
}

impl<'a> View<'a> {
    /// The object in this version; none if it is not served.
    fn to(&self, version: &'a str) -> Option<View<'a>> {
        if version == self.version {
            return Some(self.clone());
        }
        let (object, schema) = (self.target.convert)(&self.object, version)?;
        let schema = if version == self.target.api_version { None } else { Some(schema) };
        Some(View { object, version, schema, target: self.target })
    }

    fn root(&self) -> Node<'_> {
        Node::root(self.schema.as_deref().unwrap_or(self.target.schema))
    }

    /// These fields with those around them that the schema names.
    fn named(&self, fields: &FieldSet) -> FieldSet {
        with_named_fields(fields, Some(self.root()))
    }

    /// All fields of the object.
    fn fields(&self) -> FieldSet {
        self.named(&fields_of(&self.object, self.root()))
    }

    fn without(&self, fields: &FieldSet) -> View<'a> {
        let mut view = self.clone();
        remove(&mut view.object, fields, self.root());
        view
    }
}

/// Takes out of the merged object what `last` had applied, `own` applies no more, and nobody else owns.
pub(super) fn prune(
    merged: Value,
    managers: &Managers,
    own: &Identity,
    last: &Manager,
    target: &Target<'_>,
) -> Value {
    let applied = managers.list.iter().find(|manager| manager.identity == *own);
    let nothing_dropped = last.api_version == target.api_version
        && applied.is_some_and(|applied| applied.fields.contains_all(&last.fields));
    if last.fields.is_empty() || nothing_dropped {
        return merged;
    }
    let merged = View { object: merged, version: target.api_version, schema: None, target };
    let pruned = prune_view(&merged, managers, last);
    match pruned.and_then(|pruned| pruned.to(target.api_version)) {
        Some(pruned) => pruned.object,
        None => merged.object,
    }
}

fn prune_view<'a>(merged: &View<'a>, managers: &'a Managers, last: &'a Manager) -> Option<View<'a>> {
    let merged = merged.to(&last.api_version)?;
    let last_fields = merged.named(&last.fields);
    let pruned = add_back_owned(&merged, merged.without(&last_fields), managers);
    // What went with a field or an item although it was never applied stays.
    let Some(pruned) = pruned.to(&last.api_version) else { return Some(merged) };
    let gone = merged.fields().difference(&pruned.fields()).intersection(&last_fields);
    Some(merged.without(&gone))
}

/// Puts back what any manager owns, in the terms of each version in turn.
fn add_back_owned<'a>(merged: &View<'a>, pruned: View<'a>, managers: &'a Managers) -> View<'a> {
    // The version of the objects at hand goes first: converting needs what is owned in it.
    let mut owned: Vec<(&'a str, FieldSet)> = vec![(merged.version, FieldSet::default())];
    for manager in &managers.list {
        match owned.iter_mut().find(|(version, _)| *version == manager.api_version) {
            Some((_, fields)) => *fields = std::mem::take(fields).union(manager.fields.clone()),
            None => owned.push((&manager.api_version, manager.fields.clone())),
        }
    }
    let mut pruned = pruned;
    for (version, fields) in owned {
        let (Some(whole), Some(left)) = (merged.to(version), pruned.to(version)) else { continue };
        let keep = left.fields().union(whole.named(&fields));
        pruned = whole.without(&whole.fields().difference(&keep));
    }
    pruned
}
