//! A point in time by both clocks of this machine.
//!
//! The monotonic clock measures leases. It may stand still while the machine sleeps, which the wall clock does not,
//! so a deadline has passed as soon as either says so. A wall clock that is set forward therefore closes the fence
//! until the next renewal; one that is set back, or is wrong by hours, does nothing.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::clock::{Clock, later};

/// Now, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) wall: Timestamp,
}

impl Moment {
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self { at: Instant::now(), wall: clock.now() }
    }

    pub(super) fn plus(self, duration: Duration) -> Self {
        // Past the end of time there is no later deadline.
        Self { at: later(self.at, duration), wall: self.wall.checked_add(duration).unwrap_or(Timestamp::MAX) }
    }

    /// Whether this deadline has passed.
    pub(super) fn passed(self, now: Moment) -> bool {
        now.at >= self.at || now.wall >= self.wall
    }
}
