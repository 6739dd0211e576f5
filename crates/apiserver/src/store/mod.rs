//! Every object, at every retained revision.
//!
//! One counter numbers all writes. A [`Collection`] holds the newest state of one resource as an ordered
//! map of serialised objects, and the events that led there. From the two, any retained revision can be
//! listed, and any watch continued, without copies of the state: the value of a key at revision `r` is
//! what its first event after `r` replaced.
//!
//! Guarantees:
//! - a write is visible to reads, lists and watches in revision order, all or nothing;
//! - with a [`disk`] behind it, nothing is shown to anybody before it is durable;
//! - history is bounded by count and bytes; asking for more is [`Expired`], never a wrong answer.

pub(crate) mod disk;
mod memory;
mod object;
mod observe;
mod tentative;
#[cfg(test)]
mod tests;

pub(crate) use memory::Retention;
pub(crate) use object::{Event, Key, Object, Unreadable, event_line};
pub use observe::{Change, Observer};

use crate::bounds::{MARK_BYTES_MAX, OBJECT_BYTES_MAX, STORED_DEPTH_MAX, depth_within};
use crate::status::ApiError;
use disk::Disk;
use memory::{Collection, Memory, State};
use object::{Draft, Placed};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, RangeBounds as _};
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

/// A point in the store's history. Zero is before everything.
pub(crate) type Revision = u64;

/// Where counting begins. Higher than any number that a person would make up, so that a made-up one is
/// told to have expired.
const FIRST_REVISION: Revision = 100;

/// The resource that objects are stored under: `group/plural`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CollectionId(Arc<str>);

impl CollectionId {
    /// The collection of a resource.
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        CollectionId(format!("{group}/{plural}").into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Group and plural.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or(("", &self.0))
    }
}

/// The revision asked for is no longer retained.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The oldest revision that still is.
    pub oldest: Revision,
}

/// Why a write did not happen; the store is unchanged.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The object is not at the expected revision; it is this now, or gone.
    Changed(Option<Arc<Object>>),
    /// The write could not be made durable.
    Disk(String),
    /// The object has more than [`OBJECT_BYTES_MAX`] bytes, or its defaults would make it so.
    TooLarge,
    /// The object is nested deeper than [`STORED_DEPTH_MAX`] levels, and could not be read again.
    TooDeep,
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Changed(_) => ApiError::internal("the store changed"),
            Refused::Disk(why) => ApiError::internal(why),
            Refused::TooLarge => ApiError::too_large_to_store(),
            Refused::TooDeep => ApiError::too_deep(),
        }
    }
}

/// What becomes of an object by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Removed,
}

/// A part of a list, as of one revision.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The objects in order.
    pub items: Vec<Arc<Object>>,
    /// The revision they are all as of.
    pub revision: Revision,
    /// How many come after them.
    pub rest: usize,
}

/// See the [module](self).
pub(crate) struct Store {
    memory: Arc<Memory>,
    retention: Retention,
    disk: Option<Disk>,
    observer: Option<Arc<dyn Observer>>,
}

impl Store {
    /// An empty store that lives as long as the process.
    pub(crate) fn in_memory(retention: Retention) -> Self {
        let memory = Arc::new(Memory::new(FIRST_REVISION, HashMap::new()));
        Store { memory, retention, disk: None, observer: None }
    }

    /// The store kept in a directory.
    pub(crate) fn open(path: &std::path::Path, retention: Retention) -> Result<Self, disk::DiskError> {
        let (file, loaded) = disk::open(path)?;
        let mut collections: HashMap<CollectionId, Collection> = HashMap::new();
        for (id, object) in loaded.objects {
            collections.entry(id).or_default().objects.insert(Placed(Arc::new(object)));
        }
        let memory = Arc::new(Memory::new(loaded.revision.max(FIRST_REVISION), collections));
        let disk = Some(Disk::start(file, memory.clone()));
        Ok(Store { memory, retention, disk, observer: None })
    }

    /// Tells this of every change.
    pub(crate) fn observed_by(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.observer = observer;
        self
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.memory.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.memory.write()
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> Revision {
        self.read().revision
    }

    /// Waits until `revision` may be shown. At once for a store in memory.
    pub(crate) async fn shown(&self, revision: Revision) -> Result<(), Refused> {
        if self.disk.is_none() || *self.memory.durable.borrow() >= revision {
            return Ok(());
        }
        let mut durable = self.memory.durable.subscribe();
        loop {
            if *durable.borrow_and_update() >= revision {
                return Ok(());
            }
            // Only when a write has been taken back is its fate known, and does nobody else see it any more.
            if self.failed() && self.revision() < revision {
                return Err(Refused::Disk(self.failure()));
            }
            durable.changed().await.map_err(|_| Refused::Disk("the store is closed".into()))?;
        }
    }

    fn failed(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.failure().is_some())
    }

    fn failure(&self) -> String {
        self.disk.as_ref().and_then(Disk::failure).unwrap_or_default()
    }

    /// The newest state of one object.
    pub(crate) fn get(&self, id: &CollectionId, key: &Key) -> Option<Arc<Object>> {
        self.read().collections.get(id)?.get(key)
    }

    /// How many objects a collection holds.
    pub(crate) fn count(&self, id: &CollectionId) -> usize {
        self.read().collections.get(id).map_or(0, |c| c.objects.len())
    }

    /// The objects of a namespace (or all), as of a revision (or now), that come after `after`.
    pub(crate) fn list(
        &self,
        id: &CollectionId,
        namespace: Option<&str>,
        at: Option<Revision>,
        after: Option<&Key>,
    ) -> Result<Listing, Expired> {
        self.page(id, namespace, at, after, usize::MAX)
    }

    /// The first `limit` of those.
    pub(crate) fn page(
        &self,
        id: &CollectionId,
        namespace: Option<&str>,
        at: Option<Revision>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Listing, Expired> {
        let state = self.read();
        let revision = at.unwrap_or(state.revision);
        if revision < state.compacted {
            return Err(Expired { oldest: state.compacted });
        }
        let Some(collection) = state.collections.get(id) else {
            return Ok(Listing { items: Vec::new(), revision, rest: 0 });
        };
        // A place in another namespace is before or after everything.
        if let (Some(after), Some(namespace)) = (after, namespace)
            && *after.namespace != *namespace
        {
            return Ok(Listing { items: Vec::new(), revision, rest: 0 });
        }
        let start = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(ns)) => Bound::Included(Key::new(ns, "")),
            (None, None) => Bound::Unbounded,
        };
        // No namespace is in order between another and that one with a zero behind it.
        let end = namespace.map_or(Bound::Unbounded, |ns| Bound::Excluded(Key::new(&format!("{ns}\0"), "")));
        let newest = collection.objects.range::<Key, _>((start.as_ref(), end.as_ref()));
        let mut newest = newest.map(|Placed(object)| object);
        let changed = collection.position_after(revision);
        if changed == collection.events.len() {
            let items = newest.by_ref().take(limit).cloned().collect();
            return Ok(Listing { items, revision, rest: newest.count() });
        }
        // What each key changed since then held at that time.
        let mut past: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        for event in collection.events.range(changed..) {
            past.entry(&event.object.key).or_insert(event.previous.as_ref());
        }
        let mut items: BTreeMap<&Key, Arc<Object>> = newest
            .filter(|object| !past.contains_key(&object.key))
            .map(|object| (&object.key, object.clone()))
            .collect();
        for (key, object) in past {
            if let (Some(object), true) = (object, (start.as_ref(), end.as_ref()).contains(key)) {
                items.insert(key, object.clone());
            }
        }
        let rest = items.len().saturating_sub(limit);
        Ok(Listing { items: items.into_values().take(limit).collect(), revision, rest })
    }

    /// Writes `tree`, or removes the object whose last state it is, if the object still is at revision
    /// `expected` (none: absent). Gives the object as stored, or as its `DELETED` event shows it.
    pub(crate) fn commit(
        &self,
        id: &CollectionId,
        key: &Key,
        expected: Option<Revision>,
        tree: &Value,
        fate: Fate,
    ) -> Result<Arc<Object>, Refused> {
        if self.failed() {
            return Err(Refused::Disk(self.failure()));
        }
        // The last state of an object that goes was held against the bounds when it was stored.
        if fate == Fate::Kept && depth_within(tree, STORED_DEPTH_MAX).is_none() {
            return Err(Refused::TooDeep);
        }
        let draft = Draft::of(tree).map_err(|e| Refused::Disk(e.to_string()))?;
        let mut guard = self.write();
        let state = &mut *guard;
        let key = state.shared_key(id, key);
        let previous = state.collections.get(id).and_then(|c| c.get(&key));
        if previous.as_ref().map(|o| o.revision) != expected {
            return Err(Refused::Changed(previous));
        }
        if fate == Fate::Kept && !has_room(tree, draft.len(), previous.as_deref()) {
            return Err(Refused::TooLarge);
        }
        let revision = state.revision + 1;
        let key = previous.as_ref().map_or(key, |previous| previous.key.clone());
        let object = Arc::new(Object::new(key, revision, draft.text(revision)));
        let event = Arc::new(Event::new(object.clone(), previous, fate));
        state.record(id, event.clone());
        state.compact(self.retention);
        if let Some(disk) = &self.disk {
            disk.enqueue(id, &object, fate);
        } else {
            self.memory.durable.send_replace(revision);
            state.announce(id, revision);
        }
        drop(guard);
        if let Some(observer) = &self.observer {
            observer.committed(&Change::of(id, &event));
        }
        Ok(object)
    }

    /// Follows a collection from after `from`.
    pub(crate) fn follow(&self, id: &CollectionId, from: Revision) -> Result<Follower, Expired> {
        let mut state = self.write();
        if from < state.compacted {
            return Err(Expired { oldest: state.compacted });
        }
        let changed = state.collections.entry(id.clone()).or_default().changed.subscribe();
        Ok(Follower { id: id.clone(), position: from, changed })
    }

    /// The state now, together with a follower that continues from it.
    pub(crate) fn list_and_follow(&self, id: &CollectionId, namespace: Option<&str>) -> (Listing, Follower) {
        loop {
            if let Ok(listing) = self.list(id, namespace, None, None)
                && let Ok(follower) = self.follow(id, listing.revision)
            {
                return (listing, follower);
            }
        }
    }

    /// Woken whenever anything at all has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        self.memory.durable.subscribe()
    }

    /// Every retained event after `from`, in order, with its collection.
    pub(crate) fn events_after(&self, from: Revision) -> Result<Vec<(CollectionId, Arc<Event>)>, Expired> {
        let state = self.read();
        if from < state.compacted {
            return Err(Expired { oldest: state.compacted });
        }
        let shown = *self.memory.durable.borrow();
        let start = state.history.partition_point(|(at, _)| *at <= from);
        let entries = state.history.range(start..).take_while(|(at, _)| *at <= shown);
        Ok(entries
            .filter_map(|(at, id)| {
                let collection = state.collections.get(id)?;
                let event = collection.events.get(collection.position_after(at - 1))?;
                Some((id.clone(), event.clone()))
            })
            .collect())
    }

    /// The collections that hold or held anything.
    pub(crate) fn collections(&self) -> Vec<CollectionId> {
        self.read().collections.keys().cloned().collect()
    }

    /// Forgets all history: whoever asks for an older revision is told that it expired.
    pub(crate) fn compact_all(&self) {
        let mut state = self.write();
        state.compact(Retention { events_max: 0, bytes_max: 0 });
        state.compacted = state.revision;
    }
}

/// Whether an object of this many bytes may be stored. One that was stored before there was a bound may shrink.
fn has_room(tree: &Value, bytes: usize, previous: Option<&Object>) -> bool {
    let marked = tree.pointer("/metadata/deletionTimestamp").is_some();
    let max = OBJECT_BYTES_MAX + if marked { MARK_BYTES_MAX } else { 0 };
    bytes <= max || previous.is_some_and(|previous| bytes < previous.json.len())
}

/// A place in a collection's history.
pub(crate) struct Follower {
    id: CollectionId,
    /// The revision up to which everything has been handed out.
    pub position: Revision,
    changed: watch::Receiver<Revision>,
}

impl Follower {
    /// Waits until there may be more.
    pub(crate) async fn changed(&mut self) {
        // The store outlives its followers; should it go, there is nothing more to come.
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What has happened since the last call, and the revision up to which that is everything.
    pub(crate) fn take(&mut self, store: &Store) -> Result<Vec<Arc<Event>>, Expired> {
        self.changed.borrow_and_update();
        let state = store.read();
        let shown = (*store.memory.durable.borrow()).min(state.revision);
        let Some(collection) = state.collections.get(&self.id) else { return Ok(Vec::new()) };
        // Only what was forgotten of its own collection is missing to it, however much happens elsewhere.
        if self.position < collection.forgotten {
            return Err(Expired { oldest: state.compacted });
        }
        let events = collection.events.range(collection.position_after(self.position)..);
        let events: Vec<_> = events.take_while(|e| e.revision <= shown).cloned().collect();
        self.position = self.position.max(shown);
        Ok(events)
    }
}
