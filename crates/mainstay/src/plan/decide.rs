//! From a handler's answer to a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::answer::{Wanted, read_answer};
use super::children::{Draft, delete, plan_children};
use super::parent::{end, plan_fields, plan_let_go, plan_releases, refusal};
use super::revisions::{plan_revisions, revision_kind};
use super::status::{StatusOf, plan_status};
use super::{Action, Body, Memory, Plan, Precondition, Reason, Step, Waiting};
use crate::cache::Object;
use crate::controller::{Bond, Controller, Strategy};
use crate::diff::{APPLIED, Rules};
use crate::handler::{Finalized, SyncResponse};
use crate::kind::{Kind, ObjectRef};
use crate::snapshot::Snapshot;

/// Everything that a plan depends on besides the handler's answer.
pub(crate) struct Situation<'a> {
    pub(crate) controller: &'a Controller,
    /// The finalizer's name.
    pub(crate) finalizer: &'a str,
    /// The only namespace that the operator watches, if it is limited to one.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) parent_json: &'a Value,
    /// Objects that have a desired child's name and are not this parent's.
    pub(crate) strangers: &'a BTreeMap<ObjectRef, Arc<Object>>,
    /// How lists and numbers of each kind are compared. Those that are unknown are compared by their looks.
    pub(crate) rules: &'a BTreeMap<Kind, Arc<Rules>>,
    pub(crate) memory: &'a Memory,
    /// Whether the parent's kind has the status subresource.
    pub(crate) has_status: bool,
    /// How many deletions the budget allows now.
    pub(crate) deletions_allowed: usize,
}

impl Situation<'_> {
    pub(super) fn child(&self, object: &ObjectRef) -> Option<&Arc<Object>> {
        let (_, objects) = self.snapshot.children.iter().find(|(kind, _)| *kind == object.kind)?;
        objects.iter().find(|child| *child.key() == object.key)
    }

    pub(super) fn rules(&self, kind: &Kind) -> &Rules {
        static UNKNOWN: LazyLock<Rules> = LazyLock::new(Rules::unknown);
        self.rules.get(kind).map_or(&UNKNOWN, |rules| rules)
    }

    pub(super) fn revisions(&self) -> &[Arc<Object>] {
        &self.snapshot.revisions
    }

    fn plan(&self) -> Plan {
        Plan::empty(self.snapshot.parent_ref(), self.snapshot.parent.generation())
    }

    fn finalizers(&self) -> Vec<&str> {
        let listed = self.parent_json.pointer("/metadata/finalizers").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether the parent waits for this operator before it goes.
    fn has_finalizer(&self) -> bool {
        self.finalizers().contains(&self.finalizer)
    }

    fn parent_step(&self, action: Action, reason: Reason, finalizers: &[&str]) -> Step {
        let parent = &self.snapshot.parent;
        let precondition = Precondition::Unchanged {
            uid: parent.uid().to_owned(),
            resource_version: parent.resource_version().to_owned(),
        };
        let body = Body::new(json!({"metadata": {"finalizers": finalizers}}), precondition);
        Step { action, object: self.snapshot.parent_ref(), reason, changes: Vec::new(), body }
    }

    /// Puts the finalizer on before anything is made that it is to clean up, and takes off one that is no longer needed.
    fn plan_finalizer(&self, draft: &mut Draft) {
        let listed = self.finalizers();
        let there = listed.contains(&self.finalizer);
        let going = self.snapshot.parent.is_deleting();
        if self.controller.needs_finalizer() && !there && !going {
            let all: Vec<_> = listed.iter().copied().chain([self.finalizer]).collect();
            let step = self.parent_step(Action::AddFinalizer, Reason::NeedsFinalizer, &all);
            draft.steps.push(step);
        } else if !self.controller.needs_finalizer() && there {
            draft.steps.push(self.remove_finalizer(Reason::FinalizerNotNeeded));
        }
    }

    fn remove_finalizer(&self, reason: Reason) -> Step {
        let others: Vec<_> = self.finalizers().into_iter().filter(|name| *name != self.finalizer).collect();
        self.parent_step(Action::RemoveFinalizer, reason, &others)
    }

    /// Children that exist and are not desired.
    fn plan_deletions(&self, kept: &BTreeSet<ObjectRef>, draft: &mut Draft) {
        for (kind, objects) in &self.snapshot.children {
            if self.controller.child(kind).is_some_and(|child| child.bond == Bond::Unowned) {
                continue;
            }
            for live in objects {
                let object = ObjectRef { kind: kind.clone(), key: live.key().clone() };
                if !live.is_deleting() && !kept.contains(&object) {
                    draft.steps.push(delete(object, live, Reason::NotDesired, Vec::new()));
                }
            }
        }
    }

    /// Desired children, and those that no longer are.
    fn plan_owned(
        &self,
        wanted: Vec<Wanted>,
        released: &[ObjectRef],
        delete_others: bool,
        draft: &mut Draft,
    ) {
        let mut kept: BTreeSet<_> = wanted.iter().map(|child| child.object.clone()).collect();
        kept.extend(released.iter().cloned());
        if self.controller.rolls() {
            self.plan_all_revisions(draft);
        }
        plan_children(wanted, self, draft);
        if delete_others {
            self.plan_deletions(&kept, draft);
        }
        for step in draft.steps.iter_mut().filter(|step| step.action == Action::Delete) {
            step.body.foreground =
                self.controller.child(&step.object.kind).is_some_and(|child| child.foreground);
        }
        self.keep_to_budget(draft);
    }

    fn plan_all_revisions(&self, draft: &mut Draft) {
        let kept = self.controller.children.iter().find_map(|child| match &child.strategy {
            Strategy::Rolling(rolling) => Some((&child.kind, rolling.revisions)),
            _ => None,
        });
        let Some((rolled, kept)) = kept else { return };
        let own = self.snapshot.parent.key().namespace();
        let children = self.snapshot.children.iter().find(|(kind, _)| kind == rolled);
        let first =
            children.and_then(|(_, objects)| objects.first()).and_then(|object| object.key().namespace());
        // A cluster-scoped parent's revisions are beside its children, once it has any.
        if let (Some(namespace), Some(spec)) = (own.or(first), self.parent_json.get("spec")) {
            plan_revisions(spec, namespace, kept, self, draft);
        }
    }

    /// Withholds what the budget does not allow. Revisions are the framework's own and do not count.
    fn keep_to_budget(&self, draft: &mut Draft) {
        let mut allowed = self.deletions_allowed;
        let revisions = revision_kind();
        let before = draft.steps.len();
        draft.steps.retain(|step| {
            let counts = step.action == Action::Delete && step.object.kind != revisions;
            if counts && allowed == 0 {
                return false;
            }
            allowed -= usize::from(counts);
            true
        });
        let withheld = before - draft.steps.len();
        if withheld > 0 {
            draft.waiting.push(Waiting::DeletionBudget { withheld });
        }
    }
}

/// What follows from a sync.
pub(crate) fn decide_response(situation: &Situation<'_>, response: &SyncResponse) -> Plan {
    decide(situation, response, !situation.snapshot.parent.is_deleting())
}

/// What follows from a call of the finalizer.
pub(crate) fn decide_finalized(situation: &Situation<'_>, finalized: &Finalized) -> Plan {
    if !situation.has_finalizer() {
        let mut plan = situation.plan();
        plan.waiting.push(Waiting::ParentGoing);
        return plan;
    }
    match finalized {
        Finalized::NotYet(response) => {
            let mut plan = decide(situation, response, false);
            plan.waiting.push(Waiting::Finalizing);
            plan
        }
        Finalized::Done => {
            let mut plan = situation.plan();
            let uid = situation.snapshot.parent.uid();
            for (kind, objects) in &situation.snapshot.children {
                let orphan =
                    situation.controller.child(kind).is_some_and(|child| child.bond == Bond::Orphaned);
                for live in objects.iter().filter(|live| orphan && !live.is_deleting()) {
                    plan.steps.push(release(
                        ObjectRef { kind: kind.clone(), key: live.key().clone() },
                        live,
                        uid,
                        Reason::Orphaned,
                    ));
                }
            }
            plan.steps.push(situation.remove_finalizer(Reason::Finalized));
            plan
        }
    }
}

fn decide(situation: &Situation<'_>, response: &SyncResponse, delete_others: bool) -> Plan {
    let mut plan = situation.plan();
    plan.requeue_after = response.requeue_after;
    let read = match refusal(situation, response) {
        Some(message) => Err(message),
        None => read_answer(&response.children, situation),
    };
    let wanted = match read {
        Ok(wanted) => wanted,
        Err(message) => {
            plan.waiting.push(Waiting::BadAnswer { message });
            return plan;
        }
    };
    let mut draft = Draft::default();
    if response.over.is_none() {
        situation.plan_finalizer(&mut draft);
        plan_fields(situation, response, &mut draft);
        plan_releases(situation, &response.released, &mut draft);
        // Only a parent's finalizer may still make something for one that goes.
        if !situation.snapshot.parent.is_deleting() || !delete_others && situation.has_finalizer() {
            situation.plan_owned(wanted, &response.released, delete_others, &mut draft);
        }
        plan_let_go(situation, &response.let_go, &mut draft);
    }
    if !situation.has_status && !response.status.is_null() {
        draft.waiting.push(Waiting::NoStatusSubresource);
    }
    plan.steps = draft.steps;
    plan.waiting = draft.waiting;
    plan.effects = response.effects.iter().map(|effect| effect.what().to_owned()).collect();
    place_status(situation, response, &mut plan);
    if let Some(over) = response.over.filter(|_| plan.steps.is_empty()) {
        plan.steps.push(end(situation, over));
    }
    plan.steps.iter_mut().for_each(Step::hide_secrets);
    plan
}

/// A status tells of the children. One that was computed before they are written tells of a world that is about to
/// change; the sync that follows the writes makes a new one, so it is left to that, unless the handler wants it first.
fn place_status(situation: &Situation<'_>, response: &SyncResponse, plan: &mut Plan) {
    if !plan.steps.is_empty() && !response.status_first {
        return;
    }
    let Some(step) = plan_status(&StatusOf::response(situation, response, plan)) else { return };
    // Each of these writes makes the parent newer than the next one expects, so what is first is done alone. Were it the status, one that is
    // new each time would keep the fields from ever being set.
    let is_before =
        |step: &&Step| step.action == Action::AddFinalizer || step.reason == Reason::ParentDiffers;
    let before = plan.steps.iter().take_while(is_before).count();
    plan.steps.insert(before, step);
}

pub(super) fn release(object: ObjectRef, live: &Object, uid: &str, reason: Reason) -> Step {
    let value = live.value();
    let owners = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let others: Vec<_> = owners.into_iter().flatten().filter(|owner| owner["uid"] != uid).collect();
    let precondition = Precondition::Unchanged {
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
    };
    let mut metadata = json!({"ownerReferences": others});
    // What was applied is no longer anybody's concern, and is not to be taken for a sign that the reference was lost.
    if live.annotation(APPLIED).is_some() {
        metadata["annotations"] = json!({APPLIED: null});
    }
    let body = Body::new(json!({"metadata": metadata}), precondition);
    Step { action: Action::Release, object, reason, changes: Vec::new(), body }
}
