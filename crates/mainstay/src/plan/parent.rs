//! What an answer asks for beyond children and status: fields of the parent itself, its end, children that are released, and
//! finalizers that are taken off.

use serde_json::{Map, Value, json};

use super::children::Draft;
use super::decide::release;
use super::{Action, Body, Precondition, Reason, Situation, Step};
use crate::cache::Object;
use crate::diff::{self, Learned};
use crate::handler::{Over, SyncResponse};
use crate::kind::ObjectRef;

/// Why an answer cannot be acted on, if it asks for what its controller did not say it does, or for what nobody can do.
pub(super) fn refusal(situation: &Situation<'_>, response: &SyncResponse) -> Option<String> {
    let parent = situation.snapshot.parent_ref();
    let writes = !response.parent.is_null()
        || !response.cleared.is_empty()
        || response.over.is_some()
        || response.let_go.iter().any(|(object, _)| *object == parent);
    if writes && !situation.controller.options.writes_parents {
        return Some("it changes the parent; declare that with `writes_parents`".into());
    }
    if let Some(pointer) = response.cleared.iter().find(|pointer| !is_clearable(pointer)) {
        return Some(format!("{pointer}: it is not for the handler to take off its parent"));
    }
    let (set, live) = (&response.parent, situation.parent_json);
    if let Some(pointer) = response.cleared.iter().find(|pointer| is_set(set, pointer)) {
        return Some(format!("{pointer}: it is set on the parent and taken off it at once"));
    }
    if let Some(pointer) = response.cleared.iter().find(|pointer| is_in_list(live, pointer)) {
        return Some(format!("{pointer}: it is part of a list, which can only be set as a whole"));
    }
    if response.parent.is_null() {
        return None;
    }
    let Value::Object(fields) = &response.parent else {
        return Some("the fields of the parent are not an object".into());
    };
    if fields.contains_key("status") {
        return Some("status: the parent's status is set by `set_status`".into());
    }
    let named = |field: &&str| response.parent["metadata"].get(*field).is_some();
    KEPT.into_iter()
        .find(named)
        .map(|field| format!("metadata.{field}: it is not for the handler to set on its parent"))
}

/// What of the metadata is the framework's own, or the server's.
const KEPT: [&str; 6] = ["name", "namespace", "uid", "resourceVersion", "finalizers", "ownerReferences"];

fn is_clearable(pointer: &str) -> bool {
    let mut names = pointer.split('/').skip(1);
    match (names.next(), names.next()) {
        (Some("metadata"), Some(name)) => !KEPT.contains(&name),
        (None | Some("" | "status" | "metadata" | "apiVersion" | "kind"), _) => false,
        _ => true,
    }
}

/// The names that a pointer consists of.
fn names(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
}

/// Whether something is set where a pointer leads, or in its way: a value that has no fields.
fn is_set(set: &Value, pointer: &str) -> bool {
    let mut place = set;
    for name in names(pointer) {
        match place {
            Value::Object(fields) => place = fields.get(&name).unwrap_or(&Value::Null),
            other => return !other.is_null(),
        }
    }
    !place.is_null()
}

/// Whether a pointer leads into a list. A patch cannot take items off one.
fn is_in_list(live: &Value, pointer: &str) -> bool {
    let ends = pointer.match_indices('/').map(|(end, _)| end);
    ends.filter_map(|end| live.pointer(&pointer[..end])).any(Value::is_array)
}

/// Fields of the parent that are not as they should be: those that differ, and those that it should not have. One patch for both, so
/// that whatever the operator has applied to the object as somebody's child stays as it is.
pub(super) fn plan_fields(situation: &Situation<'_>, response: &SyncResponse, draft: &mut Draft) {
    let (kind, live) = (&situation.snapshot.kind, situation.parent_json);
    let mut patch = if response.parent.is_object() { response.parent.clone() } else { json!({}) };
    diff::drop_nulls(&mut patch);
    let mut changes = diff::compare(&patch, live, situation.rules(kind), &Learned::nothing());
    let mut without = live.clone();
    for pointer in &response.cleared {
        if let Some(field) = without.pointer_mut(pointer).filter(|field| !field.is_null()) {
            *field = Value::Null;
            // There is nothing on the way that has no fields: such answers are refused.
            *names(pointer).fold(&mut patch, |place, name| &mut place[name]) = Value::Null;
        }
    }
    changes.extend(diff::difference(live, &without, situation.rules(kind), diff::Extent::WithoutStatus));
    if changes.is_empty() {
        return;
    }
    if !patch["metadata"].is_object() {
        // It is where the precondition goes.
        patch["metadata"] = Value::Object(Map::new());
    }
    let body = Body::new(patch, unchanged(&situation.snapshot.parent));
    let object = situation.snapshot.parent_ref();
    draft.steps.push(Step { action: Action::Patch, object, reason: Reason::ParentDiffers, changes, body });
}

/// Children that shall be nobody's.
pub(super) fn plan_releases(situation: &Situation<'_>, released: &[ObjectRef], draft: &mut Draft) {
    let uid = situation.snapshot.parent.uid();
    for object in released {
        if let Some(live) = situation.child(object) {
            draft.steps.push(release(object.clone(), live, uid, Reason::Released));
        }
    }
}

/// Finalizers that shall no longer keep a child or the parent.
pub(super) fn plan_let_go(situation: &Situation<'_>, let_go: &[(ObjectRef, String)], draft: &mut Draft) {
    let parent = situation.snapshot.parent_ref();
    for (object, finalizer) in let_go {
        let live = if *object == parent { Some(&situation.snapshot.parent) } else { situation.child(object) };
        let Some(live) = live else { continue };
        let value = live.value();
        let listed = value.pointer("/metadata/finalizers").and_then(Value::as_array);
        let Some(listed) = listed.filter(|listed| listed.iter().any(|name| name == finalizer)) else {
            continue;
        };
        let others: Vec<_> = listed.iter().filter(|name| *name != finalizer).collect();
        let body = Body::new(json!({"metadata": {"finalizers": others}}), unchanged(live));
        draft.steps.push(Step {
            action: Action::RemoveFinalizer,
            object: object.clone(),
            reason: Reason::LetGo,
            changes: Vec::new(),
            body,
        });
    }
}

/// The end of the parent.
pub(super) fn end(situation: &Situation<'_>, over: Over) -> Step {
    let parent = &situation.snapshot.parent;
    let (action, precondition) = match over {
        Over::Deleted => (Action::Delete, unchanged(parent)),
        // A pod's status is written by many; whatever it says, its time is up.
        Over::Ended => (Action::End, Precondition::Uid(parent.uid().to_owned())),
    };
    let body = Body::new(Value::Null, precondition);
    Step { action, object: situation.snapshot.parent_ref(), reason: Reason::Over, changes: Vec::new(), body }
}

fn unchanged(object: &Object) -> Precondition {
    Precondition::Unchanged {
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
    }
}
