//! Revisions of a parent that rolls its children: every spec it had, kept as a `ControllerRevision`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::owner_reference;
use super::children::{Draft, delete};
use super::{Action, Body, Precondition, Reason, Situation, Step};
use crate::cache::Object;
use crate::diff;
use crate::kind::{Key, Kind, ObjectRef, Scope};

/// The kind that revisions are kept as.
pub(crate) fn revision_kind() -> Kind {
    Kind::new("apps/v1", "ControllerRevision", "controllerrevisions", Scope::Namespaced)
}

/// Keeps the parent's present spec as the newest revision, and no more than `kept` in all.
pub(super) fn plan_revisions(
    spec: &Value,
    namespace: &str,
    kept: usize,
    situation: &Situation<'_>,
    draft: &mut Draft,
) {
    let kind = revision_kind();
    let hash = diff::content_hash(spec);
    let name = revision_name(situation, &hash);
    let number = |object: &Arc<Object>| object.value()["revision"].as_i64().unwrap_or(0);
    let mut known: Vec<_> = situation.revisions().iter().map(|object| (number(object), object)).collect();
    known.sort_by_key(|(number, object)| (*number, object.key().clone()));
    let newest = known.last().map_or(0, |(number, _)| *number);
    let object = |key: &Key| ObjectRef { kind: kind.clone(), key: key.clone() };
    let has_name = |revision: &Object| revision.key().name() == name;
    // Earlier versions named revisions otherwise.
    let has_spec = |revision: &Object| diff::content_hash(&revision.value()["data"]["spec"]) == hash;
    let current = known.iter().find(|(_, revision)| has_name(revision));
    let current = current.or_else(|| known.iter().rev().find(|(_, revision)| has_spec(revision)));
    let name = current.map_or(name, |(_, revision)| revision.key().name().to_owned());
    let (action, precondition) = match current {
        Some((number, _)) if *number == newest => (None, Precondition::None),
        Some((_, revision)) => (Some(Action::Apply), Precondition::Uid(revision.uid().to_owned())),
        None => (Some(Action::Create), Precondition::Absent),
    };
    if let Some(action) = action {
        let value = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind(),
            "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner_reference(situation)]},
            "data": {"spec": spec},
            "revision": newest + 1,
        });
        draft.steps.push(Step {
            action,
            object: object(&Key::namespaced(namespace, &name)),
            reason: Reason::NewRevision,
            changes: Vec::new(),
            body: Body::new(value, precondition),
        });
    }
    let total = known.len() + usize::from(current.is_none());
    let old = known.iter().filter(|(_, revision)| revision.key().name() != name && !revision.is_deleting());
    for (_, revision) in old.take(total.saturating_sub(kept)) {
        draft.steps.push(delete(object(revision.key()), revision, Reason::OldRevision, Vec::new()));
    }
}

/// A name that no other parent uses for its revisions, be it of another kind or a former one of the same name. Valid for any
/// parent: a long name gives way to the hash.
fn revision_name(situation: &Situation<'_>, spec_hash: &str) -> String {
    let parent = &situation.snapshot.parent;
    let hash = diff::content_hash(&json!([situation.snapshot.kind.to_string(), parent.uid(), spec_hash]));
    let room = 253 - 1 - hash.len();
    let head: String = parent.key().name().chars().take(room).collect();
    format!("{}-{hash}", head.trim_end_matches(['-', '.']))
}
