//! All cached objects of one kind. Pure and synchronous.
//!
//! Three sources speak about the same objects at different speeds: the watch, lists, and the answers to our own
//! writes. The shelf holds the newest of what they say:
//!
//! - The answer to an own write goes in at once. Whatever is older than what is held for a name is dropped.
//! - What we deleted stays deleted: its uid is remembered until the watch has shown the deletion, or a list that
//!   is newer than it came without it.
//! - `progress` is the revision up to which the server has told everything. Something older that is not held was
//!   deleted, so that a late answer, a repeated event or a list from a server that lags brings nothing back.
//! - Nothing foreign is swallowed: when everything was delivered, the shelf is what the server has.
//!
//! A list goes in item by item, in place. Objects that it does not have are removed at its end; one that was cut short
//! removes nothing.

mod change;
mod index;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use change::{Change, Departure};
use index::Index;

use super::uid::Uid;
use super::{Object, Selector};
use crate::kind::Key;

/// What a watch says.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// `ADDED` or `MODIFIED`.
    Seen(Object),
    /// `DELETED`: the object is gone, or has left the scope of the watch.
    Gone(Object),
    /// Everything up to this revision has been told.
    Bookmark(u64),
}

/// Why a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relist {
    /// To find out what was missed.
    CatchUp,
    /// More objects, or more of each, are wanted than before: what is held is no measure for what comes.
    Widened,
    /// The server's state was replaced by an older or another one: revisions of before mean nothing. Includes `Widened`.
    Replaced,
}

/// All cached objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    index: Index,
    /// What we removed ahead of the watch, by uid.
    graves: BTreeMap<Uid, Grave>,
    /// Everything up to this revision has been told by the server. 0 when nothing has.
    progress: u64,
    /// The number of the newest list.
    epoch: u32,
    listing: Option<Listing>,
}

#[derive(Debug)]
struct Listing {
    reason: Relist,
    /// Items that are not held although they are older than `progress`. They come in unless the list proves to be
    /// older than that too; then they were deleted.
    doubtful: Vec<Object>,
    /// Items that are older than what is held. If the list proves to be later than that, the server has another history now,
    /// that of a restored copy, and they count.
    older: BTreeMap<Key, Object>,
}

/// An object that we removed.
#[derive(Debug)]
struct Grave {
    /// The newest of its revisions that we know.
    revision: u64,
    /// Whether newer versions of it may come: it only left the scope of the watch.
    may_return: bool,
    /// The newest list that still had it.
    epoch: u32,
}

/// Whether one version supersedes the other. Revisions that are no numbers cannot be compared: what comes later counts.
fn is_newer(new: &Object, old: &Object) -> bool {
    match (new.revision(), old.revision()) {
        (0, _) | (_, 0) => new.resource_version() != old.resource_version() || new.uid() != old.uid(),
        (new, old) => new > old,
    }
}

fn is_same_version(one: &Object, other: &Object) -> bool {
    one.uid() == other.uid() && one.resource_version() == other.resource_version()
}

impl Shelf {
    /// Takes in what the watch says.
    pub(crate) fn apply_event(&mut self, event: Event) -> Change {
        match event {
            Event::Seen(object) if self.listing.is_some() => self.item(object),
            Event::Seen(object) => {
                let revision = object.revision();
                let change = self.seen(object);
                self.progress = self.progress.max(revision);
                change
            }
            Event::Gone(object) => {
                // While a list is being read, what came before this event is not complete.
                if self.listing.is_none() {
                    self.progress = self.progress.max(object.revision());
                }
                self.gone(&object)
            }
            Event::Bookmark(revision) => {
                if self.listing.is_none() {
                    self.progress = self.progress.max(revision);
                }
                Change::Nothing
            }
        }
    }

    /// Takes in the answer to an own write. The watch's echo of it will change nothing.
    pub(crate) fn own_write(&mut self, object: Object) -> Change {
        let replaced = self.listing.as_ref().is_some_and(|listing| listing.reason == Relist::Replaced);
        let change = if replaced { self.item(object) } else { self.seen(object) };
        if let Change::Updated { old, new } = &change
            && old.uid() != new.uid()
        {
            // The watch has still to tell the end of the one before.
            self.dig_grave(old.uid(), old.revision(), false);
        }
        change
    }

    /// Notes that we deleted an object and that it is gone at once. `revision` is the newest one of it that we know.
    pub(crate) fn own_delete(&mut self, key: &Key, uid: &str, revision: u64) -> Change {
        self.bury(key, uid, revision, false)
    }

    /// Takes in the answer to an own write by which the object left the scope of the watch.
    pub(crate) fn own_departure(&mut self, object: &Object) -> Change {
        match self.index.get(object.key()) {
            Some(held) if held.uid() == object.uid() && !is_newer(held, object) => {
                self.bury(object.key(), object.uid(), object.revision(), true)
            }
            // Of what was never on the shelf the watch won't speak.
            _ => Change::Nothing,
        }
    }

    fn bury(&mut self, key: &Key, uid: &str, revision: u64, may_return: bool) -> Change {
        let held = self.index.get(key).filter(|held| held.uid() == uid).cloned();
        let revision = held.as_ref().map_or(revision, |held| revision.max(held.revision()));
        // Without it here, and with everything told up to what we know of it, the watch has shown the deletion already.
        let told = held.is_none() && revision != 0 && revision <= self.progress;
        // A return could not be told from the past without a revision.
        let blind = may_return && revision == 0;
        if !told && !blind {
            self.dig_grave(uid, revision, may_return);
        }
        match held {
            Some(old) => {
                self.index.remove(key);
                Change::Deleted { old, departure: Departure::Object }
            }
            None => Change::Nothing,
        }
    }

    fn dig_grave(&mut self, uid: &str, revision: u64, may_return: bool) {
        // A list that is being read may have shown it before, and be older than this.
        let epoch = if self.listing.is_some() { self.epoch } else { 0 };
        self.graves.insert(Uid::from(uid), Grave { revision, may_return, epoch });
    }

    /// Whether we know that this version is of the past. Forgets a grave that has become wrong.
    fn is_buried(&mut self, object: &Object) -> bool {
        if self.graves.is_empty() {
            return false;
        }
        let uid = Uid::from(object.uid());
        let epoch = self.epoch;
        let Some(grave) = self.graves.get_mut(&uid) else { return false };
        if grave.may_return && object.revision() > grave.revision {
            self.graves.remove(&uid);
            return false;
        }
        grave.epoch = epoch;
        true
    }

    fn seen(&mut self, object: Object) -> Change {
        if self.is_buried(&object) {
            return Change::Nothing;
        }
        match self.index.get(object.key()) {
            Some(held) if is_newer(&object, held) => self.put(object),
            Some(_) => Change::Nothing,
            None if object.revision() != 0 && object.revision() <= self.progress => Change::Nothing,
            None => self.put(object),
        }
    }

    fn put(&mut self, object: Object) -> Change {
        let new = Arc::new(object);
        match self.index.insert(new.clone()) {
            Some(old) => Change::Updated { old, new },
            None => Change::Added { new },
        }
    }

    fn gone(&mut self, object: &Object) -> Change {
        if let Some(listing) = &mut self.listing {
            listing.doubtful.retain(|doubtful| doubtful.uid() != object.uid());
            listing.older.remove(object.key());
        }
        if self.graves.remove(&Uid::from(object.uid())).is_some() {
            return Change::Nothing;
        }
        let Some(held) = self.index.get(object.key()) else { return Change::Nothing };
        let over = match (object.revision(), held.revision()) {
            // A deletion of which no revision is known is one of that very object.
            (0, _) | (_, 0) => object.uid() == held.uid(),
            // The same revision: it left the scope by the write that we hold.
            (gone, held) => gone >= held,
        };
        if !over {
            return Change::Nothing;
        }
        self.remove(&object.key().clone(), Departure::Object)
    }

    fn remove(&mut self, key: &Key, departure: Departure) -> Change {
        self.index.remove(key).map_or(Change::Nothing, |old| Change::Deleted { old, departure })
    }

    /// A list begins. One that was not brought to its end is forgotten.
    pub(crate) fn begin_relist(&mut self, relist: Relist) {
        self.epoch += 1;
        // A list that was cut short found that the state was replaced: what is held is still that of before.
        let replaced = |listing: &Listing| listing.reason == Relist::Replaced;
        let reason = if self.listing.as_ref().is_some_and(replaced) { Relist::Replaced } else { relist };
        if reason != Relist::CatchUp {
            self.progress = 0;
        }
        if reason == Relist::Replaced {
            self.graves.clear();
        }
        self.listing = Some(Listing { reason, doubtful: Vec::new(), older: BTreeMap::new() });
    }

    /// An item of the list.
    pub(crate) fn item(&mut self, object: Object) -> Change {
        if self.is_buried(&object) {
            return Change::Nothing;
        }
        if let Some(listing) = &mut self.listing {
            listing.older.remove(object.key());
        }
        let Some(held) = self.index.get(object.key()) else { return self.new_item(object) };
        let reason = self.listing.as_ref().map(|listing| listing.reason);
        let of_before = reason == Some(Relist::Replaced) && !self.index.is_marked(object.key(), self.epoch);
        let newer = is_newer(&object, held) || (of_before && !is_same_version(&object, held));
        let same = held.uid() == object.uid();
        let equal = is_same_version(&object, held);
        if newer || same {
            self.index.mark(object.key(), self.epoch);
        }
        if newer {
            self.put(object)
        } else {
            if equal && reason != Some(Relist::CatchUp) {
                // The same version with more in it is nobody's change.
                self.put(object);
            } else if let Some(listing) = self.listing.as_mut().filter(|_| !equal) {
                listing.older.insert(object.key().clone(), object);
            }
            Change::Nothing
        }
    }

    fn new_item(&mut self, object: Object) -> Change {
        let known = object.revision() != 0 && object.revision() <= self.progress;
        if let Some(listing) = self.listing.as_mut().filter(|_| known) {
            listing.doubtful.push(object);
            return Change::Nothing;
        }
        let key = object.key().clone();
        let change = self.put(object);
        self.index.mark(&key, self.epoch);
        change
    }

    /// The list is complete. It shows everything as it was at `revision`, or now if that is 0. What it did not have is
    /// removed, unless it is newer than the list.
    pub(crate) fn end_relist(&mut self, revision: u64) -> Vec<Change> {
        let Some(listing) = self.listing.take() else { return Vec::new() };
        let outdated = revision != 0 && revision < self.progress;
        let mut changes = Vec::new();
        for (key, object) in listing.older {
            let held = self.index.get(&key).map(|held| held.revision());
            if held.is_some_and(|held| object.revision() < held && held <= revision) {
                changes.push(self.put(object));
                self.index.mark(&key, self.epoch);
            }
        }
        if !outdated {
            for object in listing.doubtful {
                let key = object.key().clone();
                let superseded = self.index.get(&key).is_some_and(|held| !is_newer(&object, held));
                if !superseded && !self.is_buried(&object) {
                    changes.push(self.put(object));
                }
                self.index.mark(&key, self.epoch);
            }
            let epoch = self.epoch;
            self.graves
                .retain(|_, grave| grave.epoch == epoch || (revision != 0 && grave.revision > revision));
        }
        // What is newer than the list came after it, unless its revision is one of another history.
        let newest = if listing.reason == Relist::Replaced { 0 } else { revision };
        for key in self.index.unmarked(self.epoch, newest) {
            changes.push(self.remove(&key, Departure::Object));
        }
        self.progress = self.progress.max(revision);
        changes
    }

    /// The kind is no longer served: nothing of it is left.
    pub(crate) fn end_of_kind(&mut self) -> Vec<Change> {
        self.graves.clear();
        self.listing = None;
        self.progress = 0;
        let all = self.index.take_all();
        all.into_iter().map(|old| Change::Deleted { old, departure: Departure::Kind }).collect()
    }

    /// Up to where the server has told everything; 0 when nothing has been, or its revisions are no numbers.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// One object.
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.index.get(key)
    }

    /// The objects that an owner controls, in the order of their keys.
    pub(crate) fn children_of(&self, owner_uid: &str) -> &[Arc<Object>] {
        self.index.children_of(owner_uid)
    }

    /// The objects of a namespace, or of all, that a selector selects, in the order of their keys.
    pub(crate) fn list(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Object>> {
        self.index.list(namespace, selector)
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Bytes of text that is kept.
    pub(crate) fn json_bytes(&self) -> usize {
        self.index.json_bytes()
    }

    /// Bytes that are allocated for everything, at most.
    pub(crate) fn allocated_bytes(&self) -> usize {
        let graves = self.graves.len() * 2 * size_of::<(Uid, Grave)>();
        self.index.allocated_bytes() + graves
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
