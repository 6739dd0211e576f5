//! What all users of one kind share: its objects, how its watch is doing, and what is wanted of it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use super::in_flight::InFlight;
use super::scope::Selection;
use super::shelf::Shelf;
use super::state::{Counts, KindReport, KindState};
use super::wire::{self, Shape};
use super::{Change, Object, Unreadable};
use crate::kind::{Key, Kind};

/// Called with every change that a watch brings.
pub(super) type Listener = Arc<dyn Fn(&Kind, &Change) + Send + Sync>;

/// Who is told of changes, in the order in which they came.
#[derive(Default)]
pub(super) struct Listeners(RwLock<Arc<Vec<(u64, Listener)>>>);

impl Listeners {
    pub(super) fn add(&self, number: u64, listener: Listener) {
        self.edit(|all| all.push((number, listener)));
    }

    pub(super) fn remove(&self, number: u64) {
        self.edit(|all| all.retain(|(other, _)| *other != number));
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<(u64, Listener)>)) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        edit(Arc::make_mut(&mut all));
    }

    /// Tells everyone. No lock is held meanwhile, so that listeners may read the cache.
    pub(super) fn tell(&self, kind: &Kind, change: &Change) {
        if change.is_nothing() {
            return;
        }
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (_, listener) in all.iter() {
            listener(kind, change);
        }
    }
}

/// What is wanted of a watch. Each time that becomes more, the version grows.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) version: u64,
    pub(super) selection: Selection,
}

/// How the watch is doing.
#[derive(Debug, Clone)]
pub(super) struct Status {
    pub(super) state: KindState,
    /// The version of what was wanted when everything was last listed; 0 before that.
    pub(super) listed: u64,
}

/// Which version of which object an answer has shown.
pub(super) struct Written {
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// Whether it is in the scope of the watch.
    pub(super) kept: bool,
}

/// What all users of one kind share.
#[derive(Debug)]
pub(super) struct KindCache {
    pub(super) kind: Kind,
    shelf: RwLock<Shelf>,
    pub(super) status: watch::Sender<Status>,
    pub(super) wanted: watch::Sender<Wanted>,
    pub(super) counts: Counts,
    pub(super) in_flight: InFlight<Key, Change>,
}

impl KindCache {
    pub(super) fn new(kind: Kind, selection: Selection) -> Self {
        Self {
            kind,
            shelf: RwLock::default(),
            status: watch::Sender::new(Status { state: KindState::Starting, listed: 0 }),
            wanted: watch::Sender::new(Wanted { version: 1, selection }),
            counts: Counts::new(),
            in_flight: InFlight::default(),
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Shelf> {
        // Nothing in a shelf panics between two states of it.
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Shelf> {
        self.shelf.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants what it wanted and this. Returns the version in which it does.
    pub(super) fn want(&self, selection: &Selection) -> u64 {
        self.wanted.send_if_modified(|wanted| {
            let both = wanted.selection.both(selection);
            let more = both != wanted.selection;
            if more {
                wanted.version += 1;
                wanted.selection = both;
            }
            more
        });
        self.wanted.borrow().version
    }

    /// Takes in the answer to an own write.
    pub(super) fn own_write(&self, response: &[u8]) -> Result<(Written, Change), Unreadable> {
        let selection = self.wanted.borrow().selection.clone();
        let object = wire::read_object(&Shape::new(&self.kind, &selection.options), response)?;
        let kept = selection.scope.contains(&object);
        let (uid, resource_version) = (object.uid().to_owned(), object.resource_version().to_owned());
        let mut shelf = self.write();
        let change = if kept { shelf.own_write(object) } else { shelf.own_departure(&object) };
        Ok((Written { uid, resource_version, kept }, change))
    }

    pub(super) fn own_delete(&self, object: &Object) -> Change {
        self.write().own_delete(object.key(), object.uid(), object.revision())
    }

    pub(super) fn set_state(&self, state: KindState) {
        self.status.send_if_modified(|status| {
            let changed = status.state != state;
            status.state = state;
            changed
        });
    }

    pub(super) fn report(&self, users: usize) -> KindReport {
        let Wanted { version, selection } = self.wanted.borrow().clone();
        let status = self.status.borrow().clone();
        let shelf = self.read();
        KindReport {
            kind: self.kind.clone(),
            scope: selection.scope,
            synced: status.listed >= version,
            state: status.state,
            heard_ago: self.counts.heard_ago(),
            users,
            objects: shelf.len(),
            json_bytes: shelf.json_bytes(),
            allocated_bytes: shelf.allocated_bytes(),
            events: self.counts.events.load(Ordering::Relaxed),
            lists: self.counts.lists.load(Ordering::Relaxed),
            errors: self.counts.errors.load(Ordering::Relaxed),
            unreadable: self.counts.unreadable.load(Ordering::Relaxed),
        }
    }
}
