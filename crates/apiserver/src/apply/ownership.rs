//! Who owns what after a change.
//!
//! The arithmetic of ownership, free of the rules about names, times and metadata that are laid around it
//! by the callers. Objects given to these functions are valid for the schema.

use super::Target;
use super::compare::{Comparison, compare};
use super::conflict::Conflicts;
use super::fields::{Fitted, fields_of, fit};
use super::managers::{Identity, Manager, Managers};
use super::merge::merge;
use super::node::Node;
use super::path::equal;
use super::prune::prune;
use super::set::FieldSet;
use crate::schema::SchemaRef;
use serde_json::Value;
use std::collections::BTreeMap;

/// Fits all entries to the schema of today. Entries in a version that is served no more are dropped.
fn fit_managers(managers: &mut Managers, live: &Value, target: &Target<'_>) {
    // However many managers share a version, the object is converted to it once.
    let mut schemas: BTreeMap<String, Option<SchemaRef>> = BTreeMap::new();
    managers.list.retain_mut(|manager| {
        let fitted = if manager.api_version == target.api_version {
            fit(&manager.fields, false, Node::root(target.schema))
        } else {
            let version = &manager.api_version;
            let convert = || (target.convert)(live, version).map(|(_, schema)| schema);
            let Some(schema) = schemas.entry(version.clone()).or_insert_with(convert) else { return false };
            fit(&manager.fields, false, Node::root(schema))
        };
        if let Fitted::Changed(fields) = fitted {
            manager.fields = fields;
        }
        true
    });
}

/// What the change from `live` to `new` touches in the terms of each other version that managers have;
/// none for versions that are not served.
fn compare_elsewhere(
    live: &Value,
    new: &Value,
    managers: &Managers,
    target: &Target<'_>,
) -> BTreeMap<String, Option<Comparison>> {
    let mut out = BTreeMap::new();
    for version in managers.list.iter().map(|manager| &manager.api_version) {
        if version != target.api_version && !out.contains_key(version) {
            let converted = (target.convert)(live, version).zip((target.convert)(new, version));
            let touched = converted.map(|((live, schema), (new, _))| {
                let touched = compare(&live, &new, Node::root(&schema));
                if target.reset_elsewhere { touched.without(target.reset) } else { touched }
            });
            out.insert(version.clone(), touched);
        }
    }
    out
}

/// Takes from every manager but `own` the fields that the change from `live` to `new` touches. Without
/// force, only removed fields may be taken; taking others is a conflict.
fn take_touched(
    live: &Value,
    new: &Value,
    managers: &mut Managers,
    own: Option<&Identity>,
    target: &Target<'_>,
    force: bool,
) -> Result<Comparison, Conflicts> {
    let here = compare(live, new, Node::root(target.schema)).without(target.reset);
    let elsewhere = compare_elsewhere(live, new, managers, target);
    let mut conflicts = Vec::new();
    managers.list.retain_mut(|manager| {
        if Some(&manager.identity) == own {
            return !manager.fields.is_empty();
        }
        let touched = elsewhere.get(&manager.api_version).map_or(Some(&here), Option::as_ref);
        let Some(touched) = touched else { return false };
        let lost = manager.fields.intersection(&touched.modified);
        let lost = lost.union(manager.fields.intersection(&touched.added));
        let fields = std::mem::take(&mut manager.fields);
        manager.fields = fields.difference(&lost).difference(&touched.removed);
        if !lost.is_empty() {
            conflicts.push((manager.identity.clone(), lost));
        }
        !manager.fields.is_empty()
    });
    if force || conflicts.is_empty() { Ok(here) } else { Err(Conflicts::new(conflicts)) }
}

/// Records a change from `live` to `new`: takes the touched fields from their owners and returns what the
/// one who made it comes to own.
pub(super) fn update(live: &Value, new: &Value, managers: &mut Managers, target: &Target<'_>) -> FieldSet {
    fit_managers(managers, live, target);
    // With force there are no conflicts.
    match take_touched(live, new, managers, None, target, true) {
        Ok(Comparison { added, modified, .. }) => modified.union(added),
        Err(_) => FieldSet::default(),
    }
}

/// What an apply comes to.
pub(super) struct Applied {
    /// The merged object; none if it is the live one.
    pub(super) object: Option<Value>,
    pub(super) managers: Managers,
}

/// Lays a configuration over the live object for the manager `own`.
pub(super) fn apply(
    live: &Value,
    applied: &Value,
    mut managers: Managers,
    own: &Identity,
    target: &Target<'_>,
    force: bool,
) -> Result<Applied, Conflicts> {
    fit_managers(&mut managers, live, target);
    let root = Node::root(target.schema);
    let merged = merge(live, applied, root);
    let fields = fields_of(applied, root).recursive_difference(target.reset);
    let last = managers.take(own);
    managers.put(Manager {
        identity: own.clone(),
        api_version: target.api_version.to_owned(),
        fields,
        time: last.as_ref().and_then(|last| last.time),
    });
    let merged = match last {
        Some(last) => prune(merged, &managers, own, &last, target),
        None => merged,
    };
    take_touched(live, &merged, &mut managers, Some(own), target, force)?;
    let object = if equal(live, &merged) { None } else { Some(merged) };
    Ok(Applied { object, managers })
}
