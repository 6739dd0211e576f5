//! The state and its history in memory. Readers see only what is durable; what is not is in a queue beside it.

use super::age::Ages;
use super::commit::Log;
use super::object::Placed;
use super::{CollectionId, Draft, Event, Fate, Key, Object, Refused, Require, Revision};
use crate::bounds::{MARK_BYTES_MAX, OBJECT_BYTES_MAX};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};
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

/// The number of a collection's newest events whose line is kept once it is made: a second copy of the object, for the time in
/// which most watches ask for it.
const LINES_KEPT: usize = 256;

/// Something that at most one object has, say a node port.
pub(crate) type Claim = String;

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

impl Collection {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.get(key).map(|Placed(object)| object.clone())
    }

    pub(super) fn position_after(&self, revision: Revision) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }

    /// Whether nobody would miss it.
    fn is_idle(&self) -> bool {
        self.objects.is_empty() && self.events.is_empty() && self.changed.receiver_count() == 0
    }
}

type Place = (CollectionId, Key);

/// Who has which claim.
#[derive(Default)]
struct Claims {
    holders: HashMap<Claim, Place>,
    held: HashMap<Place, Vec<Claim>>,
}

/// A change that is not durable yet.
pub(super) struct Queued {
    pub id: CollectionId,
    pub event: Arc<Event>,
    claims: Vec<Claim>,
    pub done: oneshot::Sender<Result<(), Arc<str>>>,
}

/// What becomes of an attempt to write.
pub(super) enum Attempt {
    /// It is done and seen: the store has no disk.
    Done(Arc<Event>),
    /// It is queued; the answer comes when its fate is known.
    Queued(Arc<Object>, oneshot::Receiver<Result<(), Arc<str>>>),
    /// It depends on something that is queued. Nothing may be said of that before its fate is known.
    Busy,
}

/// A write, made as far as it can be without the lock.
pub(super) struct Prepared<'a> {
    pub id: &'a CollectionId,
    pub key: &'a Key,
    pub expected: Option<Revision>,
    /// What the draft was made of.
    pub tree: &'a Value,
    pub draft: Draft,
    pub fate: Fate,
    pub requires: &'a [Require<'a>],
    pub claims: Vec<Claim>,
}

/// Everything, guarded by one lock.
pub(super) struct State {
    /// The newest revision that is seen. Numbers of changes that were rolled back are left out.
    pub revision: Revision,
    /// The last number given out.
    counter: Revision,
    /// Every event up to this one has been dropped from history.
    pub compacted: Revision,
    pub collections: HashMap<CollectionId, Collection>,
    /// Which collection each retained event belongs to, oldest first.
    pub history: VecDeque<(Revision, CollectionId)>,
    history_bytes: usize,
    /// When which revision was the newest.
    pub ages: Ages,
    retention: Retention,
    /// Whether changes wait for a disk.
    has_disk: bool,
    queue: Vec<Queued>,
    /// The places of all changes that are queued or being written.
    unsettled: HashSet<Place>,
    claims: Claims,
    /// The newest revision, for whoever follows everything.
    pub newest: watch::Sender<Revision>,
}

impl State {
    pub(super) fn new(revision: Revision, retention: Retention, has_disk: bool) -> Self {
        State {
            revision,
            counter: revision,
            compacted: revision,
            collections: HashMap::new(),
            history: VecDeque::new(),
            history_bytes: 0,
            ages: Ages::default(),
            retention,
            has_disk,
            queue: Vec::new(),
            unsettled: HashSet::new(),
            claims: Claims::default(),
            newest: watch::Sender::new(revision),
        }
    }

    /// Puts an object in place that was read from disk.
    pub(super) fn place(&mut self, id: CollectionId, object: Object, claims: Vec<Claim>) {
        let object = Arc::new(object);
        if !claims.is_empty() {
            self.settle_claims(&id, &object.key, claims);
        }
        self.collections.entry(id).or_default().objects.insert(Placed(object));
    }

    pub(super) fn get(&self, id: &CollectionId, key: &Key) -> Option<Arc<Object>> {
        self.collections.get(id)?.get(key)
    }

    /// A collection to follow. A new one takes the place of those that nothing was ever written to and nobody follows any more.
    pub(super) fn collection(&mut self, id: &CollectionId) -> &Collection {
        if !self.collections.contains_key(id) {
            self.collections.retain(|_, collection| !collection.is_idle());
        }
        self.collections.entry(id.clone()).or_default()
    }

    /// Makes a change if everything it depends on is as it expects.
    pub(super) fn attempt(&mut self, write: Prepared<'_>) -> Result<Attempt, Refused> {
        let place = (write.id.clone(), self.shared_key(write.id, write.key));
        let required = write.requires.iter().map(|require| (require.id.clone(), require.key.clone()));
        if !self.unsettled.is_empty()
            && (self.unsettled.contains(&place)
                || required.into_iter().any(|place| self.unsettled.contains(&place)))
        {
            return Ok(Attempt::Busy);
        }
        for require in write.requires {
            if !(require.check)(self.get(require.id, &require.key).as_deref()) {
                return Err(Refused::Unmet);
            }
        }
        let previous = self.get(write.id, &place.1);
        if previous.as_ref().map(|o| o.revision) != write.expected {
            return Err(Refused::Changed(previous));
        }
        if write.fate == Fate::Kept && !has_room(write.tree, write.draft.len(), previous.as_deref()) {
            return Err(Refused::TooLarge);
        }
        for claim in &write.claims {
            match self.claims.holders.get(claim) {
                Some(holder) if *holder == place || self.holds(&place, claim) => {}
                Some(holder) if self.unsettled.contains(holder) => return Ok(Attempt::Busy),
                Some(_) => return Err(Refused::Taken),
                None => {}
            }
        }
        self.counter += 1;
        let (id, key) = place;
        let key = previous.as_ref().map_or(key, |previous| previous.key.clone());
        let object = Arc::new(Object::new(key, self.counter, write.draft.text(self.counter)));
        let event = Arc::new(Event::new(object.clone(), previous, write.fate));
        if !self.has_disk {
            self.apply(&id, &event, write.claims);
            return Ok(Attempt::Done(event));
        }
        // What is claimed is so at once, what is given up is free only when that is durable.
        for claim in &write.claims {
            self.claims.holders.insert(claim.clone(), (id.clone(), object.key.clone()));
        }
        self.unsettled.insert((id.clone(), object.key.clone()));
        let (done, outcome) = oneshot::channel();
        self.queue.push(Queued { id, event, claims: write.claims, done });
        Ok(Attempt::Queued(object, outcome))
    }

    /// Whether an object has a claim already, be it beside another: older versions let that happen.
    fn holds(&self, place: &Place, claim: &Claim) -> bool {
        self.claims.held.get(place).is_some_and(|claims| claims.contains(claim))
    }

    /// Shows a change.
    fn apply(&mut self, id: &CollectionId, event: &Arc<Event>, claims: Vec<Claim>) {
        if !claims.is_empty() || !self.claims.held.is_empty() {
            let claims = if event.fate == Fate::Kept { claims } else { Vec::new() };
            self.settle_claims(id, &event.object.key, claims);
        }
        self.record(id, event.clone());
        self.compact(self.retention);
        if let Some(collection) = self.collections.get(id) {
            collection.changed.send_replace(event.revision);
        }
        self.newest.send_replace(event.revision);
    }

    fn settle_claims(&mut self, id: &CollectionId, key: &Key, claims: Vec<Claim>) {
        let place = (id.clone(), key.clone());
        for claim in self.claims.held.remove(&place).unwrap_or_default() {
            self.claims.holders.remove(&claim);
        }
        for claim in &claims {
            self.claims.holders.insert(claim.clone(), place.clone());
        }
        if !claims.is_empty() {
            self.claims.held.insert(place, claims);
        }
    }

    fn record(&mut self, id: &CollectionId, event: Arc<Event>) {
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

    /// A key for an object to keep. Most writes are to the namespace of the one before, and share the text of its name.
    fn shared_key(&self, id: &CollectionId, key: &Key) -> Key {
        let before = self.collections.get(id).and_then(|collection| collection.events.back());
        match before.map(|event| &event.object.key.namespace) {
            Some(namespace) if *namespace == key.namespace => {
                Key { namespace: namespace.clone(), name: key.name.clone() }
            }
            _ => key.clone(),
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
            // What was a custom resource once need not be known for ever.
            if collection.is_idle() {
                self.collections.remove(&id);
            }
        }
    }
}

impl Log for State {
    type Group = Vec<Queued>;
    type Snapshot = super::disk::Snapshot;

    fn is_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    fn take(&mut self) -> Option<Vec<Queued>> {
        Some(std::mem::take(&mut self.queue)).filter(|group| !group.is_empty())
    }

    fn confirm(&mut self, group: &Vec<Queued>) {
        for change in group {
            self.unsettled.remove(&(change.id.clone(), change.event.object.key.clone()));
            self.apply(&change.id, &change.event, change.claims.clone());
        }
    }

    fn roll_back(&mut self) -> Option<Vec<Queued>> {
        self.unsettled.clear();
        let Claims { holders, held } = &mut self.claims;
        holders.clear();
        for (place, claims) in held {
            holders.extend(claims.iter().map(|claim| (claim.clone(), place.clone())));
        }
        self.take()
    }

    fn snapshot(&self) -> super::disk::Snapshot {
        let objects = self.collections.iter().flat_map(|(id, collection)| {
            collection.objects.iter().map(move |Placed(object)| (id.clone(), object.clone()))
        });
        super::disk::Snapshot { objects: objects.collect(), revision: self.revision }
    }
}

/// Whether an object of this many bytes may be stored. One that was stored before there was a bound may shrink.
fn has_room(tree: &Value, bytes: usize, previous: Option<&Object>) -> bool {
    let marked = tree.pointer("/metadata/deletionTimestamp").is_some();
    let max = OBJECT_BYTES_MAX + if marked { MARK_BYTES_MAX } else { 0 };
    bytes <= max || previous.is_some_and(|previous| bytes < previous.json.len())
}
