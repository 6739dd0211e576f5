//! Sums of times. Times in a status and durations that a pod reports come from outside, so none of them may overflow.

use std::time::Duration;

use jiff::Timestamp;

/// The time so long after another, or the last that there is.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The time so long before another, or the first that there is.
pub(crate) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sum_is_beyond_the_ends_of_time() {
        for time in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            for by in [
                Duration::ZERO,
                Duration::from_millis(u64::MAX),
                Duration::from_secs(u64::MAX),
                Duration::MAX,
            ] {
                assert!(later(time, by) >= time && earlier(time, by) <= time, "{time} {by:?}");
            }
        }
    }
}
