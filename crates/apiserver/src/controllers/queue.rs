//! What a controller has to do, key by key: each key at most once, never two at one time for the same key, and what failed later
//! again, at growing intervals.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// After how long something that failed is tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

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

/// See the [module](self).
pub(super) struct Queue<K> {
    ready: VecDeque<K>,
    /// Those in `ready`.
    is_ready: BTreeSet<K>,
    busy: BTreeSet<K>,
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
            ready: VecDeque::new(),
            is_ready: BTreeSet::new(),
            busy: BTreeSet::new(),
            again: BTreeSet::new(),
            later: BTreeSet::new(),
            times: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Something has changed that concerns this key.
    pub(super) fn mark(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.is_ready.insert(key.clone()) {
            self.ready.push_back(key);
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
        self.times.contains_key(key) || self.is_ready.contains(key) || self.busy.contains(key)
    }

    /// There is nothing left to do for this key, beyond what is being done.
    pub(super) fn forget(&mut self, key: &K) {
        if let Some(time) = self.times.remove(key) {
            self.later.remove(&(time, key.clone()));
        }
        if self.is_ready.remove(key) {
            self.ready.retain(|ready| ready != key);
        }
        self.again.remove(key);
        self.failures.remove(key);
    }

    /// The next key to work on. It is busy until [`Queue::finish`].
    pub(super) fn take(&mut self, now: Instant) -> Option<K> {
        while let Some((time, _)) = self.later.first()
            && *time <= now
            && let Some((_, key)) = self.later.pop_first()
        {
            self.times.remove(&key);
            self.mark(key);
        }
        let key = self.ready.pop_front()?;
        self.is_ready.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    /// Work on a key has ended.
    pub(super) fn finish(&mut self, key: &K, outcome: Outcome, now: Instant) {
        self.busy.remove(key);
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

    /// How many keys are being worked on.
    pub(super) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// Whether something can be taken, or is being worked on.
    pub(super) fn is_active(&self) -> bool {
        !self.ready.is_empty() || !self.busy.is_empty()
    }

    /// When the next key that waits for its time is due.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.later.first().map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_worked_on_once_at_a_time_and_again_if_it_changed_meanwhile() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.mark("a");
        queue.mark("a");
        queue.mark("b");
        assert_eq!((queue.take(now), queue.take(now), queue.take(now)), (Some("a"), Some("b"), None));
        queue.mark("a");
        assert_eq!(queue.take(now), None);
        queue.finish(&"a", Outcome::Done, now);
        assert_eq!(queue.take(now), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_waits_longer_each_time_and_holds_up_nobody() {
        let mut queue = Queue::default();
        let mut now = Instant::now();
        queue.mark("bad");
        let mut pauses = Vec::new();
        for _ in 0..7 {
            assert_eq!(queue.take(now), Some("bad"));
            queue.finish(&"bad", Outcome::Failed, now);
            queue.mark("good");
            assert_eq!(queue.take(now), Some("good"));
            queue.finish(&"good", Outcome::Done, now);
            let next = queue.next_time().unwrap();
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(queue.take(now), Some("bad"));
        queue.finish(&"bad", Outcome::Done, now);
        assert_eq!((queue.next_time(), queue.is_active()), (None, false));
    }
}
