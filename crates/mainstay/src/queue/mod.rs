//! A queue of keys that wait to be worked on: objects to reconcile, jobs to do.
//!
//! It is a plain value: no tasks, no clock, no locks. Every method is told the time, and what it does follows from
//! its arguments and the seed alone. Whoever drives it takes keys while it has room to run them, reports each as done,
//! and sleeps until [`Queue::next_wake`] when there is nothing to take.
//!
//! Keys live in lanes (a lane per kind of object). It guarantees:
//!
//! - **Nothing is lost, nothing is repeated.** A key that was pushed runs, once, however often it was pushed before.
//!   A key that is pushed while it runs runs again afterwards. No key is ever out twice at once.
//! - **Urgent first, nobody starves.** A more urgent [`Priority`] goes first, but every priority with waiting keys has
//!   at least one turn in nine. Within a priority the lanes take turns, and within a lane the first comes first: a lane
//!   with ten thousand waiting keys delays another lane's only key by one turn.
//! - **Backoff is each key's own.** A key that failed waits, longer each time ([`Backoff`]). Pushes of
//!   [`Priority::Normal`] and [`Priority::Low`] neither shorten nor lengthen the wait; they are remembered as triggers.
//!   A key that failed for good rests in the same way, without end. A push with [`Priority::Now`] ends either at once
//!   and forgets the failures; if it comes while the key runs, it does so whatever the outcome of that run, which was
//!   of an object that has changed since.
//! - **One timer per key.** A key that is to come at a time ([`Queue::push_at`], [`Outcome::Done`]) comes at the
//!   earliest time asked for. Any run answers it: a key that runs sooner has no timer left, and whoever runs it asks
//!   for the next time anew. A push of low priority doesn't make it later: the key moves up when its time comes.
//! - **It says why.** A taken key comes with its [`Triggers`], the timer that fired, the failures so far and since
//!   when it could have run.
//!
//! Each call costs O(log n) in the number of keys. A key that neither waits nor runs nor rests costs no memory.
//!
//! ```
//! use std::time::Duration;
//! use mainstay::queue::{Outcome, Priority, Queue};
//! use tokio::time::Instant;
//!
//! let mut queue = Queue::new(fastrand::Rng::with_seed(7));
//! let now = Instant::now();
//! queue.push(&"Deployment", &"web", Priority::Low, "start", now);
//! queue.push(&"Deployment", &"web", Priority::Now, "spec changed", now);
//!
//! let taken = queue.take(now).unwrap();
//! assert_eq!(taken.triggers.iter().collect::<Vec<_>>(), [&"spec changed", &"start"]);
//! assert!(queue.take(now).is_none());
//!
//! queue.done(&"Deployment", &"web", Outcome::FAILED, now);
//! queue.push(&"Deployment", &"web", Priority::Normal, "pod changed", now);
//! assert!(queue.take(now).is_none());
//!
//! let retry = queue.next_wake().unwrap();
//! assert!(retry <= now + Duration::from_millis(500));
//! assert_eq!(queue.take(retry).unwrap().failures, 1);
//! ```

mod backoff;
mod entry;
mod lane;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
mod triggers;
mod turns;
mod types;

use std::collections::BTreeMap;

use tokio::time::Instant;

pub use self::backoff::Backoff;
use self::entry::{Entry, Place, Step, TOUCH_PRIORITY};
use self::lane::Lane;
pub use self::triggers::Triggers;
use self::turns::Turns;
pub use self::types::{Depth, LaneSettings, Outcome, Priority, Snapshot, State, Taken, Timer};

/// The queue. See the [module](self) for what it guarantees.
///
/// `L` names a lane, `K` a key within it, `T` is what a push gives as its reason.
#[derive(Debug)]
pub struct Queue<L, K, T> {
    numbers: BTreeMap<L, u64>,
    lanes: BTreeMap<u64, Lane<L, K, T>>,
    turns: Turns,
    /// The keys that wait for a time. The second part makes equal times distinct.
    timers: BTreeMap<(Instant, u64), (u64, K)>,
    /// The last number given out. Lanes, places in line and timers have one each, never used twice.
    last: u64,
    rng: fastrand::Rng,
}

impl<L: Ord + Clone, K: Ord + Clone, T: PartialEq> Queue<L, K, T> {
    /// An empty queue. The generator gives the jitter of backoffs.
    pub fn new(rng: fastrand::Rng) -> Self {
        Self {
            numbers: BTreeMap::new(),
            lanes: BTreeMap::new(),
            turns: Turns::default(),
            timers: BTreeMap::new(),
            last: 0,
            rng,
        }
    }

    /// Wants a key to run soon. A lane that is not known yet is made with the default settings.
    pub fn push(&mut self, lane: &L, key: &K, priority: Priority, trigger: T, now: Instant) {
        let number = self.number(lane);
        let Some(entry) = self.entry(number, key) else { return };
        entry.triggers.add(priority, trigger, now);
        let step = entry.on_push(priority, now);
        self.carry_out(number, key, step);
    }

    /// Wants a key to run soon, because something of its object changed that may matter. As a push of [`Priority::Normal`], but it ends a
    /// rest too. It leaves backoffs, holds and failures alone: others write annotations all the time.
    pub fn touch(&mut self, lane: &L, key: &K, trigger: T, now: Instant) {
        let number = self.number(lane);
        let Some(entry) = self.entry(number, key) else { return };
        entry.triggers.add(TOUCH_PRIORITY, trigger, now);
        let step = entry.on_touch(now);
        self.carry_out(number, key, step);
    }

    /// Wants a key to run at a time, or before. Tells no trigger: the timer is the reason.
    pub fn push_at(&mut self, lane: &L, key: &K, at: Instant) {
        let number = self.number(lane);
        let Some(entry) = self.entry(number, key) else { return };
        let step = entry.on_push_at(at);
        self.carry_out(number, key, step);
    }

    /// The next key to run, if any can run now.
    pub fn take(&mut self, now: Instant) -> Option<Taken<L, K, T>> {
        self.fire_timers(now);
        let (turns, lanes) = (&mut self.turns, &mut self.lanes);
        let (priority, number) = turns.next(|priority, number| {
            let Some(lane) = lanes.get_mut(&number) else { return false };
            lane.in_turn[priority.index()] = lane.can_serve(priority);
            lane.in_turn[priority.index()]
        })?;
        let lane = self.lanes.get_mut(&number)?;
        lane.in_turn[priority.index()] = false;
        let key = lane.lines[priority.index()].first_key_value().map(|(_, key)| key.clone())?;
        let entry = lane.entries.get_mut(&key)?;
        let Place::Ready { since, .. } = entry.place else { return None };
        let taken = Taken {
            lane: lane.name.clone(),
            key,
            priority,
            triggers: std::mem::take(&mut entry.triggers),
            timer: entry.fired.take(),
            failures: entry.failures,
            ready_since: since,
        };
        if let Some(timer) = entry.timer.take() {
            self.timers.remove(&timer);
        }
        lane.put(
            &taken.key,
            Place::Running { again: None, again_at: None, forgotten: false, touched: false },
        );
        self.take_turns(number);
        Some(taken)
    }

    /// Reports that a taken key has run. Tells where the key is now; `None` if the queue knows no more of it, or if
    /// it was not running.
    pub fn done(&mut self, lane: &L, key: &K, outcome: Outcome, now: Instant) -> Option<State> {
        let number = *self.numbers.get(lane)?;
        let lane = self.lanes.get_mut(&number)?;
        let entry = lane.entries.get_mut(key)?;
        let step = entry.on_done(outcome, &lane.settings.backoff, &mut self.rng, now)?;
        self.carry_out(number, key, step);
        let lane = self.lanes.get(&number)?;
        let state = lane.entries.get(key).and_then(Entry::state);
        if lane.removed && lane.entries.is_empty() {
            self.numbers.remove(&lane.name);
            self.lanes.remove(&number);
        }
        self.take_turns(number);
        state
    }

    /// Forgets a key whose object is gone: its failures, its timers and that it was pushed. If it is running, it stays
    /// taken until it is done, and a push from now on makes it run again then.
    pub fn forget(&mut self, lane: &L, key: &K) {
        let Some(number) = self.numbers.get(lane).copied() else { return };
        let Some(entry) = self.lanes.get_mut(&number).and_then(|lane| lane.entries.get_mut(key)) else {
            return;
        };
        let step = entry.on_forget();
        self.carry_out(number, key, step);
    }

    /// Forgets all keys of a lane but those to keep.
    pub fn retain(&mut self, lane: &L, mut keep: impl FnMut(&K) -> bool) {
        let Some(known) = self.numbers.get(lane).and_then(|number| self.lanes.get(number)) else { return };
        let others: Vec<K> = known.entries.keys().filter(|key| !keep(key)).cloned().collect();
        for key in others {
            self.forget(lane, &key);
        }
    }

    /// Makes a lane, or changes its settings. Waits that have begun stay as they are.
    pub fn set_lane(&mut self, lane: &L, settings: LaneSettings) {
        let number = self.number(lane);
        if let Some(lane) = self.lanes.get_mut(&number) {
            lane.settings = settings;
        }
        self.take_turns(number);
    }

    /// Holds all keys of a lane: they are pushed, wait and become ready, but none is taken. Those that run go on.
    pub fn pause(&mut self, lane: &L) {
        let number = self.number(lane);
        if let Some(lane) = self.lanes.get_mut(&number) {
            lane.paused = true;
        }
    }

    /// Lets the keys of a paused lane be taken again.
    pub fn resume(&mut self, lane: &L) {
        let Some(number) = self.numbers.get(lane).copied() else { return };
        if let Some(lane) = self.lanes.get_mut(&number) {
            lane.paused = false;
        }
        self.take_turns(number);
    }

    /// Takes a lane away with its settings and keys. Keys that run are still to be reported as done; should the lane
    /// come back before, they are not given out a second time.
    pub fn remove_lane(&mut self, lane: &L) {
        self.retain(lane, |_| false);
        let Some(number) = self.numbers.get(lane).copied() else { return };
        let Some(known) = self.lanes.get_mut(&number) else { return };
        if known.entries.is_empty() {
            self.lanes.remove(&number);
            self.numbers.remove(lane);
        } else {
            (known.settings, known.paused, known.removed) = (LaneSettings::default(), false, true);
        }
    }

    /// The next time at which a key becomes ready by itself. To be asked after [`Queue::take`] has returned `None`.
    pub fn next_wake(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// What is known of a key. `None` if it neither waits nor runs nor rests.
    pub fn snapshot(&self, lane: &L, key: &K) -> Option<Snapshot<'_, T>> {
        snapshot(self.lanes.get(self.numbers.get(lane)?)?.entries.get(key)?)
    }

    /// What is known of all keys of a lane, in their order.
    pub fn snapshots(&self, lane: &L) -> impl Iterator<Item = (&K, Snapshot<'_, T>)> {
        let lane = self.numbers.get(lane).and_then(|number| self.lanes.get(number));
        let entries = lane.into_iter().flat_map(|lane| &lane.entries);
        entries.filter_map(|(key, entry)| Some((key, snapshot(entry)?)))
    }

    /// How many keys of each lane are where, in the order of the lanes.
    pub fn depths(&self) -> impl Iterator<Item = (&L, Depth)> {
        self.numbers.iter().filter_map(|(name, number)| Some((name, self.lanes.get(number)?.depth)))
    }

    /// How many keys are where.
    pub fn depth(&self) -> Depth {
        self.lanes.values().fold(Depth::default(), |sum, lane| sum.plus(&lane.depth))
    }

    fn ticket(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The number of a lane, which is made if it is not there.
    fn number(&mut self, name: &L) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            if let Some(lane) = self.lanes.get_mut(number) {
                lane.removed = false;
            }
            return *number;
        }
        let number = self.ticket();
        self.numbers.insert(name.clone(), number);
        self.lanes.insert(number, Lane::new(name.clone(), LaneSettings::default()));
        number
    }

    /// The entry of a key, which is made if it is not there.
    fn entry(&mut self, lane: u64, key: &K) -> Option<&mut Entry<T>> {
        Some(self.lanes.get_mut(&lane)?.entries.entry(key.clone()).or_insert_with(Entry::new))
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            let (lane, key) = first.remove();
            let Some(entry) = self.lanes.get_mut(&lane).and_then(|lane| lane.entries.get_mut(&key)) else {
                continue;
            };
            entry.timer = None;
            let step = entry.on_timer();
            self.carry_out(lane, &key, step);
        }
    }

    fn carry_out(&mut self, number: u64, key: &K, step: Step) {
        if step == Step::Stay {
            return;
        }
        let next = self.ticket();
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        let Some(entry) = lane.entries.get_mut(key) else { return };
        if let Some(timer) = entry.timer.take() {
            self.timers.remove(&timer);
        }
        let (place, timer) = match step {
            Step::Stay => return,
            Step::Gone => return lane.remove(key),
            Step::Rest => (Place::Resting, None),
            Step::Wait { why, until } => (Place::Waiting { why, until }, Some(until)),
            Step::Ready { priority, since, urgent_at } => {
                let ticket = match entry.place {
                    Place::Ready { priority: same, ticket, .. } if same == priority => ticket,
                    _ => next,
                };
                (Place::Ready { priority, ticket, since }, urgent_at)
            }
        };
        if let Some(until) = timer {
            entry.timer = Some((until, next));
            self.timers.insert((until, next), (number, key.clone()));
        }
        lane.put(key, place);
        self.take_turns(number);
    }

    /// Puts a lane into the lines of lanes where it has keys to run.
    fn take_turns(&mut self, number: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        for priority in Priority::ALL {
            if !lane.in_turn[priority.index()] && lane.can_serve(priority) {
                lane.in_turn[priority.index()] = true;
                self.turns.join(priority, number);
            }
        }
    }
}

fn snapshot<T>(entry: &Entry<T>) -> Option<Snapshot<'_, T>> {
    Some(Snapshot { state: entry.state()?, failures: entry.failures, triggers: &entry.triggers })
}
