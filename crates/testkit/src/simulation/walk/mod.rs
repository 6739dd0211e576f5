//! Changes to every property of a kind, from its schema. Pure.
//!
//! A [`SpecWalk`] holds changes of an object's spec, each of which its schema allows: sensible values first (another
//! tag of an image, one more replica), then those that people set by mistake and no schema forbids (nothing, zero, the
//! maximum). Each is counted from the object that the script creates, not from the change before it. Every property is
//! either changed by some of them or listed with the reason why it is not.
//!
//! [`schema`] reads what is allowed and [`judge`] holds values against it; [`scalars`] and [`compounds`] propose
//! values, with [`formats`] and [`meaning`] to make them plausible; [`tour`] goes from property to property and keeps
//! what passes. Rules in CEL are not evaluated: the server refuses what they forbid.

mod compounds;
mod formats;
mod judge;
mod meaning;
mod place;
mod scalars;
mod schema;
mod tour;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

pub(super) use self::place::{merged, patch_between};
use self::schema::Schema;

/// One change of a spec.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpecChange {
    /// `spec.containers[0].image`.
    pub(super) path: String,
    /// `replicas: 3 -> 0 (minimum)`.
    pub(super) label: String,
    /// The JSON merge patch of the object, `{"spec": …}`. It sets or removes the field; lists are replaced as a whole.
    pub(super) patch: Value,
    /// The whole spec after it, for who creates the object with it.
    pub(super) spec: Value,
}

/// What can be changed of an object's spec, and what not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SpecWalk {
    /// By path.
    pub(super) changes: Vec<SpecChange>,
    /// Properties that no change is known for, each with why: `spec.mode: immutable`.
    pub(super) untouched: Vec<String>,
}

/// The changes of an object that the schema in its `CustomResourceDefinition` allows. The object must be valid.
pub(super) fn spec_changes(definition: &Value, object: &Value) -> SpecWalk {
    let Some(json) = spec_schema(definition, object) else {
        return SpecWalk {
            untouched: vec!["spec: its kind has no schema for it".to_owned()],
            ..SpecWalk::default()
        };
    };
    let schema = Schema::read(json);
    tour::walk(&schema, &schema.complete(object.get("spec").unwrap_or(&json!({}))))
}

fn spec_schema<'a>(definition: &'a Value, object: &Value) -> Option<&'a Value> {
    let version = object.get("apiVersion")?.as_str()?.rsplit('/').next()?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let served = versions.iter().find(|found| found.get("name").and_then(Value::as_str) == Some(version))?;
    served.pointer("/schema/openAPIV3Schema/properties/spec")
}

/// Random sequences of changes, as indices into [`SpecWalk::changes`]. No two in a row are about the same path, so they
/// are shorter than asked for if there is only one.
pub(super) fn sequences(walk: &SpecWalk, seed: u64, count: usize, length: usize) -> Vec<Vec<usize>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut one = || {
        let mut sequence: Vec<usize> = Vec::with_capacity(length);
        while sequence.len() < length {
            let last = sequence.last().map(|index| &walk.changes[*index].path);
            let next = |index: &usize| Some(&walk.changes[*index].path) != last;
            let Some(chosen) = rng.choice((0..walk.changes.len()).filter(next).collect::<Vec<_>>()) else {
                break;
            };
            sequence.push(chosen);
        }
        sequence
    };
    (0..count).map(|_| one()).collect()
}
