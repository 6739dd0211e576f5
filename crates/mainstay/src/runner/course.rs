//! The course of one sync: call the handler, then act on its answer or on its error.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::call::{Busy, Called, ask};
use super::carry_out::Executed;
use super::failed::{Basis, Failed};
use super::sync::Ended;
use super::{Active, Knowledge, ParentId, ParentState, PastSync, Runner, Trigger, lock};
use crate::cache::Object;
use crate::events::{Event, Regarding};
use crate::handler::{
    Answers, Effect, Error, ErrorKind, Finalized, Registration, Related, SyncRequest, SyncResponse,
};
use crate::plan::{Memory, PAUSED, Plan, Situation, Waiting, decide_finalized, decide_response};
use crate::queue::{Outcome, Priority};
use crate::replicas::Turn;

/// A sync that is under way.
pub(super) struct Course<'a> {
    pub(super) runner: &'a Arc<Runner>,
    pub(super) active: &'a Active,
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) id: ParentId,
    pub(super) request: SyncRequest,
    /// The parent as the decision saw it, with what this sync wrote to it since.
    pub(super) parent: Mutex<Arc<Object>>,
    /// What was decided on, once something was.
    pub(super) basis: Mutex<Option<Basis>>,
    pub(super) turn: Turn,
    pub(super) triggers: Vec<String>,
    /// No step begins after this.
    pub(super) deadline: Instant,
}

/// What a handler said, in either of its two roles.
pub(crate) enum Answer {
    Synced(SyncResponse),
    Finalized(Finalized),
}

impl Answer {
    fn response(&self) -> Option<&SyncResponse> {
        match self {
            Self::Synced(response) | Self::Finalized(Finalized::NotYet(response)) => Some(response),
            Self::Finalized(Finalized::Done) => None,
        }
    }

    pub(crate) fn status(&self) -> &Value {
        self.response().map_or(&Value::Null, SyncResponse::status)
    }

    pub(super) fn annotations(&self) -> Map<String, Value> {
        self.response().map(|response| response.annotations.clone()).unwrap_or_default()
    }

    pub(crate) fn children(&self) -> &[Value] {
        self.response().map_or(&[], SyncResponse::children)
    }

    fn controllers(&self) -> &[Registration] {
        self.response().map_or(&[], |response| &response.controllers)
    }

    fn effects(&self) -> &[Effect] {
        self.response().map_or(&[], |response| &response.effects)
    }

    fn events(&self) -> &[Event] {
        self.response().map_or(&[], |response| &response.events)
    }

    /// The plan that follows from it.
    pub(crate) fn decide(&self, situation: &Situation<'_>) -> Plan {
        let mut plan = match self {
            Self::Synced(response) => decide_response(situation, response),
            Self::Finalized(finalized) => decide_finalized(situation, finalized),
        };
        if is_paused(&situation.snapshot.parent) {
            plan.steps.clear();
            plan.effects.clear();
            plan.waiting.insert(0, Waiting::Paused);
        }
        plan
    }
}

fn is_paused(parent: &Object) -> bool {
    parent.annotation(PAUSED).as_deref() == Some("true")
}

/// Whether a parent carries a finalizer.
pub(crate) fn has_finalizer(parent: &Value, finalizer: &str) -> bool {
    let listed = parent.pointer("/metadata/finalizers").and_then(Value::as_array);
    listed.is_some_and(|listed| listed.iter().any(|name| name.as_str() == Some(finalizer)))
}

impl Course<'_> {
    /// Runs to its end. A handler that has not returned by its deadline is left in `busy`.
    pub(super) async fn run(self, busy: &mut Option<Busy>) -> Ended {
        let parent = &self.request.snapshot().parent;
        if is_paused(parent) {
            self.remember(self.waiting(Waiting::Paused), None);
            return (Outcome::DONE, "paused");
        }
        if parent.is_deleting() && !self.has_finalizer() && !self.active.controller.options.until_gone {
            return (Outcome::DONE, "going");
        }
        match self.call().await {
            Called::Answered(Ok(answer)) => self.act(answer).await,
            Called::Answered(Err(error)) => {
                self.depend_on(&self.request.asked(), []);
                self.after_error(&error).await
            }
            Called::Panicked(message) => {
                self.failed("HandlerPanicked", &format!("the handler panicked: {message}"))
            }
            Called::TooSlow(still) => {
                *busy = still;
                let deadline = self.active.controller.options.deadline.as_secs_f64();
                self.failed("HandlerTooSlow", &format!("the handler did not answer within {deadline} s"))
            }
        }
    }

    fn has_finalizer(&self) -> bool {
        has_finalizer(self.request.parent_json(), &self.runner.finalizer)
    }

    async fn call(&self) -> Called<Answer> {
        let started = Instant::now();
        let finalizer = &self.runner.finalizer;
        let called = ask(&self.active.controller, &self.request, finalizer).await;
        self.runner.metrics.handler_finished(&self.id.0, started.elapsed());
        called
    }

    /// Plans and executes.
    async fn act(&self, answer: Answer) -> Ended {
        let parent = &self.request.snapshot().parent;
        let strangers = self.runner.strangers(self.active, parent, answer.children());
        let mut state = self.take_state();
        let situation =
            self.runner.situation(self.active, &self.knowledge, &self.request, &strangers, &state.memory);
        let mut plan = answer.decide(&situation);
        let (memory, deletions_allowed) = (state.memory.clone(), situation.deletions_allowed);
        *lock(&self.basis) = Some(Basis { strangers, memory, deletions_allowed });
        let asked = self.request.asked();
        // A parent in conflict over a name depends on whoever has it.
        let conflicts = plan.waiting.iter().filter_map(|waiting| match waiting {
            Waiting::Conflict { child, .. } => Some(Related::named(&child.kind, child.key.clone())),
            _ => None,
        });
        self.depend_on(&asked, conflicts);
        for event in answer.events() {
            self.emit(event.clone());
        }
        if !is_paused(parent) {
            self.runner.register(&self.id, answer.controllers());
        }
        let held_until = self.runner.hold_loops(&mut plan, parent, Instant::now());
        let mut executed = self.execute(&mut plan, &mut state, &answer, &asked).await;
        if plan.allows_effects() && !executed.outdated && executed.failure.is_none() {
            self.take_effect(answer.effects(), &mut executed).await;
        }
        self.conclude(state, plan, executed, held_until)
    }

    fn depend_on(&self, asked: &Answers, more: impl IntoIterator<Item = Related>) {
        self.runner.set_dependencies(&self.id, asked.keys().cloned().chain(more).collect());
        // Between question and answer the last of those who asked before may have let go of the watch. A new one tells all
        // dependants when it is filled.
        for question in asked.keys() {
            if self.active.controller.may_read(question.kind()) {
                self.runner.watch_related(question.kind());
            }
        }
    }

    /// A handler's error: neither the parent nor a child is written, but for the condition of a parent that rests.
    async fn after_error(&self, error: &Error) -> Ended {
        let text = error.chain();
        match error.kind() {
            ErrorKind::Pending(kind) => {
                let state = self.runner.state_text(kind);
                self.remember(self.waiting(Waiting::Cache { kind: kind.clone(), state }), None);
                // It may have been filled before this parent was known to wait for it.
                if self.runner.watch_related(kind) {
                    self.runner.push(&self.id, Priority::Normal, Trigger::CacheFilled);
                }
                (Outcome::DONE, "waiting")
            }
            ErrorKind::InvalidParent { .. } => {
                self.rest(Waiting::InvalidParent { message: text.clone() }, text, "invalid").await
            }
            ErrorKind::Terminal => {
                self.rest(Waiting::Failed { message: text.clone() }, text, "terminal").await
            }
            ErrorKind::RetryAfter(wait) => {
                self.failed("SyncFailed", &text);
                (Outcome::Held { wait: *wait }, "failed")
            }
            ErrorKind::Retry => self.failed("SyncFailed", &text),
        }
    }

    /// Nothing is tried again until the parent changes. Its condition says why; all else in its status stays.
    async fn rest(&self, why: Waiting, error: String, result: &'static str) -> Ended {
        let mut plan = self.waiting(why);
        let mut state = self.take_state();
        let executed = self.report_problems(&mut plan, &mut state, (&Value::Null, &Map::new())).await;
        // Nobody would know if the condition could not be written and the parent rested.
        let untold = executed.failure.is_some() || executed.outdated;
        self.finish(state, plan, executed.outcomes, Some(error));
        (if untold { Outcome::FAILED } else { Outcome::Terminal }, result)
    }

    fn failed(&self, reason: &'static str, message: &str) -> Ended {
        tracing::warn!(reason, "{message}");
        self.runner.metrics.sync_failed(&self.id.0, reason);
        self.warn(reason, message);
        let snapshot = self.request.snapshot();
        let plan = Plan::empty(snapshot.parent_ref(), snapshot.parent.generation());
        self.remember(plan, Some(message.to_owned()));
        (Outcome::FAILED, "failed")
    }

    /// A warning on the parent.
    pub(super) fn warn(&self, reason: &'static str, note: &str) {
        self.emit(Event::warning(reason, note));
    }

    pub(super) fn emit(&self, event: Event) {
        let parent = &self.request.snapshot().parent;
        if let Some(events) = &*lock(&self.runner.events) {
            events.emit(&Regarding::new(parent.reference(), parent.uid()), event);
        }
    }

    fn waiting(&self, waiting: Waiting) -> Plan {
        let snapshot = self.request.snapshot();
        Plan::only_waiting(snapshot.parent_ref(), snapshot.parent.generation(), waiting)
    }

    fn take_state(&self) -> ParentState {
        lock(&self.runner.parents).remove(&self.id).unwrap_or_default()
    }

    fn remember(&self, plan: Plan, error: Option<String>) {
        self.finish(self.take_state(), plan, Vec::new(), error);
    }

    /// Puts the parent's state back, with what this sync adds to its history.
    pub(super) fn finish(
        &self,
        mut state: ParentState,
        plan: Plan,
        outcomes: Vec<String>,
        error: Option<String>,
    ) {
        if !self.active.is_known_as(&self.knowledge) {
            // Schemas have changed meanwhile.
            state.memory = Memory::default();
        }
        let failed = error.is_some();
        state.errors += u64::from(error.is_some());
        state.error.clone_from(&error);
        if !plan.is_settled() || error.is_some() {
            let (at, triggers) = (self.request.now(), self.triggers.clone());
            let past = PastSync { at, triggers, plan, outcomes, error };
            if let Some(witness) = &mut *lock(&self.runner.witness) {
                witness.push(past.clone());
            }
            state.history.remember(&past, self.active.controller.options.history);
        }
        // The parent may have gone meanwhile; then nothing of it is kept.
        if self.runner.caches.get(&self.id.0, &self.id.1).is_some() {
            if failed {
                self.keep_failed();
            }
            lock(&self.runner.parents).insert(self.id.clone(), state);
        }
    }

    /// Keeps what the sync rested on, for whoever looks into the failure.
    fn keep_failed(&self) {
        let decided = lock(&self.basis).take();
        // Without an answer the handler's questions are all that matters.
        let basis = decided.unwrap_or_else(|| Basis {
            strangers: BTreeMap::new(),
            memory: Memory::default(),
            deletions_allowed: 0,
        });
        let failed = Failed {
            snapshot: self.request.snapshot().clone(),
            asked: self.request.asked(),
            knowledge: Arc::clone(&self.knowledge),
            basis,
        };
        lock(&self.runner.failed).keep(&self.id, failed);
    }

    /// What follows for the queue.
    fn conclude(
        &self,
        mut state: ParentState,
        plan: Plan,
        executed: Executed,
        held_until: Option<Instant>,
    ) -> Ended {
        let problem = plan.waiting.iter().find(|waiting| waiting.is_problem()).map(ToString::to_string);
        // Effects are no matter of children: those are compared no more often on their account.
        let snapshot = self.request.snapshot();
        if plan.writes_nothing() && !executed.outdated {
            // What was just written is not in the snapshot yet.
            state.memory.prune(&snapshot.parent, &snapshot.children);
            if plan.waiting.is_empty() {
                state.memory.verify(&snapshot.children);
            }
        }
        let withheld = plan.waiting.iter().find_map(|waiting| match waiting {
            Waiting::DeletionBudget { withheld } => Some(*withheld),
            _ => None,
        });
        let timers = [
            plan.requeue_after,
            self.active.controller.options.resync,
            withheld.map(|withheld| {
                self.runner.metrics.deletions_withheld(&self.id.0, withheld as u64);
                lock(&self.runner.budget).wait()
            }),
            plan.waiting.contains(&Waiting::NoStatusSubresource).then(|| self.active.look_for_status()),
        ];
        let error = executed.failure.as_ref().map(ToString::to_string).or(problem);
        let retry = executed.failure.is_some() || plan.waiting.iter().any(Waiting::is_retried);
        let ended = executed.ended(retry, timers.into_iter().flatten().min(), held_until);
        if executed.looks_again() {
            self.look_again();
        }
        self.finish(state, plan, executed.outcomes, error);
        ended
    }
}
