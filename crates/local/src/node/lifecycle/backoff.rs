//! How long a container that has ended waits before it runs again.
//!
//! The first restart comes at once, the next after 10 s, then twice as long each time up to five minutes. An attempt that ran for ten
//! minutes starts all over. How long it waited last is not recorded as such; it follows from when the attempts began and ended, or
//! from the message that people see while it waits.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::containers::End;
use super::time;

const STEPS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_secs(40),
    Duration::from_secs(80),
    Duration::from_secs(160),
    Duration::from_mins(5),
];
const RAN_WELL: Duration = Duration::from_mins(10);

pub(super) const REASON: &str = "CrashLoopBackOff";

/// How long it waits after this end.
pub(super) fn delay(end: &End, record: Option<&ContainerStatus>) -> Duration {
    let counted = (end.attempt as usize).min(STEPS.len() - 1);
    let waiting = record.and_then(|record| record.state.as_ref()?.waiting.as_ref());
    if let Some(waiting) = waiting {
        let told = waiting.message.as_deref().unwrap_or_default();
        let is_told = |step: &&Duration| told.starts_with(&beginning(**step));
        return STEPS.iter().find(is_told).copied().unwrap_or(STEPS[counted]);
    }
    let started = end.state.started_at.as_ref().map(|time| time.0);
    let (Some(started), Some(finished)) = (started, end.finished_at()) else { return Duration::ZERO };
    let ran = between(started, finished);
    if ran >= RAN_WELL {
        return Duration::ZERO;
    }
    let before = end.previous.as_ref().and_then(|end| end.finished_at.as_ref());
    let Some(before) = before else { return STEPS[counted] };
    let waited = between(before.0, started);
    let last = STEPS.iter().rposition(|step| *step <= waited).unwrap_or_default();
    // While the node was down nobody waited: no more than the number of restarts accounts for.
    STEPS[counted.min(last + 1)]
}

/// When the next attempt is due.
pub(super) fn due(end: &End, delay: Duration, now: Timestamp) -> Timestamp {
    end.finished_at().map_or(now, |finished| time::after(finished, delay, now))
}

/// What people see while it waits.
pub(super) fn message(pod: &Pod, container: &str, delay: Duration) -> String {
    format!("{} failed container={container} pod={}", beginning(delay), pod_name(pod))
}

/// A pod as a kubelet names it.
pub(super) fn pod_name(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}_{}({})", text(&metadata.name), text(&metadata.namespace), text(&metadata.uid))
}

fn beginning(delay: Duration) -> String {
    let (minutes, seconds) = (delay.as_secs() / 60, delay.as_secs() % 60);
    let length = if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{seconds}s") };
    format!("back-off {length} restarting")
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStateWaiting};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn state(from: i64, to: i64) -> ContainerStateTerminated {
        let (started_at, finished_at) = (Some(Time(at(from))), Some(Time(at(to))));
        ContainerStateTerminated { exit_code: 1, started_at, finished_at, ..Default::default() }
    }

    fn end(attempt: u32, previous: Option<(i64, i64)>, last: (i64, i64)) -> End {
        let previous = previous.map(|(from, to)| state(from, to));
        End { attempt, state: state(last.0, last.1), previous, recorded: true, by_node: false }
    }

    fn seconds(end: &End) -> u64 {
        delay(end, None).as_secs()
    }

    #[test]
    fn the_first_restart_comes_at_once_and_each_later_one_after_twice_the_time() {
        assert_eq!(seconds(&end(0, None, (0, 1))), 0);
        assert_eq!(seconds(&end(1, Some((0, 1)), (1, 2))), 10);
        assert_eq!(seconds(&end(2, Some((1, 2)), (12, 13))), 20);
        assert_eq!(seconds(&end(5, Some((1, 2)), (83, 84))), 160);
        assert_eq!(seconds(&end(6, Some((1, 2)), (163, 164))), 300);
        assert_eq!(seconds(&end(50, Some((1, 2)), (400, 401))), 300);
    }

    #[test]
    fn an_attempt_that_ran_for_ten_minutes_starts_all_over() {
        assert_eq!(seconds(&end(9, Some((0, 1)), (301, 901))), 0);
        assert_eq!(seconds(&end(10, Some((301, 901)), (901, 902))), 10);
    }

    #[test]
    fn time_in_which_the_node_was_down_does_not_count_as_waiting() {
        assert_eq!(seconds(&end(1, Some((0, 1)), (9_000, 9_001))), 10);
    }

    #[test]
    fn while_it_waits_the_message_tells_how_long() {
        let pod = Pod::default();
        for step in STEPS {
            let message = Some(message(&pod, "c", step));
            let waiting = Some(ContainerStateWaiting { message, reason: None });
            let state = Some(ContainerState { waiting, ..Default::default() });
            let record = ContainerStatus { state, ..Default::default() };
            assert_eq!(delay(&end(1, None, (0, 1)), Some(&record)), step);
        }
        assert_eq!(message(&pod, "c", STEPS[6]), "back-off 5m0s restarting failed container=c pod=_()");
    }
}
