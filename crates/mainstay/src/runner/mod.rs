//! The loop: changes in the caches wake parents, the queue says whose turn it is, each turn is one sync.
//!
//! ```text
//! cache ─▶ wake ─▶ queue ─▶ sync: snapshot ─▶ call handler ─▶ plan ─▶ execute ─▶ cache
//! ```
//!
//! This module decides nothing about objects; it moves values between the parts that do.

mod active;
mod budget;
mod call;
mod carry_out;
mod confirm;
mod course;
mod dependencies;
mod documents;
mod effects;
mod failed;
mod history;
mod hold;
mod inspect;
mod learn;
mod lookup;
mod registrations;
mod sync;
mod threads;
mod trigger;
mod wake;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use active::Active;
pub(crate) use budget::Bucket;
pub use budget::DeletionBudget;
pub(crate) use call::Role;
pub(crate) use course::Answer;
pub(crate) use dependencies::{Dependencies, ParentId};
pub(crate) use documents::Documents;
pub(crate) use failed::FailedDecisions;
use history::History;
pub use history::PastSync;
pub(crate) use inspect::Debug;
pub use inspect::{ControllerState, ParentReport};
pub(crate) use learn::Knowledge;
pub(crate) use lookup::{CacheLookup, RelatedWatch, describe};
use registrations::Registrations;
pub use trigger::Trigger;

use crate::cache::Caches;
use crate::clock::{Clock, later};
use crate::diff::FieldPath;
use crate::events::EventSink;
use crate::execute::Api;
use crate::kind::{Key, Kind};
use crate::metrics::Metrics;
use crate::plan::Memory;
use crate::queue::{Outcome, Queue, Taken};
use crate::replicas::Fence;
use crate::serve::Pulse;
use crate::stability::Loops;
use crate::webhook::WebhookState;

/// Everything that the syncs of an operator share.
pub(crate) struct Runner {
    pub(crate) name: Arc<str>,
    pub(crate) finalizer: String,
    /// The only namespace that is looked at. `None`: all.
    pub(crate) namespace: Option<String>,
    pub(crate) api: Api,
    pub(crate) caches: Caches,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    /// Taken away when the operator stops.
    pub(crate) events: Mutex<Option<EventSink>>,
    pub(crate) fence: Fence,
    pub(crate) pulse: Pulse,
    pub(crate) concurrency: usize,
    pub(crate) queue: Mutex<Queue<Kind, Key, Trigger>>,
    /// Told when the queue may have something to give.
    pub(crate) wake: Notify,
    pub(crate) controllers: RwLock<BTreeMap<Kind, Arc<Active>>>,
    /// Schemas that controllers are learning from.
    pub(crate) documents: Documents,
    pub(crate) parents: Mutex<BTreeMap<ParentId, ParentState>>,
    /// What failed decisions rested on.
    pub(crate) failed: Mutex<FailedDecisions>,
    pub(crate) dependencies: Mutex<Dependencies>,
    /// Watches of kinds that handlers asked for.
    pub(crate) related: Mutex<BTreeMap<Kind, RelatedWatch>>,
    /// Controllers that parents have run.
    pub(crate) registrations: Mutex<Registrations>,
    pub(crate) budget: Mutex<Bucket>,
    pub(crate) loops: Mutex<Loops<FieldPath>>,
    /// How the webhooks are doing, if there are any.
    pub(crate) webhooks: Mutex<Option<watch::Receiver<WebhookState>>>,
    /// What syncs did, for somebody who steps through them.
    pub(crate) witness: Mutex<Option<Vec<PastSync>>>,
}

/// What is kept of a parent between its syncs.
#[derive(Debug, Default)]
pub(crate) struct ParentState {
    pub(crate) memory: Memory,
    pub(crate) history: History,
    /// Why the last sync did not succeed.
    pub(crate) error: Option<String>,
    pub(crate) errors: u64,
    /// Syncs in a row that wrote nothing because what they were decided on had changed.
    pub(crate) outdated: u32,
}

/// A lock whose holder panicked holds consistent data here: every critical section is a single change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runner {
    pub(crate) fn active(&self, kind: &Kind) -> Option<Arc<Active>> {
        self.controllers.read().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    pub(crate) fn all_active(&self) -> Vec<Arc<Active>> {
        self.controllers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The next parent whose turn it is.
    pub(crate) fn take(&self) -> Option<Taken<Kind, Key, Trigger>> {
        lock(&self.queue).take(Instant::now())
    }

    /// Syncs until told to stop; then lets the syncs that run finish.
    pub(crate) async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let mut running = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            self.pulse.beat();
            self.start_what_is_due(&mut running);
            let wake_at = lock(&self.queue).next_wake();
            // A timer beats at least this often, so that health can tell a quiet loop from a stuck one.
            let limit = later(Instant::now(), self.pulse.interval());
            let wake_at = wake_at.map_or(limit, |at| at.min(limit));
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = self.wake.notified() => {}
                Some(_) = running.join_next(), if !running.is_empty() => {}
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
        while running.join_next().await.is_some() {
            self.pulse.beat();
        }
    }

    fn start_what_is_due(self: &Arc<Self>, running: &mut JoinSet<()>) {
        while running.len() < self.concurrency {
            let Some(taken) = self.take() else { return };
            running.spawn(Arc::clone(self).sync_taken(taken));
        }
    }

    /// Syncs one parent and reports back to the queue.
    pub(crate) async fn sync_taken(self: Arc<Self>, taken: Taken<Kind, Key, Trigger>) {
        let (lane, key) = (taken.lane.clone(), taken.key.clone());
        // Reports even if this future is dropped, so that no key stays taken for ever.
        let mut report = Report { runner: Arc::clone(&self), lane, key, outcome: Outcome::FAILED };
        let (outcome, busy) = self.sync(taken).await;
        report.outcome = outcome;
        if let Some(busy) = busy {
            // A parent is never synced twice at once, so its key stays taken until its handler returns. Nothing else waits for that.
            tokio::spawn(async move {
                busy.await;
                drop(report);
            });
        }
    }
}

struct Report {
    runner: Arc<Runner>,
    lane: Kind,
    key: Key,
    outcome: Outcome,
}

impl Drop for Report {
    fn drop(&mut self) {
        lock(&self.runner.queue).done(&self.lane, &self.key, self.outcome, Instant::now());
        self.runner.wake.notify_one();
    }
}
