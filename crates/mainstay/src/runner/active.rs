//! A controller at work: its watches, what is known of its kinds, and whether its parents can be synced.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::documents::{Published, Shared};
use super::{Runner, Trigger, lock};
use crate::cache::{KindState, Options, Prune, PruneError, Watch};
use crate::controller::Controller;
use crate::diff::{Document, Rules};
use crate::execute::{Call, Failure};
use crate::kind::Kind;
use crate::plan::revision_kind;
use crate::queue::{LaneSettings, Priority};

/// How often schemas are asked for that the server cannot tell.
const SCHEMA_TRIES: u32 = 5;

/// A controller at work.
pub(crate) struct Active {
    pub(crate) controller: Controller,
    /// The parent's first, then those of its children, in the controller's order, then revisions.
    watches: Vec<Watch>,
    knowledge: RwLock<Option<Arc<Knowledge>>>,
    /// Whether its parents may be synced, as far as the guide has seen.
    open: watch::Sender<bool>,
    /// Handlers that run past their deadline.
    pub(crate) overdue: AtomicUsize,
    guide: RwLock<Option<AbortHandle>>,
}

/// What must be known of kinds before anything is decided about their objects.
#[derive(Debug)]
pub(crate) struct Knowledge {
    /// Whether the parent's kind has the status subresource.
    pub(crate) has_status: bool,
    pub(crate) rules: BTreeMap<Kind, Arc<Rules>>,
}

impl Knowledge {
    pub(crate) fn rules(&self, kind: &Kind) -> &Rules {
        static UNKNOWN: LazyLock<Rules> = LazyLock::new(Rules::unknown);
        self.rules.get(kind).map_or(&UNKNOWN, |rules| rules)
    }
}

impl Active {
    /// Begins to watch what the controller needs. One that `is_late` comes while others are at work already.
    pub(crate) fn start(
        controller: Controller,
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
            knowledge: RwLock::default(),
            open: watch::Sender::new(false),
            overdue: AtomicUsize::new(0),
            guide: RwLock::default(),
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

    /// Waits until its parents may be synced, or may no longer be.
    pub(crate) async fn opened_or_closed(&self) {
        // The sender lives as long as this.
        let _ = self.open.subscribe().changed().await;
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

/// Lets the parents of a controller be synced while all of its kinds are there, and holds them while not. Who `is_late`, or whose kinds
/// are, does not learn with the others: what they are learning from may be older than the kinds.
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
        *active.knowledge.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(knowledge));
        if !active.can_open() {
            continue;
        }
        active.open.send_replace(true);
        lock(&runner.queue).resume(&lane);
        let parents = runner.find_parents(&lane);
        tracing::info!(kind = %lane, parents, "all caches are filled; syncing");
        runner.wake.notify_one();
        // Whatever kind goes away first.
        let missing = active.watches().iter().map(|watch| {
            Box::pin(async move {
                let mut state = watch.state();
                while state != KindState::Missing {
                    state = watch.state_after(&state).await;
                }
            })
        });
        futures::future::select_all(missing).await;
        is_late = true;
        active.open.send_replace(false);
        lock(&runner.queue).pause(&lane);
    }
}

impl Runner {
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

    async fn read(&self, kind: &Kind, path: String) -> Result<Bytes, Failure> {
        let (method, body) = (Method::GET, Vec::new());
        self.api.send(Call { verb: "get", method, kind, path, content_type: None, body, turn: None }).await
    }
}

/// Asks until the server answers: a decision on a guess would be worse than none. Schemas are shared with others that learn at the same
/// time, unless it has to be asked `anew`.
async fn learn_kinds(active: &Active, runner: &Runner, anew: bool) -> Knowledge {
    let parent = active.controller.parent();
    let mut wait = Duration::from_millis(500);
    let has_status = loop {
        match has_status(parent, runner).await {
            Ok(Some(has_status)) => break has_status,
            // A new kind is served a moment before the server tells of it.
            Ok(None) => tracing::debug!(kind = %parent, "the server does not tell of the kind yet"),
            Err(failure) => {
                tracing::warn!(kind = %parent, %failure, "cannot learn whether the kind has a status subresource");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(30));
    };
    let mut rules = BTreeMap::new();
    let mut documents: BTreeMap<String, Shared> = BTreeMap::new();
    for watch in active.watches() {
        let kind = watch.kind();
        let path = Document::path(kind);
        if !documents.contains_key(&path) {
            let document = if anew { Shared::default() } else { runner.documents.shared(&path) };
            let read = async || read_document(kind, &path, runner).await.ok_or(());
            // Without it the rules are unknown ones.
            let _ = document.get_or_try_init(read).await;
            documents.insert(path.clone(), document);
        }
        if let Some(found) = documents.get(&path).and_then(|document| document.get()?.rules(kind)) {
            rules.insert(kind.clone(), found);
        }
    }
    Knowledge { has_status, rules }
}

/// The schemas of a group. Without them lists are compared by their looks and statuses may name what has no place, so a server that
/// cannot tell them now is asked a few times.
async fn read_document(kind: &Kind, path: &str, runner: &Runner) -> Option<Published> {
    let mut wait = Duration::from_millis(500);
    for tries_left in (0..SCHEMA_TRIES).rev() {
        let retry_after = match runner.read(kind, path.to_owned()).await {
            Ok(answer) => return Some(Published::new(answer)),
            Err(Failure::Unavailable { retry_after, .. }) if tries_left > 0 => retry_after,
            Err(failure) => {
                tracing::warn!(%kind, %failure, "cannot read the schema of the kind; lists are compared by their looks");
                return None;
            }
        };
        tokio::time::sleep(retry_after.unwrap_or_default().max(wait)).await;
        wait *= 2;
    }
    None
}

/// Whether the kind has the status subresource. `None`: the server does not tell of the kind at all.
async fn has_status(kind: &Kind, runner: &Runner) -> Result<Option<bool>, Failure> {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let answer = runner.read(kind, format!("{root}/{}", kind.api_version())).await?;
    let list: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let told = |name: &str| {
        let resources = list["resources"].as_array();
        resources.is_some_and(|resources| resources.iter().any(|resource| resource["name"] == name))
    };
    Ok(told(kind.plural()).then(|| told(&format!("{}/status", kind.plural()))))
}
