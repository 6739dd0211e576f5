//! Every object, at every retained revision.
//!
//! One counter numbers all writes. A [`Collection`] holds the newest state of one resource as an ordered
//! map of serialised objects, and the events that led there. From the two, any retained revision can be
//! listed, and any watch continued, without copies of the state: the value of a key at revision `r` is
//! what its first event after `r` replaced.
//!
//! Guarantees:
//! - a write is visible to reads, lists and watches in revision order, all or nothing;
//! - with a [`disk`] behind it, nothing is shown to anybody before it is durable: not an object, not its absence, and not a
//!   conflict with a write that is under way;
//! - what a write requires of other objects holds at the moment at which it is made;
//! - history is bounded by count and bytes, and lists of the past by [age] too; asking for more is [`Expired`], never a wrong
//!   answer.

mod age;
mod commit;
mod contain;
pub(crate) mod disk;
mod faults;
mod list;
mod memory;
mod object;
mod observe;
mod sync;
mod tentative;
#[cfg(test)]
mod tests;

pub(crate) use faults::Faults;
pub(crate) use list::Listing;
pub(crate) use memory::{Claim, Retention};
pub(crate) use object::{Event, Key, Object, Unreadable, event_line};
pub use observe::{Change, Observer};

use crate::bounds::{STORED_DEPTH_MAX, depth_within};
use crate::status::ApiError;
use commit::{Commits, Guarded};
use disk::{DiskError, Writer};
use jiff::Timestamp;
use memory::{Attempt, Prepared, State};
use object::Draft;
use serde_json::Value;
use std::any::Any;
use std::path::Path;
use std::sync::{Arc, RwLockReadGuard};
use tokio::sync::watch;

/// A point in the store's history. Zero is before everything.
pub(crate) type Revision = u64;

/// Where counting begins in memory. Higher than any number that a person would make up, so that a made-up one has expired.
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
    /// Something else is not as the write requires.
    Unmet,
    /// Another object has what this one claims.
    Taken,
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
            Refused::Changed(_) | Refused::Unmet | Refused::Taken => ApiError::internal("the store changed"),
            Refused::Disk(why) => ApiError::internal(why),
            Refused::TooLarge => ApiError::too_large_to_store(),
            Refused::TooDeep => ApiError::too_deep(),
        }
    }
}

/// What a write requires of another object.
pub(crate) struct Require<'a> {
    pub id: &'a CollectionId,
    pub key: Key,
    /// Whether the write may happen beside the object as it is, or beside its absence.
    pub check: &'a (dyn Fn(Option<&Object>) -> bool + Sync),
}

/// Finds what an object of a collection claims for itself alone.
pub(crate) type FindClaims = fn(&CollectionId, &Value) -> Vec<Claim>;

/// What becomes of an object by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Removed,
}

/// Whether the store takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// It does not, for this reason. It will when the disk is well again.
    Failing(String),
    /// It does not, and will not before a restart.
    Dead(String),
}

/// See the [module](self).
pub(crate) struct Store {
    commits: Arc<Commits<State>>,
    claims: FindClaims,
    observer: Option<Arc<dyn Observer>>,
    /// Ends when the store is dropped.
    _writer: Option<Writer>,
}

impl Store {
    /// An empty store that lives as long as the process.
    pub(crate) fn in_memory(
        retention: Retention,
        claims: FindClaims,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let commits = Arc::new(Commits::new(State::new(FIRST_REVISION, retention, false)));
        Store { commits, claims, observer, _writer: None }
    }

    /// The store kept in a directory.
    ///
    /// Its revisions go on above those of the file, and not below the microseconds of `now` since 1970. So they are higher than all
    /// that were given out before, unless over a million were in each second, even if the file is an old copy or was removed. And
    /// a watch or a page from before has expired, instead of going on in another history.
    pub(crate) fn open(
        directory: &Path,
        retention: Retention,
        claims: FindClaims,
        observer: Option<Arc<dyn Observer>>,
        now: Timestamp,
        faults: Faults,
    ) -> Result<Self, DiskError> {
        let (open, loaded) = disk::open(directory, &faults)?;
        let now = u64::try_from(now.as_microsecond()).unwrap_or(0);
        let first = loaded.revision.saturating_add(1).max(now).max(FIRST_REVISION);
        let mut state = State::new(first, retention, true);
        for (id, object) in loaded.objects {
            let tree = object.value().map_err(|error| DiskError::Unreadable {
                path: directory.to_owned(),
                source: error.into(),
            })?;
            let claims = claims(&id, &tree);
            state.place(id, object, claims);
        }
        let commits = Arc::new(Commits::new(state));
        let writer = Writer::start(directory, open, commits.clone(), observer, faults)
            .map_err(|source| DiskError::Directory { path: directory.to_owned(), source })?;
        Ok(Store { commits, claims, observer: None, _writer: Some(writer) })
    }

    fn read(&self) -> RwLockReadGuard<'_, Guarded<State>> {
        self.commits.read()
    }

    /// Whether writes are taken.
    pub(crate) fn health(&self) -> Health {
        match self.commits.failure() {
            None => Health::Good,
            Some((why, false)) => Health::Failing(why.to_string()),
            Some((why, true)) => Health::Dead(why.to_string()),
        }
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> Revision {
        self.read().revision
    }

    /// The newest state of one object.
    pub(crate) fn get(&self, id: &CollectionId, key: &Key) -> Option<Arc<Object>> {
        self.read().get(id, key)
    }

    /// How many objects a collection holds.
    pub(crate) fn count(&self, id: &CollectionId) -> usize {
        self.read().collections.get(id).map_or(0, |c| c.objects.len())
    }

    /// Writes `tree`, or removes the object whose last state it is, if the object still is at revision
    /// `expected` (none: absent). Gives the object as stored, or as its `DELETED` event shows it.
    ///
    /// Returns when the write is durable and seen by everybody, or is known not to be. If this is dropped before, the write
    /// still becomes one or the other.
    pub(crate) async fn commit(
        &self,
        id: &CollectionId,
        key: &Key,
        expected: Option<Revision>,
        tree: &Value,
        fate: Fate,
    ) -> Result<Arc<Object>, Refused> {
        self.commit_if(id, key, expected, tree, fate, &[]).await
    }

    /// As [`Store::commit`], if other objects are as required at the moment of the write.
    pub(crate) async fn commit_if(
        &self,
        id: &CollectionId,
        key: &Key,
        expected: Option<Revision>,
        tree: &Value,
        fate: Fate,
        requires: &[Require<'_>],
    ) -> Result<Arc<Object>, Refused> {
        // The last state of an object that goes was held against the bounds when it was stored.
        if fate == Fate::Kept && depth_within(tree, STORED_DEPTH_MAX).is_none() {
            return Err(Refused::TooDeep);
        }
        loop {
            let draft = Draft::of(tree).map_err(|e| Refused::Disk(e.to_string()))?;
            let claims = if fate == Fate::Kept { (self.claims)(id, tree) } else { Vec::new() };
            let write = Prepared { id, key, expected, tree, draft, fate, requires, claims };
            let attempt = |state: &mut State| match state.attempt(write) {
                // Under the lock, so that the progress waited for is still to come.
                Ok(Attempt::Busy) => Err(Ok(self.commits.progress())),
                Ok(made) => Ok(made),
                Err(refused) => Err(Err(refused)),
            };
            let made = self.commits.append(attempt).map_err(|why| Refused::Disk(why.to_string()))?;
            match made {
                Ok(Attempt::Done(event)) => {
                    if let Some(observer) = &self.observer {
                        observer.committed(&Change::of(id, &event));
                    }
                    return Ok(event.object.clone());
                }
                Ok(Attempt::Queued(object, outcome)) => {
                    return match outcome.await {
                        Ok(Ok(())) => Ok(object),
                        Ok(Err(why)) => Err(Refused::Disk(why.to_string())),
                        Err(_) => Err(Refused::Disk("the store is closed".into())),
                    };
                }
                Err(Err(refused)) => return Err(refused),
                // Its sender lives as long as the store.
                Err(Ok(mut progress)) => drop(progress.changed().await),
                Ok(Attempt::Busy) => {}
            }
        }
    }

    /// Puts an object in place as if it had been read from disk, whatever it is.
    #[cfg(test)]
    pub(crate) fn plant(&self, id: &CollectionId, object: Object) {
        self.commits.write().place(id.clone(), object, Vec::new());
    }

    /// Follows a collection from after `from`.
    pub(crate) fn follow(&self, id: &CollectionId, from: Revision) -> Result<Follower, Expired> {
        let mut state = self.commits.write();
        if from < state.compacted {
            return Err(Expired { oldest: state.compacted });
        }
        let changed = state.collection(id).changed.subscribe();
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
        self.read().newest.subscribe()
    }

    /// Every retained event after `from`, in order, with its collection.
    pub(crate) fn events_after(&self, from: Revision) -> Result<Vec<(CollectionId, Arc<Event>)>, Expired> {
        let state = self.read();
        if from < state.compacted {
            return Err(Expired { oldest: state.compacted });
        }
        let start = state.history.partition_point(|(at, _)| *at <= from);
        Ok(state
            .history
            .range(start..)
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
        let mut state = self.commits.write();
        state.compact(Retention { events_max: 0, bytes_max: 0 });
        state.compacted = state.revision;
    }
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

    /// What has happened since the last call, the oldest first and at most so much. Whoever gets as much as that asks again
    /// before waiting.
    pub(crate) fn take(&mut self, store: &Store, max: usize) -> Result<Vec<Arc<Event>>, Expired> {
        self.changed.borrow_and_update();
        let state = store.read();
        let Some(collection) = state.collections.get(&self.id) else { return Ok(Vec::new()) };
        // Only what was forgotten of its own collection is missing to it, however much happens elsewhere.
        if self.position < collection.forgotten {
            return Err(Expired { oldest: state.compacted });
        }
        let events = collection.events.range(collection.position_after(self.position)..);
        let shown = state.revision;
        let events: Vec<_> = events.take(max).cloned().collect();
        let seen = events.last().filter(|_| events.len() == max).map_or(shown, |last| last.revision);
        self.position = self.position.max(seen);
        Ok(events)
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("it says nothing"))
}
