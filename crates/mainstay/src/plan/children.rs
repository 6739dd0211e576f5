//! What becomes of each child: how it stands, and what its kind's strategy makes of that.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::Wanted;
use super::rolling::{Member, plan_rolling};
use super::{Action, Body, Precondition, Reason, Situation, Step, Waiting};
use crate::cache::{Object, Selector};
use crate::controller::{Bond, ChildKind, Strategy};
use crate::diff::{self, APPLIED, Change};

/// Steps and waits, as they come up.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Step>,
    pub(super) waiting: Vec<Waiting>,
}

/// How a desired child stands.
#[derive(Debug)]
pub(super) enum Standing {
    /// There is no such object.
    Missing,
    /// It is as desired.
    Same,
    /// It is being deleted.
    Going,
    /// It differs.
    Different { live: Arc<Object>, reason: Reason, changes: Vec<Change> },
    /// It isn't this parent's, and may be taken.
    Free { live: Arc<Object>, reason: Reason },
    /// It isn't this parent's.
    Foreign { owner: Option<String> },
}

/// Plans all desired children, in the handler's order.
pub(super) fn plan_children(wanted: Vec<Wanted>, situation: &Situation<'_>, draft: &mut Draft) {
    let mut rolled: Vec<(&ChildKind, Vec<Member>)> = Vec::new();
    for child in wanted {
        // `read_answer` lets through configured kinds only.
        let Some(config) = situation.controller.child(&child.object.kind) else { continue };
        let standing = standing(&child, config, situation);
        if let Strategy::Rolling(_) = config.strategy {
            let member = Member { wanted: child, standing };
            match rolled.iter_mut().find(|(known, _)| known.kind == config.kind) {
                Some((_, members)) => members.push(member),
                None => rolled.push((config, vec![member])),
            }
        } else {
            act(child, standing, config, draft);
        }
    }
    for (config, members) in rolled {
        if let Strategy::Rolling(rolling) = &config.strategy {
            plan_rolling(rolling, config, members, situation, draft);
        }
    }
}

/// What a strategy other than rolling does.
fn act(wanted: Wanted, standing: Standing, config: &ChildKind, draft: &mut Draft) {
    match standing {
        Standing::Different { live, reason, changes } => match &config.strategy {
            _ if reason == Reason::Immutable => {
                draft.steps.push(delete(wanted.object, &live, reason, changes));
            }
            Strategy::Replace => draft.steps.push(replace(wanted, &live, reason, changes)),
            Strategy::Recreate => {
                draft.steps.push(recreate(wanted, &live, Reason::MustBeRecreated, changes));
            }
            Strategy::OnDelete => {
                let paths = changes.into_iter().map(|change| change.path).collect();
                draft.waiting.push(Waiting::OnDelete { child: wanted.object, paths });
            }
            Strategy::Apply | Strategy::Rolling(_) => draft.steps.push(apply(wanted, &live, reason, changes)),
        },
        other => settle(wanted, other, draft),
    }
}

/// What happens under every strategy.
pub(super) fn settle(wanted: Wanted, standing: Standing, draft: &mut Draft) {
    match standing {
        Standing::Missing => draft.steps.push(create(wanted)),
        Standing::Going => draft.waiting.push(Waiting::Deleting { child: wanted.object }),
        Standing::Foreign { owner } => draft.waiting.push(Waiting::Conflict { child: wanted.object, owner }),
        Standing::Free { live, reason } if wanted.only_named => {
            draft.steps.push(adopt(wanted, &live, reason));
        }
        Standing::Free { live, reason } => {
            let precondition = Precondition::Unchanged {
                uid: live.uid().to_owned(),
                resource_version: live.resource_version().to_owned(),
            };
            let body = Body::new(wanted.value, precondition);
            draft.steps.push(Step {
                action: Action::Apply,
                object: wanted.object,
                reason,
                changes: Vec::new(),
                body,
            });
        }
        Standing::Same | Standing::Different { .. } => {}
    }
}

/// How a child stands.
fn standing(wanted: &Wanted, config: &ChildKind, situation: &Situation<'_>) -> Standing {
    if config.bond == Bond::Unowned {
        let there =
            situation.strangers.contains_key(&wanted.object) || situation.child(&wanted.object).is_some();
        return if there { Standing::Same } else { Standing::Missing };
    }
    let Some(live) = situation.child(&wanted.object) else {
        return match situation.strangers.get(&wanted.object) {
            None => Standing::Missing,
            Some(stranger) => stranger_standing(wanted, stranger, config, situation),
        };
    };
    if live.is_deleting() {
        return Standing::Going;
    }
    if wanted.only_named {
        return Standing::Same;
    }
    let applied = live.annotation(APPLIED);
    let same_hash = applied.as_deref() == Some(wanted.hash.as_str());
    if same_hash && situation.memory.is_verified(live) {
        return Standing::Same;
    }
    let mut changes = compare(wanted, live, config, situation);
    changes.retain(|change| !is_applied_annotation(change));
    if same_hash && changes.is_empty() {
        return Standing::Same;
    }
    let refused = situation.memory.refused.get(&wanted.object).filter(|refusal| refusal.hash == wanted.hash);
    let reason = match refused {
        Some(refusal) if refusal.immutable && config.recreate_immutable => Reason::Immutable,
        _ if same_hash => Reason::Drifted,
        _ => Reason::DesiredChanged,
    };
    Standing::Different { live: Arc::clone(live), reason, changes }
}

fn is_applied_annotation(change: &Change) -> bool {
    change.path.to_string() == format!("metadata.annotations[\"{APPLIED}\"]")
}

fn compare(wanted: &Wanted, live: &Object, config: &ChildKind, situation: &Situation<'_>) -> Vec<Change> {
    let rules = situation.rules(&wanted.object.kind);
    let learned = situation.memory.learned(live.uid());
    if config.metadata_only {
        let named = json!({"metadata": wanted.value["metadata"]});
        return diff::compare(&named, &live.value(), rules, learned);
    }
    diff::compare(&wanted.value, &live.value(), rules, learned)
}

/// How an object stands that has a child's name and is not this parent's.
fn stranger_standing(
    wanted: &Wanted,
    stranger: &Arc<Object>,
    config: &ChildKind,
    situation: &Situation<'_>,
) -> Standing {
    if stranger.controller_uid().is_some() {
        return Standing::Foreign { owner: controller_of(stranger) };
    }
    if stranger.is_deleting() {
        return Standing::Going;
    }
    // The hash covers the parent's uid: only this parent's child can carry it.
    if stranger.annotation(APPLIED).as_deref() == Some(wanted.hash.as_str()) {
        return Standing::Free { live: Arc::clone(stranger), reason: Reason::ReferenceLost };
    }
    let may_adopt = config.adopt.as_ref().is_some_and(|adopt| {
        let selector = adopt(situation.parent_json);
        // An empty selector would take whatever is there; that is never what somebody meant.
        !selector.trim().is_empty()
            && selector.parse::<Selector>().is_ok_and(|selector| stranger.is_selected_by(&selector))
    });
    if may_adopt {
        return Standing::Free { live: Arc::clone(stranger), reason: Reason::Adopted };
    }
    Standing::Foreign { owner: None }
}

/// The controller of an object, as people name it.
fn controller_of(object: &Object) -> Option<String> {
    let value = object.value();
    let owners = value.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    Some(format!("{} {}", text("kind"), text("name")))
}

/// Makes an object a child that stays as it is. An apply that names nothing would take from it whatever was applied to it before, when
/// it was another parent's.
fn adopt(wanted: Wanted, live: &Object, reason: Reason) -> Step {
    let listed = |value: &Value| {
        value.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let owners: Vec<Value> = listed(&live.value()).into_iter().chain(listed(&wanted.value)).collect();
    let precondition = Precondition::Unchanged {
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
    };
    let mut metadata = json!({"ownerReferences": owners});
    if let Some(finalizer) = wanted.finalizer {
        let mut finalizers = live
            .value()
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !finalizers.iter().any(|known| *known == finalizer) {
            finalizers.push(finalizer.into());
        }
        metadata["finalizers"] = finalizers.into();
    }
    let body = Body::new(json!({"metadata": metadata}), precondition);
    Step { action: Action::Adopt, object: wanted.object, reason, changes: Vec::new(), body }
}

pub(super) fn create(wanted: Wanted) -> Step {
    let body = Body::new(wanted.value, Precondition::Absent);
    Step { action: Action::Create, object: wanted.object, reason: Reason::Missing, changes: Vec::new(), body }
}

pub(super) fn apply(wanted: Wanted, live: &Object, reason: Reason, changes: Vec<Change>) -> Step {
    let body = Body::new(wanted.value, Precondition::Uid(live.uid().to_owned()));
    Step { action: Action::Apply, object: wanted.object, reason, changes, body }
}

fn replace(wanted: Wanted, live: &Object, reason: Reason, changes: Vec<Change>) -> Step {
    let precondition = Precondition::Unchanged {
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
    };
    let body = Body::new(wanted.value, precondition);
    Step { action: Action::Replace, object: wanted.object, reason, changes, body }
}

/// Deletes a child that is then found missing. Carries what is desired, so that a difference that the server made by itself can be
/// told from one that somebody made.
pub(super) fn recreate(wanted: Wanted, live: &Object, reason: Reason, changes: Vec<Change>) -> Step {
    let body = Body::new(wanted.value, Precondition::Uid(live.uid().to_owned()));
    Step { action: Action::Delete, object: wanted.object, reason, changes, body }
}

pub(super) fn delete(
    object: crate::kind::ObjectRef,
    live: &Object,
    reason: Reason,
    changes: Vec<Change>,
) -> Step {
    let body = Body::new(Value::Null, Precondition::Uid(live.uid().to_owned()));
    Step { action: Action::Delete, object, reason, changes, body }
}
