//! How long a Job waits before it replaces a pod that failed: ten seconds, twice as long after each further failure, ten minutes at
//! most.
//!
//! All of it follows from the pods that are there, so a controller that was restarted waits as long as one that was not.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::controllers::pods;

const FIRST: Duration = Duration::from_secs(10);
const MAX: Duration = Duration::from_mins(10);

/// How long there is still to wait after the last of so many failures.
pub(super) fn still_to_wait(failures: i32, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let doubled = u32::try_from(failures).ok()?.checked_sub(1)?;
    let whole = 2_u32
        .checked_pow(doubled)
        .and_then(|times| FIRST.checked_mul(times))
        .map_or(MAX, |wait| wait.min(MAX));
    let left = SignedDuration::try_from(whole).ok()?.saturating_sub(now.duration_since(last));
    let left = Duration::try_from(left).ok()?;
    // A failure that lies far in the future was told by a clock that is wrong, or this one is. Nobody waits for that.
    (!left.is_zero() && left <= whole * 2).then_some(left)
}

/// When a pod that is over ended, as far as its status tells.
pub(super) fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref();
    let of_containers = || {
        let statuses = status?.container_statuses.as_deref().filter(|statuses| !statuses.is_empty())?;
        let ended: Option<Vec<Timestamp>> = statuses.iter().map(container_ended_at).collect();
        ended?.into_iter().max()
    };
    let unready = || {
        let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        Some(ready.last_transition_time.as_ref()?.0)
    };
    let deleted = || {
        let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        pod.metadata.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
    };
    let created = || Some(pod.metadata.creation_timestamp.as_ref()?.0);
    of_containers().or_else(unready).or_else(deleted).or_else(created)
}

fn container_ended_at(container: &ContainerStatus) -> Option<Timestamp> {
    Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let wait = |failures| still_to_wait(failures, now, now).map(|wait| wait.as_secs());
        assert_eq!(wait(0), None);
        assert_eq!([1, 2, 3, 6, 7, 1000].map(wait), [10, 20, 40, 320, 600, 600].map(Some));
    }

    #[test]
    fn the_time_since_the_failure_is_taken_off_and_a_wrong_clock_is_not_waited_for() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let wait =
            |ago| still_to_wait(1, now - SignedDuration::from_secs(ago), now).map(|wait| wait.as_secs());
        assert_eq!([4, 10, 11, -5, -3600].map(wait), [Some(6), None, None, Some(15), None]);
    }
}
