//! A controller at work: its watches, what is known of its kinds, and whether its parents can be synced.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::learn::{has_changed, learn_kinds};
use super::{Knowledge, Runner, Trigger, lock};
use crate::cache::{KindState, Object, Options, Prune, PruneError, Watch};
use crate::controller::Controller;
use crate::kind::Kind;
use crate::plan::{Memory, revision_kind};
use crate::queue::{LaneSettings, Priority};

/// For how long schemas are taken to be as they were. A sync after that has them looked at.
const LOOK_AFTER: Duration = Duration::from_mins(1);
/// For how long they are not looked at again, although a write failed that hints at a change.
const LOOK_AFTER_HINT: Duration = Duration::from_secs(5);
/// How long it takes until a schema that could not be read is asked for again: doubled each time, up to the longest.
const UNREAD_WAIT: Duration = Duration::from_secs(30);
const UNREAD_WAIT_MAX: Duration = Duration::from_mins(10);

/// A controller at work.
pub(crate) struct Active {
    pub(crate) controller: Controller,
    /// The uid of the parent that has the controller run. Its shard is that of all parents of the controller: the replica that looks
    /// after it is the only one that runs the controller.
    registrar: Option<String>,
    /// The parent's first, then those of its children, in the controller's order, then revisions.
    watches: Vec<Watch>,
    knowledge: RwLock<Option<Arc<Knowledge>>>,
    /// Whether its parents may be synced, as far as the guide has seen.
    open: watch::Sender<bool>,
    guide: RwLock<Option<AbortHandle>>,
    /// Says that schemas should be looked at.
    hints: Notify,
    looked: Mutex<Looked>,
}

/// When schemas were looked at, and how thoroughly they should be the next time.
#[derive(Debug)]
struct Looked {
    at: Instant,
    /// Everything is learned again, whatever the server's index says.
    again: bool,
}

impl Active {
    /// Begins to watch what the controller needs. One that `is_late` comes while others are at work already.
    pub(crate) fn start(
        controller: Controller,
        registrar: Option<String>,
        runner: &Arc<Runner>,
        is_late: bool,
    ) -> Result<Arc<Self>, PruneError> {
        let mut wanted = vec![(controller.parent.clone(), options(&controller.options.prune, false)?)];
        for child in &controller.children {
            wanted.push((child.kind.clone(), options(&child.prune, child.metadata_only)?));
        }
        if controller.rolls() {
            wanted.push((revision_kind(), Options::default()));
        }
        let watches = wanted
            .into_iter()
            .map(|(kind, options)| runner.caches.watch(&kind, runner.scope(&kind), options));
        let active = Arc::new(Self {
            watches: watches.collect(),
            controller,
            registrar,
            knowledge: RwLock::default(),
            open: watch::Sender::new(false),
            guide: RwLock::default(),
            hints: Notify::new(),
            looked: Mutex::new(Looked { at: Instant::now(), again: false }),
        });
        let mut queue = lock(&runner.queue);
        let lane = active.controller.parent();
        let settings = LaneSettings { backoff: active.controller.options.backoff, ..LaneSettings::default() };
        queue.set_lane(lane, settings);
        queue.pause(lane);
        drop(queue);
        let guide = tokio::spawn(guide(Arc::clone(&active), Arc::clone(runner), is_late)).abort_handle();
        *active.guide.write().unwrap_or_else(PoisonError::into_inner) = Some(guide);
        Ok(active)
    }

    pub(crate) fn knowledge(&self) -> Option<Arc<Knowledge>> {
        self.knowledge.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether decisions that rest on this knowledge are still made.
    pub(crate) fn is_known_as(&self, knowledge: &Knowledge) -> bool {
        self.knowledge().is_some_and(|known| std::ptr::eq(&raw const *known, knowledge))
    }

    /// A sync begins: schemas that were not looked at for a while are.
    pub(crate) fn look_sometimes(&self) {
        self.look(LOOK_AFTER, false);
    }

    /// A status has no place: schemas that were not looked at for a while are, whatever the server's index says.
    pub(crate) fn look_for_status(&self) -> Duration {
        self.look(LOOK_AFTER, true);
        LOOK_AFTER
    }

    /// A write failed as it does when a schema or the status subresource is no longer as it was.
    pub(crate) fn look_soon(&self) {
        self.look(LOOK_AFTER_HINT, true);
    }

    fn look(&self, after: Duration, again: bool) {
        let mut looked = lock(&self.looked);
        if looked.at.elapsed() >= after {
            *looked = Looked { at: Instant::now(), again: looked.again || again };
            self.hints.notify_one();
        }
    }

    /// The kind of revisions, if the controller keeps any.
    pub(crate) fn revisions(&self) -> Option<Kind> {
        self.controller.rolls().then(revision_kind)
    }

    pub(crate) fn watches_child(&self, kind: &Kind) -> bool {
        self.controller.child(kind).is_some() || self.revisions().as_ref() == Some(kind)
    }

    pub(crate) fn watches(&self) -> &[Watch] {
        &self.watches
    }

    /// Whether all parents that were there at the beginning have been seen.
    pub(crate) fn has_found_parents(&self) -> bool {
        self.watches.first().is_some_and(Watch::is_synced)
    }

    /// Ends what `start` began. The watches end when the last sync lets go of this.
    pub(crate) fn stop(&self) {
        if let Some(guide) = self.guide.write().unwrap_or_else(PoisonError::into_inner).take() {
            guide.abort();
        }
    }

    /// Whether everything is there that a decision needs.
    pub(crate) fn is_ready(&self) -> bool {
        *self.open.borrow() && self.can_open()
    }

    /// Changes when its parents may be synced, or may no longer be.
    pub(crate) fn openness(&self) -> watch::Receiver<bool> {
        self.open.subscribe()
    }

    /// The uid by which a parent belongs to a shard.
    pub(crate) fn shard_uid<'a>(&'a self, parent: &'a Object) -> &'a str {
        self.registrar.as_deref().unwrap_or_else(|| parent.uid())
    }

    fn know(&self, knowledge: Knowledge) {
        *self.knowledge.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(knowledge));
    }

    fn can_open(&self) -> bool {
        self.knowledge().is_some() && self.watches.iter().all(is_usable)
    }
}

/// A cache that lags is better than none; one of a kind that has gone away says nothing.
fn is_usable(watch: &Watch) -> bool {
    watch.is_synced() && watch.state() != KindState::Missing
}

fn options(prune: &[String], metadata_only: bool) -> Result<Options, PruneError> {
    Ok(Options { prune: Prune::new(prune.iter().cloned())?, metadata_only })
}

/// Lets the parents of a controller be synced while all of its kinds are there, and holds them while not. A controller that `is_late`, or
/// whose kinds are, reads its schemas separately: what others learn from may be older than the kinds.
async fn guide(active: Arc<Active>, runner: Arc<Runner>, mut is_late: bool) {
    let lane = active.controller.parent().clone();
    loop {
        for watch in active.watches() {
            watch.synced().await;
            let mut state = watch.state();
            while state == KindState::Missing {
                is_late = true;
                state = watch.state_after(&state).await;
            }
        }
        let knowledge = learn_kinds(&active, &runner, is_late).await;
        active.know(knowledge);
        if !active.can_open() {
            continue;
        }
        active.open.send_replace(true);
        lock(&runner.queue).resume(&lane);
        let parents = runner.find_parents(&lane);
        tracing::info!(kind = %lane, parents, "all caches are filled; syncing");
        runner.wake.notify_one();
        tokio::select! {
            biased;
            () = any_missing(&active) => {}
            () = keep_learning(&active, &runner) => {}
        }
        is_late = true;
        active.open.send_replace(false);
        lock(&runner.queue).pause(&lane);
    }
}

/// Ends when a kind goes away, whichever is the first.
async fn any_missing(active: &Active) {
    let missing = active.watches().iter().map(|watch| {
        Box::pin(async move {
            let mut state = watch.state();
            while state != KindState::Missing {
                state = watch.state_after(&state).await;
            }
        })
    });
    futures::future::select_all(missing).await;
}

/// Learns again whenever schemas have changed, or could not be read before. Never ends.
async fn keep_learning(active: &Active, runner: &Arc<Runner>) {
    let mut wait = UNREAD_WAIT;
    loop {
        let Some(known) = active.knowledge() else { return std::future::pending().await };
        let retried = async {
            if known.is_complete() {
                std::future::pending::<()>().await;
            } else {
                tokio::time::sleep(wait).await;
            }
        };
        let is_hint = tokio::select! {
            biased;
            () = active.hints.notified() => true,
            () = retried => false,
        };
        let again = {
            let mut looked = lock(&active.looked);
            looked.at = Instant::now();
            std::mem::take(&mut looked.again)
        };
        wait = if is_hint { wait } else { (wait * 2).min(UNREAD_WAIT_MAX) };
        if !again && known.is_complete() && !has_changed(active, runner, &known).await {
            continue;
        }
        let learned = learn_kinds(active, runner, true).await;
        if learned.decides_as(&known) {
            // Only what the server calls it is new.
            active.know(learned);
            continue;
        }
        let kind = active.controller.parent();
        tracing::info!(%kind, "its schemas have changed; syncing all parents");
        active.know(learned);
        runner.forget_memories(kind);
        runner.find_parents(kind);
        wait = UNREAD_WAIT;
    }
}

impl Runner {
    /// Forgets what was learned by old schemas. A sync that runs forgets it by itself.
    fn forget_memories(&self, kind: &Kind) {
        for (_, state) in lock(&self.parents).iter_mut().filter(|((of, _), _)| of == kind) {
            state.memory = Memory::default();
        }
    }

    /// Wakes all parents of a kind, and tells how many there are. A shared cache may have been filled before the
    /// controller came.
    pub(crate) fn find_parents(&self, kind: &Kind) -> usize {
        let parents =
            self.caches.list(kind, self.namespace.as_deref(), &crate::cache::Selector::everything());
        for parent in &parents {
            self.push(&(kind.clone(), parent.key().clone()), Priority::Low, Trigger::Found);
        }
        parents.len()
    }
}
