//! Carries a plan out, step by step, and tells of what went wrong where people look.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::confirm::Confirmation;
use super::course::{Answer, Course};
use super::sync::Ended;
use super::{ParentState, Trigger, lock};
use crate::cache::Change;
use crate::execute::{Executor, Failure, Heard, Outcome as StepOutcome};
use crate::handler::Answers;
use crate::kind::{Kind, ObjectRef};
use crate::plan::{Action, Memory, Plan, Reason, StatusOf, Step, Waiting, plan_status};
use crate::queue::{Outcome, Priority};

/// How long a parent waits that was decided on outdated knowledge: doubled each time in a row, up to the longest.
const OUTDATED_WAIT: Duration = Duration::from_millis(50);
const OUTDATED_WAIT_MAX: Duration = Duration::from_secs(30);
/// From this time in a row on it is reported as a problem: some three seconds after the first.
const OUTDATED_REPORTED: u32 = 6;

/// What came of steps that were not reached.
const RESTS: &str = "not tried: it rests on a step that failed";
const TOO_LATE: &str = "not tried: the time of the sync was up";

/// What came of a plan.
#[derive(Debug, Default)]
pub(super) struct Executed {
    pub(super) outcomes: Vec<String>,
    wrote: bool,
    pub(super) outdated: bool,
    /// The last object that was found to be another than the decision knew.
    contended: Option<ObjectRef>,
    /// How long to wait, if the sync was outdated and wrote nothing.
    outdated_wait: Option<Duration>,
    /// The last failure.
    pub(super) failure: Option<Failure>,
}

impl Executed {
    /// Whether there must be another look at what the writes made.
    pub(super) fn looks_again(&self) -> bool {
        (self.wrote || self.outdated) && !matches!(self.failure, Some(Failure::Fenced { .. }))
    }

    /// Counts syncs in a row that came to nothing because of others. After a few of them that is a problem.
    fn count_outdated(&mut self, state: &mut ParentState) -> Option<Waiting> {
        if !self.outdated || self.wrote || self.failure.is_some() {
            state.outdated = 0;
            return None;
        }
        state.outdated = state.outdated.saturating_add(1);
        let wait = OUTDATED_WAIT.saturating_mul(2_u32.saturating_pow(state.outdated - 1));
        self.outdated_wait = Some(wait.min(OUTDATED_WAIT_MAX));
        let object = self.contended.clone().filter(|_| state.outdated >= OUTDATED_REPORTED)?;
        Some(Waiting::Contended { object, attempts: state.outdated })
    }

    pub(super) fn ended(
        &self,
        failed: bool,
        again_after: Option<Duration>,
        held_until: Option<Instant>,
    ) -> Ended {
        if let Some(Failure::Fenced { .. }) = self.failure {
            // Should this replica keep the shard after all, it tries again.
            return (Outcome::Held { wait: Duration::from_secs(1) }, "other-replica");
        }
        if failed {
            let wait_at_least = match self.failure {
                Some(Failure::Unavailable { retry_after: Some(wait), .. }) => wait,
                _ => Duration::ZERO,
            };
            return (Outcome::Failed { wait_at_least }, "failed");
        }
        if let Some(wait) = self.outdated_wait {
            return (Outcome::Held { wait }, "outdated");
        }
        if self.wrote || self.outdated {
            return (Outcome::DONE, "wrote");
        }
        if let Some(until) = held_until {
            // Only what goes round in circles is left alone; the rest of the parent is looked after as ever.
            let until = until.saturating_duration_since(Instant::now());
            return (
                Outcome::Done { again_after: Some(again_after.map_or(until, |after| after.min(until))) },
                "loop",
            );
        }
        (Outcome::Done { again_after }, "settled")
    }
}

impl Course<'_> {
    /// Takes the steps in order. One that fails does not keep the others from being tried, unless they rest on it.
    pub(super) async fn execute(
        &self,
        plan: &mut Plan,
        state: &mut ParentState,
        answer: &Answer,
        asked: &Answers,
    ) -> Executed {
        let mut executed = Executed::default();
        let mut done = Vec::new();
        let mut problems = Vec::new();
        let mut withheld = 0;
        let mut not_reached = RESTS;
        let mut confirmed = None;
        for (place, step) in plan.steps.iter().enumerate() {
            // The first is always tried: a sync that never wrote anything would never come to an end.
            if place > 0 && Instant::now() > self.deadline {
                executed.failure = Some(Failure::too_late());
                not_reached = TOO_LATE;
                break;
            }
            if is_budgeted(step) && !lock(&self.runner.budget).take(Instant::now()) {
                withheld += 1;
                executed.outcomes.push("put off: the deletion budget is used up".into());
                continue;
            }
            let confirmation = self.confirm(step, &mut confirmed).await;
            let stale = matches!(confirmation, Confirmation::Outdated);
            let unread = matches!(confirmation, Confirmation::Failed(_));
            let outcome = match confirmation {
                Confirmation::Current => self.execute_step(step, &mut state.memory).await,
                Confirmation::Outdated => StepOutcome::Outdated,
                Confirmation::Failed(failure) => StepOutcome::Failed(failure),
            };
            if is_budgeted(step) && outcome != StepOutcome::Done {
                lock(&self.runner.budget).put_back();
            }
            executed.outcomes.push(told(&outcome));
            match outcome {
                StepOutcome::Done => {
                    executed.wrote = true;
                    done.push(place);
                }
                StepOutcome::NotNeeded => {}
                StepOutcome::Outdated => {
                    executed.outdated = true;
                    executed.contended = Some(if stale { plan.parent.clone() } else { step.object.clone() });
                }
                // The next decision knows of the refusal, and has the child created anew.
                StepOutcome::Failed(Failure::Refused { immutable: true, .. }) if self.recreates(step) => {
                    executed.outdated = true;
                }
                StepOutcome::Failed(failure) => {
                    let read = ("get", &plan.parent);
                    let (verb, object) = if unread { read } else { (step.action.rbac_verb(), &step.object) };
                    problems.extend(problem(verb, object, &failure));
                    executed.failure = Some(failure);
                }
            }
            let fenced = matches!(executed.failure, Some(Failure::Fenced { .. }));
            // Nothing may be made for a parent whose finalizer is not in place, nothing orphaned by halves, and nothing done
            // on a decision that the status or a field of the parent was to record first.
            let rests = matches!(step.action, Action::AddFinalizer | Action::Release | Action::WriteStatus)
                || step.reason == Reason::ParentDiffers;
            if fenced || stale || rests && (executed.outdated || executed.failure.is_some()) {
                break;
            }
        }
        // What is told of the status below has its place after all of these.
        executed.outcomes.resize(plan.steps.len(), not_reached.into());
        withhold(plan, withheld);
        let done: Vec<_> = done.into_iter().map(|place| &plan.steps[place]).collect();
        problems.extend(self.runner.observe(plan, &done, &self.request, asked, Instant::now()));
        plan.waiting.append(&mut problems);
        let contended = executed.count_outdated(state);
        let is_contended = contended.is_some();
        plan.waiting.extend(contended);
        if plan.waiting.iter().any(Waiting::is_problem) && (!executed.outdated || is_contended) {
            let reported = self.report_problems(plan, state, (answer.status(), &answer.annotations())).await;
            executed.wrote |= reported.wrote;
            executed.outdated |= reported.outdated;
            executed.outcomes.extend(reported.outcomes);
            executed.failure = executed.failure.or(reported.failure);
        }
        executed
    }

    fn recreates(&self, step: &Step) -> bool {
        self.active.controller.child(&step.object.kind).is_some_and(|child| child.recreate_immutable)
    }

    async fn execute_step(&self, step: &Step, memory: &mut Memory) -> StepOutcome {
        let wrote = |kind: &Kind, change: &Change| {
            if let Some(now) = change.now().filter(|now| (kind, now.key()) == (&self.id.0, &self.id.1)) {
                *lock(&self.parent) = Arc::clone(now);
            }
            self.runner.changed(kind, change, Some(&self.id));
        };
        let found = |kind: &Kind, change: &Change| self.runner.changed(kind, change, None);
        let executor = self.executor(&wrote, &found);
        let outcome = executor.execute_step(step, self.knowledge.rules(&step.object.kind), memory).await;
        self.note(step, &outcome);
        outcome
    }

    pub(super) fn executor<'a>(&'a self, wrote: &'a Heard<'a>, found: &'a Heard<'a>) -> Executor<'a> {
        Executor {
            api: &self.runner.api,
            caches: &self.runner.caches,
            turn: &self.turn,
            parent: &self.request.snapshot().parent,
            wrote,
            found,
        }
    }

    fn note(&self, step: &Step, outcome: &StepOutcome) {
        let (object, action) = (&step.object, step.action.as_str());
        match outcome {
            StepOutcome::Done => {
                self.runner.metrics.written(&object.kind, step.action.label());
                let changes = step.brief().map(tracing::field::display);
                tracing::info!(%object, reason = step.reason.as_str(), changes, "{}", step.action.done());
            }
            StepOutcome::NotNeeded | StepOutcome::Outdated => {
                tracing::debug!(%object, "{action}: {}", told(outcome));
            }
            // Told as a problem of the parent.
            StepOutcome::Failed(failure) if problem("", object, failure).is_some() => {
                tracing::debug!(%object, %failure, "could not {action}");
            }
            StepOutcome::Failed(failure) => tracing::warn!(%object, %failure, "could not {action}"),
        }
        if let StepOutcome::Failed(failure) = outcome
            && failure.hints_at_schema()
        {
            self.active.look_soon();
        }
    }

    /// Tells of problems in the parent's condition and as events. Takes the handler's status, and the annotations that go with it.
    pub(super) async fn report_problems(
        &self,
        plan: &mut Plan,
        state: &mut ParentState,
        (status, annotations): (&Value, &Map<String, Value>),
    ) -> Executed {
        let mut executed = Executed::default();
        for waiting in plan.waiting.iter().filter(|waiting| waiting.is_problem()) {
            self.tell(waiting, state.error.as_deref());
        }
        // What the server will not take, or what is new each time and would go on with its loop here, is left out: the condition
        // is put on the status that is there.
        let (parent, now) = (&self.request.snapshot().parent, Instant::now());
        let of_status =
            |waiting: &Waiting| matches!(waiting, Waiting::Rejected { child, .. } if *child == plan.parent);
        let refused = plan.waiting.iter().any(of_status);
        if !refused && plan.steps.iter().any(|step| step.action == Action::WriteStatus) {
            return executed;
        }
        let left_out = refused || self.runner.holds_status(parent, now);
        let status = if left_out { &Value::Null } else { status };
        let planned = self.plan_status((status, annotations), &plan.waiting, &state.memory);
        let Some(mut step) = planned else { return executed };
        step.hide_secrets();
        let outcome = self.execute_step(&step, &mut state.memory).await;
        executed.outcomes.push(told(&outcome));
        match outcome {
            StepOutcome::Done => {
                executed.wrote = true;
                // Should this be a round of a loop, it is held from the next time on.
                self.runner.observe(plan, &[&step], &self.request, &self.request.asked(), now);
            }
            StepOutcome::NotNeeded => {}
            StepOutcome::Outdated => executed.outdated = true,
            StepOutcome::Failed(failure) => {
                if let Some(waiting) = problem(step.action.rbac_verb(), &step.object, &failure) {
                    self.tell(&waiting, state.error.as_deref());
                    plan.waiting.push(waiting);
                }
                executed.failure = Some(failure);
            }
        }
        plan.steps.push(step);
        executed
    }

    /// Tells of a problem where people look. In the log once, not with every attempt.
    fn tell(&self, waiting: &Waiting, told_last: Option<&str>) {
        let (reason, what) = (waiting.reason(), waiting.to_string());
        if told_last == Some(&what) {
            tracing::debug!(reason, "still: {what}");
        } else {
            tracing::warn!(reason, "{what}");
        }
        self.warn(reason, &what);
        self.runner.metrics.sync_failed(&self.id.0, reason);
    }

    fn plan_status(
        &self,
        (status, annotations): (&Value, &Map<String, Value>),
        waiting: &[Waiting],
        memory: &Memory,
    ) -> Option<Step> {
        let snapshot = self.request.snapshot();
        plan_status(&StatusOf {
            snapshot,
            parent_json: self.request.parent_json(),
            has_status: self.knowledge.has_status,
            rules: self.knowledge.rules(&snapshot.kind),
            memory,
            status,
            annotations,
            told_as: self.active.controller.options.problems.as_ref(),
            waiting,
            undecided: false,
        })
    }

    /// Every write is followed by another decision: it sees what came of it, and whatever others did meanwhile.
    pub(super) fn look_again(&self) {
        self.runner.push(&self.id, Priority::Normal, Trigger::OwnWrites);
    }
}

/// Whether a step counts against the deletion budget. Revisions are the framework's own, and the budget is for children.
fn is_budgeted(step: &Step) -> bool {
    step.action == Action::Delete && !matches!(step.reason, Reason::OldRevision | Reason::Over)
}

/// Notes that deletions are put off which the plan took to be allowed: other parents were faster.
fn withhold(plan: &mut Plan, more: usize) {
    let known = plan.waiting.iter_mut().find_map(|waiting| match waiting {
        Waiting::DeletionBudget { withheld } => Some(withheld),
        _ => None,
    });
    match known {
        Some(withheld) => *withheld += more,
        None if more > 0 => plan.waiting.push(Waiting::DeletionBudget { withheld: more }),
        None => {}
    }
}

/// What it means for the parent that something could not be done to an object.
fn problem(verb: &str, object: &ObjectRef, failure: &Failure) -> Option<Waiting> {
    let object = object.clone();
    match failure {
        Failure::Refused { message, .. } => {
            Some(Waiting::Rejected { child: object, message: message.clone() })
        }
        Failure::Forbidden { message } => {
            Some(Waiting::Forbidden { verb: verb.to_owned(), object, message: message.clone() })
        }
        _ => None,
    }
}

fn told(outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Done => "done".into(),
        StepOutcome::NotNeeded => "not needed: the server wrote it that way".into(),
        StepOutcome::Outdated => "not done: the object had changed; decided anew".into(),
        StepOutcome::Failed(failure) => format!("failed: {failure}"),
    }
}
