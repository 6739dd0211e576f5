//! When a probe's answers count. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;

/// How often a probe is tried, and how many answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// From the container's start to the first try.
    pub(crate) delay: Duration,
    /// Between tries.
    pub(crate) period: Duration,
    /// How long a try may take.
    pub(crate) timeout: Duration,
    successes: u32,
    failures: u32,
}

impl Schedule {
    /// The schedule of a probe, with Kubernetes' defaults.
    pub(crate) fn of(probe: &Probe) -> Self {
        let count = |given: Option<i32>, default: u32| {
            given.and_then(|given| u32::try_from(given).ok()).filter(|given| *given > 0).unwrap_or(default)
        };
        let seconds = |given: Option<i32>, default: u32| Duration::from_secs(count(given, default).into());
        Self {
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            timeout: seconds(probe.timeout_seconds, 1),
            successes: count(probe.success_threshold, 1),
            failures: count(probe.failure_threshold, 3),
        }
    }
}

/// Counts answers in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gauge {
    last: Option<bool>,
    run: u32,
}

impl Gauge {
    /// Takes in an answer. Says what holds now, if enough of its kind have come in a row.
    pub(crate) fn take(&mut self, success: bool, schedule: &Schedule) -> Option<bool> {
        if self.last == Some(success) {
            self.run = self.run.saturating_add(1);
        } else {
            (self.last, self.run) = (Some(success), 1);
        }
        let enough = if success { schedule.successes } else { schedule.failures };
        (self.run >= enough).then_some(success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(successes: i32, failures: i32) -> Schedule {
        let probe = Probe {
            success_threshold: Some(successes),
            failure_threshold: Some(failures),
            ..Probe::default()
        };
        Schedule::of(&probe)
    }

    fn verdicts(schedule: &Schedule, answers: &str) -> String {
        let mut gauge = Gauge::default();
        let verdict = |answer| match gauge.take(answer == '+', schedule) {
            Some(true) => '+',
            Some(false) => '-',
            None => '.',
        };
        answers.chars().map(verdict).collect()
    }

    #[test]
    fn answers_count_when_enough_come_in_a_row() {
        assert_eq!(verdicts(&schedule(1, 3), "--+--+---+"), "..+..+..-+");
        assert_eq!(verdicts(&schedule(2, 1), "+-++-"), ".-.+-");
    }

    #[test]
    fn defaults_are_those_of_kubernetes() {
        let of = Schedule::of(&Probe::default());
        let seconds = |seconds| Duration::from_secs(seconds);
        assert_eq!((of.delay, of.period, of.timeout), (seconds(0), seconds(10), seconds(1)));
        assert_eq!((of.successes, of.failures), (1, 3));
    }

    fn threshold() -> impl Strategy<Value = i32> {
        prop_oneof![1..4, Just(0), Just(-1), Just(i32::MIN), Just(i32::MAX)]
    }

    proptest! {
        #[test]
        fn times_of_any_size_are_lengths(given: Option<i32>, last in threshold()) {
            for seconds in [given, Some(last)] {
                let probe = Probe {
                    initial_delay_seconds: seconds,
                    period_seconds: seconds,
                    timeout_seconds: seconds,
                    ..Probe::default()
                };
                let of = Schedule::of(&probe);
                prop_assert!(of.period >= Duration::from_secs(1) && of.timeout >= Duration::from_secs(1));
            }
        }

        #[test]
        fn verdict_is_what_the_last_answers_all_say(answers in "[+-]{1,30}", successes in threshold(), failures in threshold()) {
            let shown = verdicts(&schedule(successes, failures), &answers);
            for (end, verdict) in shown.chars().enumerate() {
                let last = answers.as_bytes()[end];
                let (given, default) = if last == b'+' { (successes, 1) } else { (failures, 3) };
                let enough = usize::try_from(given).ok().filter(|given| *given > 0).unwrap_or(default);
                let run = answers.as_bytes()[..=end].iter().rev().take_while(|answer| **answer == last).count();
                prop_assert_eq!(verdict, if run >= enough { char::from(last) } else { '.' });
            }
        }
    }
}
