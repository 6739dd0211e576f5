//! From a handler's answer to a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::{Wanted, read_answer};
use super::children::{Draft, delete, plan_children};
use super::parent::{end, plan_fields, plan_let_go, plan_releases, refusal};
use super::revisions::{plan_revisions, revision_kind};
use super::status::{StatusOf, plan_status};
use super::{Action, Body, Plan, Precondition, Reason, Step, Waiting};
use crate::cache::Object;
use crate::controller::{Bond, Controller, Strategy};
use crate::diff::{APPLIED, Learned, Rules};
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

/// What is remembered of a parent between syncs. Empty for most.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// By uid: how the server rewrites what is applied.
    pub(crate) learned: BTreeMap<String, Learned>,
    /// Children that the server refused, until it takes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "refusals")]
    pub(crate) refused: BTreeMap<ObjectRef, Refusal>,
    /// Child states that were found to be as desired: hashes of uid and version, sorted.
    #[serde(skip)]
    verified: Vec<(u64, u64)>,
    /// The last status that was sent, and what the server made of it, as hashes.
    pub(crate) status_settled: Option<(String, String)>,
}

/// A child that the server refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Of the desired state that was refused.
    pub(crate) hash: String,
    pub(crate) immutable: bool,
}

/// As a list: keys in JSON are text.
mod refusals {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Refusal;
    use crate::kind::{Key, Kind, ObjectRef};

    pub(super) fn serialize<S: Serializer>(
        refused: &BTreeMap<ObjectRef, Refusal>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let parts = refused
            .iter()
            .map(|(object, refusal)| (&object.kind, object.key.namespace(), object.key.name(), refusal));
        serializer.collect_seq(parts)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<BTreeMap<ObjectRef, Refusal>, D::Error> {
        let parts = Vec::<(Kind, Option<String>, String, Refusal)>::deserialize(deserializer)?;
        let refused = parts.into_iter().map(|(kind, namespace, name, refusal)| {
            (ObjectRef { kind, key: Key::new(namespace.as_deref(), &name) }, refusal)
        });
        Ok(refused.collect())
    }
}

impl Memory {
    pub(crate) fn learned(&self, uid: &str) -> &Learned {
        static NOTHING: LazyLock<Learned> = LazyLock::new(Learned::nothing);
        self.learned.get(uid).unwrap_or(&NOTHING)
    }

    /// Whether this very state of the child was compared before and found to be as its annotation says.
    pub(crate) fn is_verified(&self, live: &Object) -> bool {
        self.verified.binary_search(&fingerprint(live.uid(), live.resource_version())).is_ok()
    }

    /// Forgets how the server rewrote children that are gone.
    pub(crate) fn prune(&mut self, parent: &Object, children: &[(Kind, Vec<Arc<Object>>)]) {
        if !self.learned.is_empty() {
            let mut live: Vec<_> =
                children.iter().flat_map(|(_, objects)| objects).map(|live| live.uid()).collect();
            live.push(parent.uid());
            live.sort_unstable();
            self.learned.retain(|uid, _| live.binary_search(&uid.as_str()).is_ok());
        }
    }

    /// Remembers that all children are as desired.
    pub(crate) fn verify(&mut self, children: &[(Kind, Vec<Arc<Object>>)]) {
        let live = || children.iter().flat_map(|(_, objects)| objects);
        self.refused.clear();
        self.verified.clear();
        self.verified.extend(live().map(|object| fingerprint(object.uid(), object.resource_version())));
        self.verified.sort_unstable();
        self.verified.shrink_to_fit();
    }

    /// Remembers that a child is as desired in this state, and forgets its former ones.
    pub(crate) fn verify_state(&mut self, uid: &str, resource_version: &str) {
        let state = fingerprint(uid, resource_version);
        match self.verified.binary_search_by_key(&state.0, |known| known.0) {
            Ok(place) => self.verified[place] = state,
            Err(place) => self.verified.insert(place, state),
        }
    }
}

fn fingerprint(uid: &str, resource_version: &str) -> (u64, u64) {
    let hash = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    };
    (hash(uid), hash(resource_version))
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
