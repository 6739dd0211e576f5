//! What a controller has to do, key by key: each key at most once, never two at one time for the same key, and what failed later
//! again, at growing intervals.
//!
//! Work that takes long waits for somebody else, most often for a webhook. So it gives up its place after a moment, and only bounds
//! hold it. Keys are in lanes that take turns: however many keys of one lane have to wait, the others are next.

use crate::store::CollectionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// After how long something that failed is tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Work that takes longer than this does not keep other work from starting.
const SLOW_AFTER: Duration = Duration::from_millis(100);
/// The most keys that are worked on at one time, slow ones included: in all, and of one lane.
const BUSY_MAX: usize = 300;
const LANE_BUSY_MAX: usize = 150;

/// What came of working on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It failed: try again later.
    Failed,
}

impl Outcome {
    /// Of something that was done, or was not.
    pub(super) fn of(done: bool) -> Self {
        if done { Outcome::Done } else { Outcome::Failed }
    }
}

/// Keys that may have to wait for the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// The objects of a collection in one namespace.
    Objects(CollectionId, Arc<str>),
    /// A sort of work.
    Named(&'static str),
}

/// A key of a queue.
pub(super) trait Laned: Clone + Ord {
    fn lane(&self) -> Lane {
        Lane::Named("all")
    }
}

impl Laned for String {}
impl Laned for crate::store::Key {}
impl Laned for super::Place {}

/// See the [module](self).
pub(super) struct Queue<K> {
    /// What can be taken, by lane and in the order in which it was marked. No lane is empty.
    ready: BTreeMap<Lane, BTreeMap<u64, K>>,
    /// The number of each key in `ready`.
    numbers: BTreeMap<K, u64>,
    next_number: u64,
    /// The lane that the last key was taken from.
    last: Option<Lane>,
    /// What is worked on, and since when.
    busy: BTreeMap<K, Instant>,
    busy_lanes: BTreeMap<Lane, usize>,
    /// Those of `busy` that must be looked at once more.
    again: BTreeSet<K>,
    later: BTreeSet<(Instant, K)>,
    /// The time of each key in `later`.
    times: BTreeMap<K, Instant>,
    /// How often a key has failed in a row.
    failures: BTreeMap<K, u32>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Queue {
            ready: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 0,
            last: None,
            busy: BTreeMap::new(),
            busy_lanes: BTreeMap::new(),
            again: BTreeSet::new(),
            later: BTreeSet::new(),
            times: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<K: Laned> Queue<K> {
    /// Something has changed that concerns this key.
    pub(super) fn mark(&mut self, key: K) {
        if self.busy.contains_key(&key) {
            self.again.insert(key);
        } else if !self.numbers.contains_key(&key) {
            self.numbers.insert(key.clone(), self.next_number);
            self.ready.entry(key.lane()).or_default().insert(self.next_number, key);
            self.next_number += 1;
        }
    }

    /// This key must be looked at, but not before.
    pub(super) fn mark_at(&mut self, key: K, time: Instant) {
        if let Some(before) = self.times.insert(key.clone(), time) {
            self.later.remove(&(before, key.clone()));
        }
        self.later.insert((time, key));
    }

    /// Whether this key waits for its turn or its time, or is being worked on.
    pub(super) fn is_known(&self, key: &K) -> bool {
        self.times.contains_key(key) || self.numbers.contains_key(key) || self.busy.contains_key(key)
    }

    /// There is nothing left to do for this key, beyond what is being done.
    pub(super) fn forget(&mut self, key: &K) {
        if let Some(time) = self.times.remove(key) {
            self.later.remove(&(time, key.clone()));
        }
        if let Some(number) = self.numbers.remove(key) {
            self.remove_ready(&key.lane(), number);
        }
        self.again.remove(key);
        self.failures.remove(key);
    }

    fn remove_ready(&mut self, lane: &Lane, number: u64) -> Option<K> {
        let keys = self.ready.get_mut(lane)?;
        let key = keys.remove(&number);
        if keys.is_empty() {
            self.ready.remove(lane);
        }
        key
    }

    /// The next key to work on, unless this many are worked on already. It is busy until [`Queue::finish`].
    pub(super) fn take(&mut self, now: Instant, at_once: usize) -> Option<K> {
        while let Some((time, _)) = self.later.first()
            && *time <= now
            && let Some((_, key)) = self.later.pop_first()
        {
            self.times.remove(&key);
            self.mark(key);
        }
        if self.busy.len() >= BUSY_MAX || self.slow_times(now).count() >= at_once {
            return None;
        }
        let (lane, number) = self.next_ready()?;
        let key = self.remove_ready(&lane, number)?;
        self.numbers.remove(&key);
        self.busy.insert(key.clone(), now);
        *self.busy_lanes.entry(lane.clone()).or_default() += 1;
        self.last = Some(lane);
        Some(key)
    }

    /// The next lane in turn that has room, and its first key.
    fn next_ready(&self) -> Option<(Lane, u64)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.last.as_ref().map_or(Unbounded, Excluded);
        let lanes = self.ready.range((after, Unbounded)).chain(&self.ready);
        let has_room = |lane: &Lane| self.busy_lanes.get(lane).is_none_or(|busy| *busy < LANE_BUSY_MAX);
        let (lane, keys) = lanes.into_iter().find(|(lane, _)| has_room(lane))?;
        Some((lane.clone(), *keys.first_key_value()?.0))
    }

    /// When each key that is worked on becomes slow; those that are slow already are left out.
    fn slow_times(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.busy.values().map(|since| *since + SLOW_AFTER).filter(move |time| *time > now)
    }

    /// Work on a key has ended.
    pub(super) fn finish(&mut self, key: &K, outcome: Outcome, now: Instant) {
        if self.busy.remove(key).is_some() {
            let lane = key.lane();
            let busy = self.busy_lanes.get(&lane).copied().unwrap_or_default();
            if busy > 1 {
                self.busy_lanes.insert(lane, busy - 1);
            } else {
                self.busy_lanes.remove(&lane);
            }
        }
        let again = self.again.remove(key);
        match outcome {
            Outcome::Done => drop(self.failures.remove(key)),
            Outcome::Failed => {
                let failures = self.failures.entry(key.clone()).or_default();
                let pause = RETRY_FIRST.saturating_mul(1 << (*failures).min(16)).min(RETRY_MAX);
                *failures = failures.saturating_add(1);
                self.mark_at(key.clone(), now + pause);
            }
        }
        if again {
            self.mark(key.clone());
        }
    }

    /// Whether something can be taken, or is being worked on.
    pub(super) fn is_active(&self) -> bool {
        !self.ready.is_empty() || !self.busy.is_empty()
    }

    /// When there may be something to take, if nothing happens before.
    pub(super) fn next_time(&self, now: Instant) -> Option<Instant> {
        let due = self.later.first().map(|(time, _)| *time);
        let slow = self.slow_times(now).min().filter(|_| !self.ready.is_empty());
        due.into_iter().chain(slow).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 1000;

    impl Laned for &'static str {}

    impl Laned for (&'static str, usize) {
        fn lane(&self) -> Lane {
            Lane::Named(self.0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_worked_on_once_at_a_time_and_again_if_it_changed_meanwhile() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.mark("a");
        queue.mark("a");
        queue.mark("b");
        assert_eq!(
            (queue.take(now, MANY), queue.take(now, MANY), queue.take(now, MANY)),
            (Some("a"), Some("b"), None)
        );
        queue.mark("a");
        assert_eq!(queue.take(now, MANY), None);
        queue.finish(&"a", Outcome::Done, now);
        assert_eq!(queue.take(now, MANY), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_waits_longer_each_time_and_holds_up_nobody() {
        let mut queue = Queue::default();
        let mut now = Instant::now();
        queue.mark("bad");
        let mut pauses = Vec::new();
        for _ in 0..7 {
            assert_eq!(queue.take(now, MANY), Some("bad"));
            queue.finish(&"bad", Outcome::Failed, now);
            queue.mark("good");
            assert_eq!(queue.take(now, MANY), Some("good"));
            queue.finish(&"good", Outcome::Done, now);
            let next = queue.next_time(now).unwrap();
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(queue.take(now, MANY), Some("bad"));
        queue.finish(&"bad", Outcome::Done, now);
        assert_eq!((queue.next_time(now), queue.is_active()), (None, false));
    }

    #[tokio::test(start_paused = true)]
    async fn lanes_take_turns() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for number in 0..100 {
            queue.mark(("stuck", number));
        }
        queue.mark(("free", 0));
        queue.mark(("free", 1));
        let taken: Vec<_> = std::iter::from_fn(|| queue.take(now, 4)).collect();
        assert_eq!(taken, [("free", 0), ("stuck", 0), ("free", 1), ("stuck", 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_holds_up_nobody_within_bounds() {
        let mut queue = Queue::default();
        let mut now = Instant::now();
        for number in 0..1000 {
            queue.mark(("stuck", number));
        }
        let mut busy = 0;
        while let Some(time) = {
            busy += std::iter::from_fn(|| queue.take(now, 20)).count();
            queue.next_time(now)
        } {
            assert!(time > now, "it would be asked without a pause");
            now = time;
        }
        assert_eq!(busy, LANE_BUSY_MAX);
        queue.mark(("free", 0));
        assert_eq!(queue.take(now, 20), Some(("free", 0)));
        assert_eq!(queue.take(now, 20), None);
        queue.finish(&("stuck", 0), Outcome::Failed, now);
        assert_eq!(queue.take(now, 20), Some(("stuck", LANE_BUSY_MAX)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_key_is_not_taken() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for key in ["a", "b", "a"] {
            queue.mark(key);
        }
        queue.forget(&"a");
        assert_eq!((queue.take(now, MANY), queue.take(now, MANY)), (Some("b"), None));
        queue.mark("a");
        assert_eq!(queue.take(now, MANY), Some("a"));
    }
}
