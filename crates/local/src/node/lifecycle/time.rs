//! How long it is until something is due.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How long it is until a time; `None` if it is there.
pub(in super::super) fn left(due: Timestamp, now: Timestamp) -> Option<Duration> {
    let left = Duration::try_from(due.duration_since(now)).ok()?;
    (!left.is_zero()).then_some(left)
}

/// The time that lies `after` a recorded one. One that is recorded and has yet to come is from before the clock was set back: nobody
/// knows how long ago it was, so what was to follow it follows now.
pub(in super::super) fn after(recorded: Timestamp, after: Duration, now: Timestamp) -> Timestamp {
    if recorded > now {
        return now;
    }
    SignedDuration::try_from(after)
        .ok()
        .and_then(|after| recorded.checked_add(after).ok())
        .unwrap_or(Timestamp::MAX)
}
