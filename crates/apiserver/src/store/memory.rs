//! The state and its history in memory, which the store and the thread that writes its disk share.

use super::age::Ages;
use super::object::Placed;
use super::{CollectionId, Event, Fate, Key, Object, Revision};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;
use tokio::time::Instant;

/// How much history is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    pub events_max: usize,
    /// Of superseded and deleted objects.
    pub bytes_max: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { events_max: 10_000, bytes_max: 32 << 20 }
    }
}

/// Of so many of a collection's newest events the line is kept once it is made: a second copy of the
/// object, for the time in which most watches ask for it.
const LINES_KEPT: usize = 256;

/// One resource.
pub(super) struct Collection {
    pub objects: BTreeSet<Placed>,
    pub events: VecDeque<Arc<Event>>,
    /// The newest event that has been dropped from `events`.
    pub forgotten: Revision,
    pub changed: watch::Sender<Revision>,
}

impl Default for Collection {
    fn default() -> Self {
        Collection {
            objects: BTreeSet::new(),
            events: VecDeque::new(),
            forgotten: 0,
            changed: watch::Sender::new(0),
        }
    }
}

/// Everything, guarded by one lock.
pub(super) struct State {
    pub revision: Revision,
    /// Every event up to this one has been dropped from history.
    pub compacted: Revision,
    pub collections: HashMap<CollectionId, Collection>,
    /// Which collection each retained event belongs to, oldest first.
    pub history: VecDeque<(Revision, CollectionId)>,
    history_bytes: usize,
    /// When which revision was the newest.
    pub ages: Ages,
}

/// The state, and how much of it may be seen.
pub(super) struct Memory {
    state: RwLock<State>,
    /// The newest revision that may be shown to anybody.
    pub durable: watch::Sender<Revision>,
}

impl Memory {
    pub(super) fn new(revision: Revision, collections: HashMap<CollectionId, Collection>) -> Self {
        let state = State {
            revision,
            compacted: revision,
            collections,
            history: VecDeque::new(),
            history_bytes: 0,
            ages: Ages::default(),
        };
        Memory { state: RwLock::new(state), durable: watch::Sender::new(revision) }
    }

    // A panic while the lock is held cannot leave a half-made change: every change to the state below is
    // made after all that could panic. So a poisoned lock is taken over.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the disk when everything up to `revision` is safe.
    pub(super) fn made_durable(&self, revision: Revision) {
        let state = self.read();
        self.durable.send_replace(revision);
        for collection in state.collections.values() {
            collection.changed.send_if_modified(|at| {
                let newest = collection.events.back().map_or(0, |e| e.revision).min(revision);
                let later = newest > *at;
                *at = newest.max(*at);
                later
            });
        }
    }

    /// Called by the disk when writes after `revision` could not be made safe: takes them back. Nobody
    /// has seen them, and whoever waits for one is told.
    pub(super) fn take_back(&self, revision: Revision) {
        let mut state = self.write();
        while state.history.back().is_some_and(|(at, _)| *at > revision) {
            if let Some((_, id)) = state.history.pop_back()
                && let Some(collection) = state.collections.get_mut(&id)
                && let Some(event) = collection.events.pop_back()
            {
                match &event.previous {
                    Some(object) => drop(collection.objects.replace(Placed(object.clone()))),
                    None => drop(collection.objects.take(&event.object.key)),
                }
            }
        }
        state.revision = revision;
        self.durable.send_modify(|_| {});
    }
}

impl Collection {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.get(key).map(|Placed(object)| object.clone())
    }

    pub(super) fn position_after(&self, revision: Revision) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }
}

impl State {
    pub(super) fn record(&mut self, id: &CollectionId, event: Arc<Event>) {
        self.ages.note(Instant::now(), self.revision);
        self.revision = event.revision;
        self.history.push_back((event.revision, id.clone()));
        self.history_bytes += event.pinned_bytes();
        let collection = self.collections.entry(id.clone()).or_default();
        match event.fate {
            Fate::Kept => drop(collection.objects.replace(Placed(event.object.clone()))),
            Fate::Removed => drop(collection.objects.take(&event.object.key)),
        }
        collection.events.push_back(event);
        if let Some(old) = collection.events.len().checked_sub(LINES_KEPT + 1) {
            collection.events[old].forget_line();
        }
    }

    /// A key for an object to keep. Most writes are to the namespace of the one before, and share the
    /// text of its name.
    pub(super) fn shared_key(&self, id: &CollectionId, key: &Key) -> Key {
        let before = self.collections.get(id).and_then(|collection| collection.events.back());
        match before.map(|event| &event.object.key.namespace) {
            Some(namespace) if *namespace == key.namespace => {
                Key { namespace: namespace.clone(), name: key.name.clone() }
            }
            _ => key.clone(),
        }
    }

    pub(super) fn announce(&self, id: &CollectionId, revision: Revision) {
        if let Some(collection) = self.collections.get(id) {
            collection.changed.send_replace(revision);
        }
    }

    pub(super) fn compact(&mut self, retention: Retention) {
        while self.history.len() > retention.events_max || self.history_bytes > retention.bytes_max {
            let Some((revision, id)) = self.history.pop_front() else { break };
            self.compacted = revision;
            let Some(collection) = self.collections.get_mut(&id) else { continue };
            if let Some(event) = collection.events.pop_front() {
                collection.forgotten = event.revision;
                self.history_bytes -= event.pinned_bytes();
            }
        }
    }
}
