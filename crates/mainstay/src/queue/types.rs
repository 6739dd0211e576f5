//! The words in which the queue is spoken to and answers.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::{Backoff, Triggers};

/// How urgent a push is, and whether it says that the object itself changed. More urgent is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody changed the object, or asked for it by name: it starts afresh. A backoff, a hold or a rest ends at
    /// once, and its failures are forgotten.
    Now,
    /// Something that the object depends on changed, or its time has come.
    Normal,
    /// Nothing is known to have changed: start-up, a resync.
    Low,
}

impl Priority {
    /// All, the most urgent first.
    pub const ALL: [Self; Self::COUNT] = [Self::Now, Self::Normal, Self::Low];

    pub(super) const COUNT: usize = 3;

    pub(super) fn index(self) -> usize {
        match self {
            Self::Now => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

/// As metrics label it: `now`, `normal`, `low`.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "now",
            Self::Normal => "normal",
            Self::Low => "low",
        })
    }
}

/// How a lane's keys are treated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSettings {
    /// How long its keys wait after failures.
    pub backoff: Backoff,
    /// How many of its keys may run at once, so that a slow lane leaves room for the others. No limit by default.
    pub running_max: usize,
}

impl Default for LaneSettings {
    fn default() -> Self {
        Self { backoff: Backoff::default(), running_max: usize::MAX }
    }
}

/// How a run of a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done {
        /// The key wants to come again after this time.
        again_after: Option<Duration>,
    },
    /// It failed. The key backs off.
    Failed {
        /// The key waits at least so long, even if its backoff is shorter: a server asked for it.
        wait_at_least: Duration,
    },
    /// It failed, and to try again is useless until the object changes. The key rests.
    Terminal,
    /// It neither succeeded nor failed, and the key must not come again before this time. Its failures stay counted.
    Held {
        /// For how long.
        wait: Duration,
    },
}

impl Outcome {
    /// It succeeded, and nothing is left to do.
    pub const DONE: Self = Self::Done { again_after: None };
    /// It failed.
    pub const FAILED: Self = Self::Failed { wait_at_least: Duration::ZERO };
}

/// A time of its own that a key waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// It was asked to come at that time.
    Requeue,
    /// It failed and is tried again.
    Retry,
    /// It was held.
    Held,
}

/// A key to run. The queue gives it to nobody else until [`Queue::done`](super::Queue::done).
#[derive(Debug)]
#[must_use = "a key that was taken stays in the queue as running until it is reported as done"]
pub struct Taken<L, K, T> {
    /// Its lane.
    pub lane: L,
    /// The key.
    pub key: K,
    /// How urgent it was.
    pub priority: Priority,
    /// The pushes that this run answers.
    pub triggers: Triggers<T>,
    /// The timer that made it ready, if one did.
    pub timer: Option<Timer>,
    /// How often it has failed in a row.
    pub failures: u32,
    /// Since when it could have run.
    pub ready_since: Instant,
}

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It can be taken.
    Ready {
        /// How urgent it is.
        priority: Priority,
        /// Since when.
        since: Instant,
    },
    /// It was taken, and is not done yet.
    Running {
        /// It was pushed in the meantime.
        again: Option<Priority>,
    },
    /// It comes at a time that was asked for, or with the next push.
    Delayed {
        /// That time.
        until: Instant,
    },
    /// It failed and comes again at a time, or when its object changes.
    BackingOff {
        /// How often in a row.
        failures: u32,
        /// That time.
        until: Instant,
    },
    /// It is held until a time, or until its object changes.
    Held {
        /// That time.
        until: Instant,
    },
    /// It failed for good and comes again when its object changes.
    Resting {
        /// How often in a row.
        failures: u32,
    },
}

/// What the queue knows of a key.
#[derive(Debug)]
pub struct Snapshot<'a, T> {
    /// Where it is.
    pub state: State,
    /// How often it has failed in a row.
    pub failures: u32,
    /// The pushes that its next run answers.
    pub triggers: &'a Triggers<T>,
}

/// How many keys are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    pub(super) ready: [usize; Priority::COUNT],
    /// Taken and not done yet.
    pub running: usize,
    /// Waiting for a time that was asked for.
    pub delayed: usize,
    /// Waiting because they failed.
    pub backing_off: usize,
    /// Waiting because they are held.
    pub held: usize,
    /// Failed for good.
    pub resting: usize,
}

impl Depth {
    /// Ready to be taken, with this priority.
    pub fn ready(&self, priority: Priority) -> usize {
        self.ready[priority.index()]
    }

    /// Ready to be taken.
    pub fn ready_total(&self) -> usize {
        self.ready.iter().sum()
    }

    /// Everything the queue knows.
    pub fn total(&self) -> usize {
        self.ready_total() + self.running + self.delayed + self.backing_off + self.held + self.resting
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        for (count, more) in self.ready.iter_mut().zip(other.ready) {
            *count += more;
        }
        self.running += other.running;
        self.delayed += other.delayed;
        self.backing_off += other.backing_off;
        self.held += other.held;
        self.resting += other.resting;
        self
    }
}
