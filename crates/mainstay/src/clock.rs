//! Wall-clock time as a value that is passed in.
//!
//! Timers (backoff, leases, deadlines) follow tokio's clock, which tests can pause. What is written into objects
//! (transition times, event times, lease renewals) comes from a [`Clock`].

use std::fmt;

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time that is written into objects.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and goes as tokio's does: paused in a paused runtime, advanced with it.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// A clock that shows `origin` now.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self { origin, started: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // A clock that has run past the end of time stays there.
        self.origin.checked_add(self.started.elapsed()).unwrap_or(Timestamp::MAX)
    }
}
