//! The queue against a naive model: whatever happens in whatever order, both say the same of every key.
//!
//! The model keeps a few facts per key and derives the key's state from them by looking at all of them each time.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

const LANES: [char; 3] = ['a', 'b', 'c'];
const RUNNING_MAX: usize = 2;

#[derive(Debug, Clone)]
enum Event {
    Push(usize, u8, Priority),
    Touch(usize, u8),
    PushAt(usize, u8, Duration),
    Take,
    Done(usize, Outcome),
    Forget(usize, u8),
    Pause(usize),
    Resume(usize),
    RemoveLane(usize),
    Advance(Duration),
}

fn any_event() -> impl Strategy<Value = Event> {
    let lane = 0..LANES.len();
    let key = 0..4_u8;
    let wait = (0..3_000_u64).prop_map(Duration::from_millis).boxed();
    let priority = proptest::sample::select(&Priority::ALL);
    let outcome = prop_oneof![
        3 => proptest::option::of(wait.clone()).prop_map(|again_after| Outcome::Done { again_after }),
        3 => Just(Outcome::FAILED),
        1 => wait.clone().prop_map(|wait_at_least| Outcome::Failed { wait_at_least }),
        1 => wait.clone().prop_map(|wait| Outcome::Held { wait }),
        1 => Just(Outcome::Terminal),
    ];
    prop_oneof![
        8 => (lane.clone(), key.clone(), priority).prop_map(|(lane, key, priority)| Event::Push(lane, key, priority)),
        2 => (lane.clone(), key.clone()).prop_map(|(lane, key)| Event::Touch(lane, key)),
        2 => (lane.clone(), key.clone(), wait.clone()).prop_map(|(lane, key, wait)| Event::PushAt(lane, key, wait)),
        8 => Just(Event::Take),
        6 => (0..4_usize, outcome).prop_map(|(which, outcome)| Event::Done(which, outcome)),
        1 => (lane.clone(), key).prop_map(|(lane, key)| Event::Forget(lane, key)),
        1 => lane.clone().prop_map(Event::Pause),
        2 => lane.clone().prop_map(Event::Resume),
        1 => lane.prop_map(Event::RemoveLane),
        4 => wait.prop_map(Event::Advance),
    ]
}

/// What is true of a key.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    running: bool,
    forgotten: bool,
    /// It was touched while it ran.
    touched: bool,
    /// Somebody wants it, so urgently.
    wanted: Option<Priority>,
    /// Somebody wants it at that time.
    wanted_at: Option<Instant>,
    /// It may not run, for that reason.
    barred: Option<Bar>,
    failures: u32,
    pushes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Bar {
    Backoff(Instant),
    Hold(Instant),
    Rest,
}

impl Facts {
    /// The state without the times since when.
    fn state(&self) -> Option<String> {
        let Self { failures, wanted, .. } = *self;
        match (self.running, self.barred, wanted, self.wanted_at) {
            (true, ..) => Some(format!("running, again {wanted:?}")),
            (_, Some(Bar::Backoff(until)), ..) => Some(format!("backing off {failures} {until:?}")),
            (_, Some(Bar::Hold(until)), ..) => Some(format!("held {until:?}")),
            (_, Some(Bar::Rest), ..) => Some(format!("resting {failures}")),
            (_, None, Some(priority), _) => Some(format!("ready {priority}")),
            (_, None, None, Some(until)) => Some(format!("delayed {until:?}")),
            (_, None, None, None) => None,
        }
    }

    fn want(&mut self, priority: Priority) {
        self.wanted = Some(self.wanted.map_or(priority, |earlier| earlier.min(priority)));
    }

    fn want_at(&mut self, at: Instant) {
        self.wanted_at = Some(self.wanted_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn pass_time(&mut self, now: Instant) {
        if self.running {
            return;
        }
        let released = matches!(self.barred, Some(Bar::Backoff(until) | Bar::Hold(until)) if until <= now);
        if released {
            self.barred = None;
        }
        if released || (self.barred.is_none() && self.wanted_at.is_some_and(|at| at <= now)) {
            self.wanted_at = None;
            self.want(Priority::Normal);
        }
    }
}

fn told(state: State) -> String {
    match state {
        State::Ready { priority, .. } => format!("ready {priority}"),
        State::Running { again } => format!("running, again {again:?}"),
        State::Delayed { until } => format!("delayed {until:?}"),
        State::BackingOff { failures, until } => format!("backing off {failures} {until:?}"),
        State::Held { until } => format!("held {until:?}"),
        State::Resting { failures } => format!("resting {failures}"),
    }
}

struct Pair {
    queue: Queue<char, u8, u64>,
    facts: BTreeMap<(char, u8), Facts>,
    paused: BTreeMap<char, bool>,
    now: Instant,
    pushes: u64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut pair = Self {
            queue: Queue::new(fastrand::Rng::with_seed(seed)),
            facts: BTreeMap::new(),
            paused: BTreeMap::new(),
            now: Instant::now(),
            pushes: 0,
        };
        for lane in LANES {
            pair.limit(lane);
        }
        pair
    }

    fn limit(&mut self, lane: char) {
        self.queue.set_lane(&lane, LaneSettings { running_max: RUNNING_MAX, ..LaneSettings::default() });
    }

    fn running(&self) -> Vec<(char, u8)> {
        self.facts.iter().filter(|(_, facts)| facts.running).map(|(id, _)| *id).collect()
    }

    fn may_run(&self, id: (char, u8)) -> bool {
        let facts = self.facts[&id];
        let beside = self.running().iter().filter(|(lane, _)| *lane == id.0).count();
        !facts.running
            && facts.barred.is_none()
            && facts.wanted.is_some()
            && !self.paused.get(&id.0).copied().unwrap_or_default()
            && beside < RUNNING_MAX
    }

    fn take(&mut self) -> Result<Option<(char, u8)>, TestCaseError> {
        for facts in self.facts.values_mut() {
            facts.pass_time(self.now);
        }
        let Some(taken) = self.queue.take(self.now) else {
            let left: Vec<_> = self.facts.keys().filter(|id| self.may_run(**id)).collect();
            prop_assert!(left.is_empty(), "nothing was given out though {left:?} could run");
            prop_assert!(self.queue.next_wake().is_none_or(|wake| wake > self.now));
            return Ok(None);
        };
        let id = (taken.lane, taken.key);
        prop_assert!(self.may_run(id), "{id:?} was given out: {:?}", self.facts[&id]);
        let facts = self.facts.get_mut(&id).unwrap();
        prop_assert_eq!(Some(taken.priority), facts.wanted);
        prop_assert_eq!(taken.failures, facts.failures);
        prop_assert_eq!(taken.triggers.iter().count() + taken.triggers.unlisted() as usize, facts.pushes);
        *facts = Facts { running: true, failures: facts.failures, ..Facts::default() };
        Ok(Some(id))
    }

    fn done(&mut self, id: (char, u8), outcome: Outcome) -> Result<(), TestCaseError> {
        let state = self.queue.done(&id.0, &id.1, outcome, self.now);
        let facts = self.facts.get_mut(&id).unwrap();
        let void = facts.forgotten || facts.wanted == Some(Priority::Now);
        let touched = facts.touched;
        (facts.running, facts.forgotten, facts.touched) = (false, false, false);
        let failures = facts.failures + 1;
        facts.failures = 0;
        match if void { Outcome::DONE } else { outcome } {
            Outcome::Done { again_after: None } => {}
            Outcome::Done { again_after: Some(wait) } => facts.want_at(self.now + wait),
            Outcome::Held { wait } => {
                (facts.failures, facts.barred) = (failures - 1, Some(Bar::Hold(self.now + wait)));
            }
            Outcome::Terminal if touched => facts.failures = failures,
            Outcome::Terminal => (facts.failures, facts.barred) = (failures, Some(Bar::Rest)),
            Outcome::Failed { wait_at_least } => {
                let Some(State::BackingOff { until, .. }) = state else {
                    return Err(TestCaseError::fail(format!("a failed key is {state:?}")));
                };
                let longest = LaneSettings::default().backoff.longest_wait(failures);
                prop_assert!(until - self.now >= longest.mul_f64(0.799).max(wait_at_least));
                prop_assert!(until - self.now <= longest.max(wait_at_least));
                (facts.failures, facts.barred) = (failures, Some(Bar::Backoff(until)));
            }
        }
        prop_assert_eq!(state.map(told), facts.state());
        Ok(())
    }

    fn push(&mut self, lane: char, key: u8, priority: Priority) {
        self.pushes += 1;
        self.queue.push(&lane, &key, priority, self.pushes, self.now);
        let facts = self.facts.entry((lane, key)).or_default();
        facts.pushes += 1;
        facts.want(priority);
        if priority == Priority::Now && !facts.running {
            (facts.barred, facts.failures) = (None, 0);
        }
    }

    fn touch(&mut self, lane: char, key: u8) {
        self.pushes += 1;
        self.queue.touch(&lane, &key, self.pushes, self.now);
        let facts = self.facts.entry((lane, key)).or_default();
        facts.pushes += 1;
        facts.want(Priority::Normal);
        facts.touched = facts.running;
        if matches!(facts.barred, Some(Bar::Rest)) {
            facts.barred = None;
        }
    }

    fn forget(&mut self, id: (char, u8)) {
        if let Some(facts) = self.facts.get_mut(&id) {
            *facts = Facts { running: facts.running, forgotten: facts.running, ..Facts::default() };
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match *event {
            Event::Push(lane, key, priority) => self.push(LANES[lane], key, priority),
            Event::Touch(lane, key) => self.touch(LANES[lane], key),
            Event::PushAt(lane, key, wait) => {
                self.queue.push_at(&LANES[lane], &key, self.now + wait);
                self.facts.entry((LANES[lane], key)).or_default().want_at(self.now + wait);
            }
            Event::Take => _ = self.take()?,
            Event::Done(which, outcome) => {
                if let Some(id) = self.running().get(which) {
                    self.done(*id, outcome)?;
                }
            }
            Event::Forget(lane, key) => {
                self.queue.forget(&LANES[lane], &key);
                self.forget((LANES[lane], key));
            }
            Event::Pause(lane) => {
                self.queue.pause(&LANES[lane]);
                self.paused.insert(LANES[lane], true);
            }
            Event::Resume(lane) => {
                self.queue.resume(&LANES[lane]);
                self.paused.remove(&LANES[lane]);
            }
            Event::RemoveLane(lane) => {
                self.queue.remove_lane(&LANES[lane]);
                self.limit(LANES[lane]);
                self.paused.remove(&LANES[lane]);
                for key in 0..=u8::MAX {
                    self.forget((LANES[lane], key));
                }
            }
            Event::Advance(by) => self.now += by,
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let mut known = 0;
        for ((lane, key), facts) in &self.facts {
            let state = self.queue.snapshot(lane, key).map(|snapshot| told(snapshot.state));
            prop_assert_eq!(&state, &facts.state(), "{} {}: {:?}", lane, key, facts);
            known += usize::from(state.is_some());
        }
        let depth = self.queue.depth();
        prop_assert_eq!(depth.total(), known);
        prop_assert_eq!(depth.running, self.running().len());
        Ok(())
    }

    /// Lets everything run to its end: afterwards only resting keys are left, and all that were wanted have run.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        for lane in LANES {
            self.queue.resume(&lane);
        }
        self.paused.clear();
        let resting = |facts: &Facts| matches!(facts.barred, Some(Bar::Rest));
        let mut owed: Vec<_> = self.facts.iter().filter(|(_, facts)| !resting(facts)).collect();
        owed.retain(|(_, facts)| facts.state().is_some() && (!facts.running || facts.wanted.is_some()));
        let mut owed: Vec<_> = owed.into_iter().map(|(id, _)| *id).collect();
        for id in self.running() {
            self.done(id, Outcome::DONE)?;
        }
        loop {
            while let Some(id) = self.take()? {
                owed.retain(|other| *other != id);
                self.done(id, Outcome::DONE)?;
            }
            match self.queue.next_wake() {
                Some(wake) => self.now = wake,
                None => break,
            }
        }
        prop_assert!(owed.is_empty(), "never ran: {owed:?}");
        let depth = self.queue.depth();
        prop_assert_eq!(depth.total(), depth.resting);
        self.check()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_key_is_lost_nor_out_twice_nor_early(
        events in proptest::collection::vec(any_event(), 0..120),
        seed: u64,
    ) {
        let mut pair = Pair::new(seed);
        for event in &events {
            pair.apply(event)?;
            pair.check()?;
        }
        pair.drain()?;
    }
}
