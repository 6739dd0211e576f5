//! One sync: snapshot, handler, plan, execution.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::call::{Called, call_finalize, call_sync};
use super::{Active, CacheLookup, Knowledge, ParentId, ParentState, PastSync, Runner, Trigger, lock};
use crate::cache::Object;
use crate::events::EventKind;
use crate::execute::{Executor, Failure, Outcome as StepOutcome};
use crate::handler::{Error, ErrorKind, Finalized, Related, SyncRequest, SyncResponse};
use crate::kind::{Key, Kind, ObjectRef};
use crate::plan::{
    Action, Memory, PAUSED, Plan, Reason, Situation, StatusOf, Step, Waiting, decide_finalized, decide_response, plan_status,
};
use crate::queue::{Outcome, Priority, Taken};
use crate::snapshot::Snapshot;

/// How long a key waits that was decided on outdated knowledge, if putting the cache right did not help.
const OUTDATED_WAIT: Duration = Duration::from_millis(100);

/// What a handler said, in either of its two roles.
pub(crate) enum Answer {
    Synced(SyncResponse),
    Finalized(Finalized),
}

impl Answer {
    fn status(&self) -> &Value {
        static NULL: Value = Value::Null;
        match self {
            Self::Synced(response) | Self::Finalized(Finalized::NotYet(response)) => response.status(),
            Self::Finalized(Finalized::Done) => &NULL,
        }
    }

    fn children(&self) -> &[Value] {
        match self {
            Self::Synced(response) | Self::Finalized(Finalized::NotYet(response)) => response.children(),
            Self::Finalized(Finalized::Done) => &[],
        }
    }
}

/// A sync that is under way.
struct Course<'a> {
    runner: &'a Arc<Runner>,
    active: &'a Active,
    knowledge: &'a Knowledge,
    id: ParentId,
    request: SyncRequest,
    triggers: Vec<String>,
}

impl Runner {
    /// Syncs a parent whose turn it is.
    pub(super) async fn sync(self: &Arc<Self>, taken: Taken<Kind, Key, Trigger>) -> Outcome {
        let started = Instant::now();
        let kind = taken.lane.clone();
        self.metrics.sync_started(&kind, started.saturating_duration_since(taken.ready_since));
        let span = tracing::info_span!(
            "sync",
            parent = %taken.key,
            kind = %kind,
            trigger = taken.triggers.first().map_or("timer", Trigger::as_str),
            failures = taken.failures,
        );
        let (outcome, result) = self.sync_one(taken).instrument(span).await;
        self.metrics.sync_finished(&kind, result, started.elapsed());
        outcome
    }

    async fn sync_one(self: &Arc<Self>, taken: Taken<Kind, Key, Trigger>) -> (Outcome, &'static str) {
        let id = (taken.lane, taken.key);
        let Some(active) = self.active(&id.0) else { return (Outcome::DONE, "gone") };
        let Some(knowledge) = active.knowledge() else { return (Outcome::DONE, "waiting") };
        let Some(parent) = self.caches.get(&id.0, &id.1) else {
            self.forget(&id);
            return (Outcome::DONE, "gone");
        };
        if !self.fence.is_mine(parent.uid()) {
            return (Outcome::DONE, "other-replica");
        }
        let triggers = taken.triggers.iter().map(ToString::to_string).collect();
        let request = self.request(&active, parent);
        let course = Course { runner: self, active: &active, knowledge: &knowledge, id, request, triggers };
        course.run().await
    }

    /// What the handler is given.
    pub(crate) fn request(self: &Arc<Self>, active: &Active, parent: Arc<Object>) -> SyncRequest {
        let snapshot = self.snapshot(active, parent);
        let lookup = CacheLookup { runner: Arc::clone(self), reads: active.controller.reads.clone() };
        SyncRequest::new(snapshot, Arc::new(lookup))
    }

    fn snapshot(&self, active: &Active, parent: Arc<Object>) -> Snapshot {
        let uid = parent.uid();
        let kinds = active.controller.children.iter().map(|child| &child.kind);
        let children = kinds.map(|kind| (kind.clone(), self.caches.children_of(kind, uid))).collect();
        let revisions = active.revisions().map_or_else(Vec::new, |kind| self.caches.children_of(&kind, uid));
        Snapshot { kind: active.controller.parent.clone(), parent, children, revisions, now: self.clock.now() }
    }

    /// Objects that have a desired child's name and another owner, or none.
    pub(crate) fn strangers(&self, active: &Active, parent: &Object, children: &[Value]) -> BTreeMap<ObjectRef, Arc<Object>> {
        let mut strangers = BTreeMap::new();
        for child in children {
            let text = |pointer: &str| child.pointer(pointer).and_then(Value::as_str);
            let (Some(api_version), Some(kind), Some(name)) = (text("/apiVersion"), text("/kind"), text("/metadata/name"))
            else {
                continue;
            };
            let kinds = &mut active.controller.children.iter().map(|child| &child.kind);
            let Some(kind) = kinds.find(|known| known.kind() == kind && known.api_version() == api_version) else { continue };
            let namespaced = kind.scope() == crate::kind::Scope::Namespaced;
            let namespace = text("/metadata/namespace").or(parent.key().namespace()).filter(|_| namespaced);
            let key = Key::new(namespace, name);
            if let Some(found) = self.caches.get(kind, &key)
                && found.controller_uid() != Some(parent.uid())
            {
                strangers.insert(ObjectRef { kind: kind.clone(), key }, found);
            }
        }
        strangers
    }
}

impl Course<'_> {
    async fn run(self) -> (Outcome, &'static str) {
        let parent = &self.request.snapshot().parent;
        if parent.annotation(PAUSED).as_deref() == Some("true") {
            self.remember(self.waiting(Waiting::Paused), Vec::new(), None);
            return (Outcome::DONE, "paused");
        }
        if parent.is_deleting() && !self.has_finalizer() {
            return (Outcome::DONE, "going");
        }
        let called = self.call().await;
        let asked: BTreeSet<Related> = self.request.asked().into_keys().collect();
        match called {
            Called::Answered(Ok(answer)) => self.act(answer, asked).await,
            Called::Answered(Err(error)) => {
                self.runner.set_dependencies(&self.id, asked);
                self.after_error(error).await
            }
            Called::Panicked(message) => self.failed("HandlerPanicked", &format!("the handler panicked: {message}")),
            Called::TooSlow => {
                let deadline = self.active.controller.options.deadline.as_secs_f64();
                self.failed("HandlerTooSlow", &format!("the handler did not answer within {deadline} s"))
            }
        }
    }

    fn has_finalizer(&self) -> bool {
        let listed = self.request.parent_json().pointer("/metadata/finalizers").and_then(Value::as_array);
        listed.is_some_and(|listed| listed.iter().any(|name| name.as_str() == Some(&self.runner.finalizer)))
    }

    async fn call(&self) -> Called<Answer> {
        let controller = &self.active.controller;
        let overdue = Overdue::new(&self.active.overdue);
        let started = Instant::now();
        let deadline = controller.options.deadline;
        let called = if self.request.snapshot().parent.is_deleting() {
            match &controller.finalize {
                Some(finalize) => {
                    let called = call_finalize(finalize, self.request.clone(), deadline, || overdue.begin()).await;
                    called.map(Answer::Finalized)
                }
                None => Called::Answered(Ok(Answer::Finalized(Finalized::Done))),
            }
        } else {
            let called = call_sync(&controller.handler, self.request.clone(), deadline, || overdue.begin()).await;
            called.map(Answer::Synced)
        };
        self.runner.metrics.handler_finished(&self.id.0, started.elapsed());
        called
    }

    /// Plans and executes.
    async fn act(&self, answer: Answer, mut asked: BTreeSet<Related>) -> (Outcome, &'static str) {
        let parent = &self.request.snapshot().parent;
        let strangers = self.runner.strangers(self.active, parent, answer.children());
        let mut state = self.take_state();
        let mut plan = self.decide(&answer, &strangers, &state.memory);
        // A parent that is in conflict over a name depends on whoever has it.
        for waiting in &plan.waiting {
            if let Waiting::Conflict { child, .. } = waiting {
                asked.insert(Related::named(&child.kind, child.key.clone()));
            }
        }
        self.runner.set_dependencies(&self.id, asked);
        if let Some(found) = state.stability.check(&plan, parent.generation(), Instant::now()) {
            plan.steps.clear();
            plan.waiting.push(found.waiting);
            let outcome = self.report_problems(&mut state, &answer, &mut plan).await;
            self.finish(state, plan, outcome, Some("it does not converge".into()));
            return (Outcome::Held { wait: found.wait }, "loop");
        }
        let executed = self.execute(&mut plan, &mut state, &answer).await;
        self.conclude(state, plan, executed)
    }

    fn decide(&self, answer: &Answer, strangers: &BTreeMap<ObjectRef, Arc<Object>>, memory: &Memory) -> Plan {
        let deletions_allowed = lock(&self.runner.budget).allowed(Instant::now());
        let situation = Situation {
            controller: &self.active.controller,
            finalizer: &self.runner.finalizer,
            snapshot: self.request.snapshot(),
            parent_json: self.request.parent_json(),
            strangers,
            rules: &self.knowledge.rules,
            memory,
            has_status: self.knowledge.has_status,
            deletions_allowed,
        };
        match answer {
            Answer::Synced(response) => decide_response(&situation, response),
            Answer::Finalized(finalized) => decide_finalized(&situation, finalized),
        }
    }

    async fn execute(&self, plan: &mut Plan, state: &mut ParentState, answer: &Answer) -> Executed {
        let parent = self.request.snapshot().parent_ref();
        let uid = self.request.uid().to_owned();
        let executor = Executor { api: &self.runner.api, caches: &self.runner.caches, parent_uid: &uid, parent: &parent };
        let mut executed = Executed::default();
        for step in &plan.steps {
            let rules = self.knowledge.rules(&step.object.kind);
            let outcome = executor.execute_step(step, rules, &mut state.memory, &mut |kind, change| {
                self.runner.changed(kind, change, Some(&self.id));
            });
            let outcome = outcome.await;
            executed.outcomes.push(told(&outcome));
            self.note(step, &outcome);
            match outcome {
                StepOutcome::Done => {
                    executed.wrote = true;
                    if step.action == Action::Delete && step.reason != Reason::OldRevision {
                        lock(&self.runner.budget).spend(1);
                    }
                }
                StepOutcome::NotNeeded => {}
                StepOutcome::Outdated => executed.outdated = true,
                StepOutcome::Failed(failure) => {
                    let goes_on = executed.failed(step, failure);
                    if !goes_on {
                        break;
                    }
                }
            }
            // Nothing may be made for a parent whose finalizer is not in place.
            if step.action == Action::AddFinalizer && (executed.outdated || executed.failure.is_some()) {
                break;
            }
        }
        plan.waiting.append(&mut executed.problems);
        if plan.waiting.iter().any(Waiting::is_problem) && !executed.outdated {
            executed.wrote |= self.report_problems(state, answer, plan).await.wrote;
        }
        executed
    }

    /// Tells of problems where people look: in the parent's condition and as events.
    async fn report_problems(&self, state: &mut ParentState, answer: &Answer, plan: &mut Plan) -> Executed {
        let mut executed = Executed::default();
        for waiting in plan.waiting.iter().filter(|waiting| waiting.is_problem()) {
            self.event(EventKind::Warning, waiting.reason(), &waiting.to_string());
            self.runner.metrics.sync_failed(&self.id.0, waiting.reason());
        }
        if plan.steps.iter().any(|step| step.action == Action::WriteStatus) {
            return executed;
        }
        if let Some(step) = self.status_step(answer.status(), &plan.waiting, &state.memory) {
            let parent = self.request.snapshot().parent_ref();
            let uid = self.request.uid().to_owned();
            let executor =
                Executor { api: &self.runner.api, caches: &self.runner.caches, parent_uid: &uid, parent: &parent };
            let rules = self.knowledge.rules(&parent.kind);
            let outcome = executor
                .execute_step(&step, rules, &mut state.memory, &mut |kind, change| {
                    self.runner.changed(kind, change, Some(&self.id));
                })
                .await;
            self.note(&step, &outcome);
            executed.wrote = outcome == StepOutcome::Done;
            executed.outcomes.push(told(&outcome));
            plan.steps.push(step);
        }
        executed
    }

    fn status_step(&self, status: &Value, waiting: &[Waiting], memory: &Memory) -> Option<Step> {
        let snapshot = self.request.snapshot();
        plan_status(&StatusOf {
            snapshot,
            parent_json: self.request.parent_json(),
            has_status: self.knowledge.has_status,
            rules: self.knowledge.rules(&snapshot.kind),
            memory,
            status,
            waiting,
        })
    }

    fn note(&self, step: &Step, outcome: &StepOutcome) {
        match outcome {
            StepOutcome::Done => {
                self.runner.metrics.written(&step.object.kind, step.action.label());
                tracing::info!(object = %step.object, reason = step.reason.as_str(), "{}", step.action.as_str());
            }
            StepOutcome::NotNeeded | StepOutcome::Outdated => {
                tracing::debug!(object = %step.object, outcome = told(outcome), "{}", step.action.as_str());
            }
            StepOutcome::Failed(failure) => {
                tracing::warn!(object = %step.object, %failure, "could not {}", step.action.as_str());
            }
        }
    }

    fn conclude(&self, mut state: ParentState, plan: Plan, executed: Executed) -> (Outcome, &'static str) {
        let again_after = plan.requeue_after;
        let resync = self.active.controller.options.resync;
        let again_after = [again_after, resync].into_iter().flatten().min();
        let withheld = plan.waiting.iter().find_map(|waiting| match waiting {
            Waiting::DeletionBudget { withheld } => Some(*withheld),
            _ => None,
        });
        let budget_wait = withheld.map(|withheld| {
            self.runner.metrics.deletions_withheld(&self.id.0, withheld as u64);
            lock(&self.runner.budget).wait()
        });
        let problem = plan.waiting.iter().any(Waiting::is_problem);
        let settled = plan.is_settled() && !executed.outdated;
        if settled {
            state.memory.verify(&self.request.snapshot().children);
        }
        let failure = executed.failure.clone();
        let told = failure.as_ref().map(ToString::to_string);
        let told = told.or_else(|| plan.waiting.iter().find(|waiting| waiting.is_problem()).map(ToString::to_string));
        let fenced = failure == Some(Failure::Fenced);
        self.finish(state, plan, executed_ref(&executed), told);
        if fenced {
            return (Outcome::DONE, "other-replica");
        }
        if executed.wrote || executed.outdated {
            if executed.failure.is_none() && !problem {
                self.runner.push(&self.id, Priority::Normal, Trigger::OwnWrites);
                let outcome = if executed.wrote { Outcome::DONE } else { Outcome::Held { wait: OUTDATED_WAIT } };
                return (outcome, if executed.wrote { "wrote" } else { "outdated" });
            }
        }
        if problem || failure.is_some() {
            let wait_at_least = match failure {
                Some(Failure::Unavailable { retry_after: Some(wait), .. }) => wait,
                _ => Duration::ZERO,
            };
            return (Outcome::Failed { wait_at_least }, "failed");
        }
        let again_after = [again_after, budget_wait].into_iter().flatten().min();
        (Outcome::Done { again_after }, "settled")
    }

    /// A handler's error: nothing is written for the parent.
    async fn after_error(&self, error: Error) -> (Outcome, &'static str) {
        let text = error.chain();
        match error.kind() {
            ErrorKind::Pending(kind) => {
                let state = self.runner.caches.state_text(kind);
                self.remember(self.waiting(Waiting::Cache { kind: kind.clone(), state }), Vec::new(), None);
                (Outcome::DONE, "waiting")
            }
            ErrorKind::InvalidParent { .. } => {
                let mut plan = self.waiting(Waiting::InvalidParent { message: text.clone() });
                let mut state = self.take_state();
                let answer = Answer::Synced(SyncResponse::new());
                let executed = self.report_problems(&mut state, &answer, &mut plan).await;
                self.finish(state, plan, executed, Some(text));
                (Outcome::Terminal, "invalid")
            }
            ErrorKind::Terminal => {
                self.failed("SyncFailed", &text);
                (Outcome::Terminal, "terminal")
            }
            ErrorKind::RetryAfter(wait) => {
                self.failed("SyncFailed", &text);
                (Outcome::Held { wait: *wait }, "failed")
            }
            ErrorKind::Retry => self.failed("SyncFailed", &text),
        }
    }

    fn failed(&self, reason: &'static str, message: &str) -> (Outcome, &'static str) {
        tracing::warn!(reason, "{message}");
        self.runner.metrics.sync_failed(&self.id.0, reason);
        self.event(EventKind::Warning, reason, message);
        let snapshot = self.request.snapshot();
        let plan = Plan::empty(snapshot.parent_ref(), snapshot.parent.generation());
        self.remember(plan, Vec::new(), Some(message.to_owned()));
        (Outcome::FAILED, "failed")
    }

    fn event(&self, kind: EventKind, reason: &'static str, note: &str) {
        self.runner.events.record(&self.request.snapshot().parent, kind, reason, note);
    }

    fn waiting(&self, waiting: Waiting) -> Plan {
        let snapshot = self.request.snapshot();
        Plan::only_waiting(snapshot.parent_ref(), snapshot.parent.generation(), waiting)
    }

    fn take_state(&self) -> ParentState {
        lock(&self.runner.parents).remove(&self.id).unwrap_or_default()
    }

    fn remember(&self, plan: Plan, outcomes: Vec<String>, error: Option<String>) {
        let state = self.take_state();
        self.finish(state, plan, Executed { outcomes, ..Executed::default() }, error);
    }

    /// Puts the parent's state back, with what this sync adds to its history.
    fn finish(&self, mut state: ParentState, plan: Plan, executed: Executed, error: Option<String>) {
        state.errors += u64::from(error.is_some());
        state.error.clone_from(&error);
        if !plan.is_settled() || error.is_some() {
            let past = PastSync {
                at: self.request.now(),
                triggers: self.triggers.clone(),
                plan,
                outcomes: executed.outcomes,
                error,
            };
            state.history.remember(&past, self.active.controller.options.history);
        }
        // The parent may have gone meanwhile; then nothing of it is kept.
        if self.runner.caches.get(&self.id.0, &self.id.1).is_some() {
            lock(&self.runner.parents).insert(self.id.clone(), state);
        }
    }
}

/// What came of a plan's steps.
#[derive(Debug, Default, Clone)]
struct Executed {
    outcomes: Vec<String>,
    wrote: bool,
    outdated: bool,
    problems: Vec<Waiting>,
    /// The first failure that is not one child's own problem, or else the last that is.
    failure: Option<Failure>,
}

impl Executed {
    /// Notes a failure. Tells whether the other steps should be tried.
    fn failed(&mut self, step: &Step, failure: Failure) -> bool {
        let goes_on = match &failure {
            Failure::Refused { message, .. } => {
                self.problems.push(Waiting::Rejected { child: step.object.clone(), message: message.clone() });
                true
            }
            Failure::Forbidden { message } => {
                let verb = step.action.rbac_verb().to_owned();
                let (object, message) = (step.object.clone(), message.clone());
                self.problems.push(Waiting::Forbidden { verb, object, message });
                true
            }
            Failure::NotFound | Failure::Conflict | Failure::Unavailable { .. } => true,
            Failure::Fenced => false,
        };
        self.failure = Some(failure);
        goes_on
    }
}

fn executed_ref(executed: &Executed) -> Executed {
    executed.clone()
}

fn told(outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Done => "done".into(),
        StepOutcome::NotNeeded => "not needed: the server wrote it that way".into(),
        StepOutcome::Outdated => "not done: the object has changed; decided anew".into(),
        StepOutcome::Failed(failure) => format!("failed: {failure}"),
    }
}

/// Counts handlers that run past their deadline, so that they don't take the place of others.
struct Overdue<'a> {
    count: &'a AtomicUsize,
    begun: std::sync::atomic::AtomicBool,
}

impl<'a> Overdue<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        Self { count, begun: false.into() }
    }

    fn begin(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Overdue<'_> {
    fn drop(&mut self) {
        if *self.begun.get_mut() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
