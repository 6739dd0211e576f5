//! An operator in slow motion: one sync at a time, each on caches that have seen everything. For tests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::Operator;
use super::run::{RunError, Started};
use crate::cache::{KindReport, KindState, Selector};
use crate::execute::{Call, Failure};
use crate::kind::{Key, Kind};
use crate::plan::Step;
use crate::queue::Priority;
use crate::runner::{PastSync, Trigger, lock};

/// How long the caches may lag behind the server before a step gives up.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Drives an operator by hand: nothing is synced but by [`step`](Self::step).
pub struct Stepper {
    operator: Operator,
    _started: Started,
}

/// What a step did.
#[derive(Debug, Clone)]
pub struct Stepped {
    /// The parent's kind.
    pub kind: Kind,
    /// The parent.
    pub key: Key,
    /// What it wrote, could not write, or waits for. `None` if there was nothing to do.
    pub sync: Option<PastSync>,
}

impl Stepped {
    /// The writes that it made, in order.
    pub fn written(&self) -> impl Iterator<Item = &Step> {
        let steps = self.sync.iter().flat_map(|sync| sync.plan.steps.iter().zip(&sync.outcomes));
        steps.filter(|(_, outcome)| *outcome == "done").map(|(step, _)| step)
    }

    /// How many writes it made.
    pub fn writes(&self) -> usize {
        self.written().count()
    }
}

/// Why a step was not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// A cache does not come up to the server.
    #[error("waited {PATIENCE:?} in vain for the cache of {kind}: {state}")]
    Lag {
        /// Which cache.
        kind: Kind,
        /// What it is doing.
        state: String,
    },
    /// Syncs do not come to an end.
    #[error("still something to do after {steps} steps, last for {last}")]
    Endless {
        /// So many were taken.
        steps: usize,
        /// The last parent.
        last: Key,
    },
}

impl Operator {
    /// Starts the operator without its loop, to be driven by hand. Webhooks are left out.
    ///
    /// # Errors
    /// If it runs already, or has leases to keep.
    pub fn stepper(&self) -> Result<Stepper, RunError> {
        if self.runner.fence.identity().is_some() {
            return Err(RunError::Leases);
        }
        let started = self.start()?;
        *lock(&self.runner.witness) = Some(Vec::new());
        Ok(Stepper { operator: self.clone(), _started: started })
    }
}

impl Stepper {
    /// The operator.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Waits until every cache has seen all that the server has, and controllers whose kinds are there are ready.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn catch_up(&self) -> Result<(), StepError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lagging = self.lagging().await;
            let Some(report) = lagging else { return Ok(()) };
            if Instant::now() > deadline {
                let state = crate::runner::describe(&report.state);
                return Err(StepError::Lag { kind: report.kind, state });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A cache that has not seen everything.
    async fn lagging(&self) -> Option<KindReport> {
        for report in self.operator.runner.caches.reports() {
            match &report.state {
                KindState::Missing | KindState::Forbidden { .. } => {}
                KindState::Live if report.synced && self.is_current(&report).await => {}
                _ => return Some(report),
            }
        }
        let usable = |kind: &Kind| self.operator.runner.caches.state(kind) == Some(KindState::Live);
        for active in self.operator.runner.all_active() {
            let kinds = active.watches();
            if kinds.iter().all(|watch| usable(watch.kind())) && !active.is_ready() {
                let parent = active.controller.parent();
                return self
                    .operator
                    .runner
                    .caches
                    .reports()
                    .into_iter()
                    .find(|report| report.kind == *parent);
            }
        }
        None
    }

    async fn is_current(&self, report: &KindReport) -> bool {
        let caches = &self.operator.runner.caches;
        let Ok(items) = self.list(report).await else { return false };
        let cached = caches.list(&report.kind, report.scope.namespace.as_deref(), &Selector::everything());
        let known = |item: &Value| {
            let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
            cached.iter().any(|object| {
                let newest =
                    text("resourceVersion").parse().is_ok_and(|revision: u64| object.revision() >= revision);
                object.uid() == text("uid") && newest
            })
        };
        items.len() == cached.len() && items.iter().all(known)
    }

    async fn list(&self, report: &KindReport) -> Result<Vec<Value>, Failure> {
        let path = report.kind.collection_path(report.scope.namespace.as_deref());
        let (kind, method, body) = (&report.kind, http::Method::GET, Vec::new());
        let call = Call { verb: "list", method, kind, path, content_type: None, body, turn: None };
        let answer = self.operator.runner.api.send(call).await?;
        let mut list: Value = serde_json::from_slice(&answer).unwrap_or_default();
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Syncs the parent whose turn it is, on caches that have seen everything. `None` if it is nobody's turn.
    ///
    /// # Errors
    /// If the caches do not catch up.
    pub async fn step(&self) -> Result<Option<Stepped>, StepError> {
        self.catch_up().await?;
        let runner = &self.operator.runner;
        let Some(taken) = runner.take() else { return Ok(None) };
        let (kind, key) = (taken.lane.clone(), taken.key.clone());
        Arc::clone(runner).sync_taken(taken).await;
        let sync = lock(&runner.witness).as_mut().and_then(Vec::pop);
        Ok(Some(Stepped { kind, key, sync }))
    }

    /// Takes steps until it is nobody's turn. Parents that wait for a time (a backoff, a requeue) are left waiting.
    ///
    /// # Errors
    /// If the caches do not catch up, or there is no end to it.
    pub async fn settle(&self) -> Result<Vec<Stepped>, StepError> {
        const STEPS_MAX: usize = 10_000;
        let mut steps = Vec::new();
        while let Some(stepped) = self.step().await? {
            if steps.len() >= STEPS_MAX {
                return Err(StepError::Endless { steps: STEPS_MAX, last: stepped.key });
            }
            steps.push(stepped);
        }
        Ok(steps)
    }

    /// Has every parent synced, also one that failed and waits: as if somebody asked for each by name.
    pub fn wake_all(&self) {
        let runner = &self.operator.runner;
        for active in runner.all_active() {
            let kind = active.controller.parent();
            for parent in runner.caches.list(kind, runner.namespace.as_deref(), &Selector::everything()) {
                runner.push(&(kind.clone(), parent.key().clone()), Priority::Now, Trigger::Asked);
            }
        }
    }
}
