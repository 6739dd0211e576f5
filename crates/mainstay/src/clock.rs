//! Wall-clock time as a value that is passed in.
//!
//! Timers (backoff, leases, deadlines) follow tokio's clock, which tests can pause. What is written into objects
//! (transition times, event times, lease renewals) comes from a [`Clock`].

use std::fmt;

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// How far ahead a timer is set that is not to fire: thirty years.
const FAR: Duration = Duration::from_hours(24 * 365 * 30);

/// The instant `wait` after another. A wait that no instant can be given for counts as thirty years.
pub fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait).or_else(|| from.checked_add(FAR)).unwrap_or(from)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_is_too_long() {
        let now = Instant::now();
        assert_eq!(later(now, Duration::from_secs(5)), now + Duration::from_secs(5));
        for wait in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 62)] {
            assert!(later(now, wait) >= now + FAR, "{wait:?}");
        }
    }
}
