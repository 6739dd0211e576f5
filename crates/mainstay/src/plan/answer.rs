//! Reads a handler's answer: is every child one that can be acted on?
//!
//! An answer is taken as a whole or not at all. A child that cannot be acted on is the author's mistake, and acting on
//! the rest would delete or change things on the strength of a wrong answer.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Situation;
use crate::controller::{Bond, ChildKind};
use crate::diff::{self, Desired};
use crate::kind::{Key, ObjectRef, Scope};

/// A child as the handler wants it, completed with its owner and the hash of all that.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) object: ObjectRef,
    pub(super) value: Value,
    pub(super) hash: String,
    /// It names nothing but itself: whatever is there is right.
    pub(super) only_named: bool,
    /// What it gets when it is adopted as it is.
    pub(super) finalizer: Option<String>,
}

/// All children, or what is wrong with the first that is wrong.
pub(super) fn read_answer(children: &[Value], situation: &Situation<'_>) -> Result<Vec<Wanted>, String> {
    let mut seen = BTreeSet::new();
    let mut wanted = Vec::with_capacity(children.len());
    for (index, child) in children.iter().enumerate() {
        let name = child["metadata"]["name"].as_str().unwrap_or("without a name");
        let kind = child["kind"].as_str().unwrap_or("object");
        let told = |message: String| format!("children[{index}], {kind} {name}: {message}");
        let child = read_child(child, situation).map_err(told)?;
        if !seen.insert(child.object.clone()) {
            return Err(told("it is there twice".into()));
        }
        wanted.push(child);
    }
    Ok(wanted)
}

fn read_child(child: &Value, situation: &Situation<'_>) -> Result<Wanted, String> {
    let Value::Object(fields) = child else { return Err("it is not an object".into()) };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let api_version = text("apiVersion").ok_or("apiVersion is missing")?;
    let name = text("kind").ok_or("kind is missing")?;
    let Some(config) = configured(situation, api_version, name) else {
        return Err(format!(
            "{api_version} {name} is not a child kind of this controller; declare it with `child` or `owns`"
        ));
    };
    if fields.contains_key("status") && !fields["status"].is_null() {
        return Err("status: a child's status is set by its own controller; leave it out".into());
    }
    let key = read_key(fields, config, situation)?;
    let only_named = is_only_named(fields);
    let object = ObjectRef { kind: config.kind.clone(), key };
    let finalizer = config.adopted_finalizer.clone();
    let mut value = child.clone();
    complete(&mut value, &object);
    if config.bond == Bond::Unowned {
        diff::drop_nulls(&mut value);
        return Ok(Wanted { object, value, hash: String::new(), only_named, finalizer });
    }
    own(&mut value, situation)?;
    let desired = Desired::new(value).map_err(|error| error.to_string())?;
    let (value, hash) = desired.into_apply();
    Ok(Wanted { object, value, hash, only_named, finalizer })
}

fn configured<'a>(situation: &Situation<'a>, api_version: &str, name: &str) -> Option<&'a ChildKind> {
    let mut children = situation.controller.children.iter();
    children.find(|child| child.kind.kind() == name && child.kind.api_version() == api_version)
}

fn read_key(
    fields: &Map<String, Value>,
    config: &ChildKind,
    situation: &Situation<'_>,
) -> Result<Key, String> {
    let kind = &config.kind;
    let metadata = fields.get("metadata").and_then(Value::as_object).ok_or("metadata is missing")?;
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(name) = text("name") else {
        return Err(match text("generateName") {
            Some(_) => {
                "metadata.generateName: children need a name of their own, so that the next sync finds them"
                    .into()
            }
            None => "metadata.name is missing".into(),
        });
    };
    let own = situation.snapshot.parent.key().namespace();
    match (kind.scope(), own, text("namespace")) {
        (Scope::Cluster, None, None) => Ok(Key::cluster(name)),
        (Scope::Cluster, Some(_), None) if config.bond == Bond::Unowned => Ok(Key::cluster(name)),
        (Scope::Cluster, None, Some(_)) => Err(format!("metadata.namespace: {kind} is cluster-scoped")),
        (Scope::Cluster, Some(_), _) => Err(format!(
            "{kind} is cluster-scoped, and a namespaced parent cannot own it; make the parent cluster-scoped"
        )),
        (Scope::Namespaced, Some(own), Some(other)) if own != other => Err(format!(
            "metadata.namespace: it is in {other}, but its parent is in {own}; a namespaced parent's children are in its own \
             namespace"
        )),
        (Scope::Namespaced, Some(own), _) => Ok(Key::namespaced(own, name)),
        (Scope::Namespaced, None, Some(given)) => match situation.namespace {
            Some(only) if only != given => Err(format!(
                "metadata.namespace: it is in {given}, but the operator is limited to namespace {only} and would not see it"
            )),
            _ => Ok(Key::namespaced(given, name)),
        },
        (Scope::Namespaced, None, None) => {
            Err("metadata.namespace is missing; a cluster-scoped parent has none to give".into())
        }
    }
}

fn is_only_named(fields: &Map<String, Value>) -> bool {
    let bare = |map: &Map<String, Value>, known: &[&str]| {
        map.iter().all(|(name, value)| value.is_null() || known.contains(&name.as_str()))
    };
    bare(fields, &["apiVersion", "kind", "metadata"])
        && fields["metadata"].as_object().is_some_and(|metadata| bare(metadata, &["name", "namespace"]))
}

/// Adds the namespace.
fn complete(value: &mut Value, object: &ObjectRef) {
    if let Some(namespace) = object.key.namespace() {
        value["metadata"]["namespace"] = json!(namespace);
    }
}

/// Adds the owner.
fn own(value: &mut Value, situation: &Situation<'_>) -> Result<(), String> {
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return Ok(()) };
    let owners = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
    if owners.is_null() {
        *owners = json!([]);
    }
    let owners = owners.as_array_mut().ok_or("metadata.ownerReferences: it is not a list")?;
    let uid = situation.snapshot.parent.uid();
    owners.retain(|owner| owner["uid"] != uid);
    if owners.iter().any(|owner| owner["controller"] == true) {
        return Err(
            "metadata.ownerReferences: another controller is named; a child has one, its parent".into()
        );
    }
    owners.push(owner_reference(situation));
    Ok(())
}

/// The reference by which a child belongs to the parent.
pub(super) fn owner_reference(situation: &Situation<'_>) -> Value {
    let (kind, parent) = (&situation.snapshot.kind, &situation.snapshot.parent);
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind(),
        "name": parent.key().name(),
        "uid": parent.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
