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

/// Fields that the parent has and should not have. Tells whether there are any.
pub(super) fn plan_cleared(situation: &Situation<'_>, cleared: &[String], draft: &mut Draft) -> bool {
    let live = situation.parent_json;
    // The metadata is where the precondition goes.
    let (mut patch, mut without) = (json!({"metadata": {}}), live.clone());
    for pointer in cleared {
        if live.pointer(pointer).is_none_or(Value::is_null) {
            continue;
        }
        if let Some(field) = without.pointer_mut(pointer) {
            *field = Value::Null;
        }
        let mut place = &mut patch;
        for name in pointer.split('/').skip(1) {
            place = &mut place[name.replace("~1", "/").replace("~0", "~")];
        }
        *place = Value::Null;
    }
    let rules = situation.rules(&situation.snapshot.kind);
    let changes = diff::difference(live, &without, rules, diff::Extent::WithoutStatus);
    if changes.is_empty() {
        return false;
    }
    let body = Body::new(patch, unchanged(&situation.snapshot.parent));
    let object = situation.snapshot.parent_ref();
    draft.steps.push(Step { action: Action::Clear, object, reason: Reason::NotToHave, changes, body });
    true
}

/// Fields of the parent that are not as they should be.
pub(super) fn plan_fields(situation: &Situation<'_>, fields: &Value, draft: &mut Draft) {
    let Value::Object(fields) = fields else { return };
    let (kind, parent) = (&situation.snapshot.kind, &situation.snapshot.parent);
    let mut value = Value::Object(fields.clone());
    diff::drop_nulls(&mut value);
    let changes = diff::compare(&value, situation.parent_json, situation.rules(kind), &Learned::nothing());
    if changes.is_empty() {
        return;
    }
    value["apiVersion"] = json!(kind.api_version());
    value["kind"] = json!(kind.kind());
    if !value["metadata"].is_object() {
        value["metadata"] = Value::Object(Map::new());
    }
    value["metadata"]["name"] = json!(parent.key().name());
    if let Some(namespace) = parent.key().namespace() {
        value["metadata"]["namespace"] = json!(namespace);
    }
    let body = Body::new(value, unchanged(parent));
    let object = situation.snapshot.parent_ref();
    draft.steps.push(Step { action: Action::Apply, object, reason: Reason::ParentDiffers, changes, body });
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
