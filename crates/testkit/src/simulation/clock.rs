//! The time of a world.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// When every world begins: 2026-01-01T00:00:00Z.
const BEGINNING_SECONDS: i64 = 1_767_225_600;

/// A program's clock: it moves with the world's time, and can be set wrong.
#[derive(Clone, Debug)]
pub struct WorldClock {
    zero: Instant,
    wrong_by_seconds: Arc<AtomicI64>,
}

impl WorldClock {
    /// A clock that shows the beginning now.
    pub(super) fn new() -> Self {
        Self { zero: Instant::now(), wrong_by_seconds: Arc::default() }
    }

    /// Another clock that shows the right time.
    pub(super) fn another(&self) -> Self {
        Self { zero: self.zero, wrong_by_seconds: Arc::default() }
    }

    /// Sets it forward or back.
    pub(super) fn jump(&self, seconds: i64) {
        self.wrong_by_seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.zero.elapsed()).unwrap_or(SignedDuration::MAX);
        let wrong = SignedDuration::from_secs(self.wrong_by_seconds.load(Ordering::Relaxed));
        let beginning = Timestamp::from_second(BEGINNING_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH);
        beginning.checked_add(passed.saturating_add(wrong)).unwrap_or(Timestamp::MAX)
    }
}

impl mainstay::clock::Clock for WorldClock {
    fn now(&self) -> Timestamp {
        WorldClock::now(self)
    }
}

impl mainstay_apiserver::Clock for WorldClock {
    fn now(&self) -> Timestamp {
        WorldClock::now(self)
    }
}
