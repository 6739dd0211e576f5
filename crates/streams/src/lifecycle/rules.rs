//! The rules, in order: the first that fits decides. The documentation's table is made from them.

use super::facts::{Change, Facts};
use super::{Decision, acts};
use crate::kinds::{ActiveRun, Purpose};
use crate::wish::Mode;

/// A rule: when it fits, and what is done then.
pub struct Rule {
    /// One word in `CamelCase`: a condition's reason.
    pub name: &'static str,
    /// What is there, for people.
    pub from: &'static str,
    /// When it fits, for people.
    pub when: &'static str,
    /// What is done, for people.
    pub then: &'static str,
    /// The phase, for people.
    pub phase: &'static str,
    /// Whether it fits, if none before it does.
    pub holds: fn(&Facts<'_>) -> bool,
    /// What is done. The decision has the status with all in it that needs no rule, and nothing that shall be there.
    pub act: fn(&Facts<'_>, &mut Decision),
}

/// A run that goes on, and something about it.
fn runs(facts: &Facts<'_>, test: impl Fn(&ActiveRun) -> bool) -> bool {
    facts.run().is_some_and(test)
}

fn changed(facts: &Facts<'_>, change: Change) -> bool {
    runs(facts, |run| facts.change(run) == change)
}

/// All rules. The last one always fits.
pub static RULES: &[Rule] = &[
    Rule {
        name: "OutcomeRecorded",
        from: "a Job that has ended",
        when: "its outcome is not in the status",
        then: "the outcome is written to the status; then the Job is deleted",
        phase: "Pending, or CrashLoopDetected if that was the last failure allowed",
        holds: |facts| facts.ended().is_some(),
        act: acts::record_outcome,
    },
    Rule {
        name: "StopRecorded",
        from: "a run in the status",
        when: "its Job or CronJob is gone or is being deleted, without an outcome",
        then: "it is written to the status that it was stopped, and why",
        phase: "Pending, or Suspended",
        holds: |facts| facts.stopped().is_some(),
        act: acts::record_stop,
    },
    Rule {
        name: "SlotRecorded",
        from: "a CronJob",
        when: "a Job of it has ended, which the status does not say",
        then: "the outcome is written to the status, and a failure counted",
        phase: "as it was, or CrashLoopDetected if that was the last failure allowed",
        holds: |facts| !facts.slots().is_empty(),
        act: acts::record_slots,
    },
    Rule {
        name: "Suspended",
        from: "anything",
        when: "the stream is suspended",
        then: "stop; failures and a crash loop are forgotten",
        phase: "Suspended",
        holds: |facts| facts.is_suspended(),
        act: acts::suspend,
    },
    Rule {
        name: "TooMany",
        from: "two Jobs or more that run",
        when: "always",
        then: "all but the newest that is known are stopped",
        phase: "as it was",
        holds: |facts| facts.live.len() > 1,
        act: acts::keep_newest,
    },
    Rule {
        name: "UnknownJob",
        from: "a Job or CronJob that runs",
        when: "nobody can tell what it was made as",
        then: "stop",
        phase: "Pending",
        holds: |facts| facts.live.len() == 1 && facts.run().is_none(),
        act: |_, decision| {
            acts::stop(
                decision,
                "A Job is there of which nobody can tell what it was made as: it is stopped",
            );
        },
    },
    Rule {
        name: "BackfillCancelled",
        from: "a backfill that runs",
        when: "its request is cancelled or gone",
        then: "the request's end is written to the status; then stop",
        phase: "Pending",
        holds: |facts| runs(facts, |run| facts.is_cancelled(run)),
        act: |_, decision| {
            decision.status_first = true;
            acts::stop(decision, "The backfill is not wanted any more: it is stopped");
        },
    },
    Rule {
        name: "ProblemWhileRunning",
        from: "a Job or CronJob that runs",
        when: "what the user wrote cannot be run, and there is no crash loop",
        then: "it runs on as it is",
        phase: "that of the run",
        holds: |facts| facts.run().is_some() && facts.problem().is_some() && facts.status.crashed.is_none(),
        act: acts::run_on_despite_problem,
    },
    Rule {
        name: "CannotRun",
        from: "nothing that runs, or a crash loop",
        when: "what the user wrote cannot be run",
        then: "stop, until it is mended",
        phase: "Failed",
        holds: |facts| facts.problem().is_some(),
        act: acts::fail,
    },
    Rule {
        name: "CrashLoop",
        from: "anything",
        when: "the same configuration has crashed, and no backfill was asked for since",
        then: "stop",
        phase: "CrashLoopDetected",
        holds: |facts| facts.status.crashed.is_some(),
        act: acts::stay_crashed,
    },
    Rule {
        name: "Ending",
        from: "a Job or CronJob that is over or is being deleted",
        when: "nothing else is there",
        then: "it is deleted if it is not already, and waited for",
        phase: "Pending",
        holds: |facts| facts.is_ending(),
        act: |_, decision| acts::stop(decision, "It is waited for that the last run is gone with its pods"),
    },
    Rule {
        name: "ModeSwitched",
        from: "a Job or CronJob that runs",
        when: "the stream has a schedule now, or has none any more",
        then: "stop",
        phase: "Pending",
        holds: |facts| runs(facts, |run| facts.is_switched(run)),
        act: |_, decision| acts::stop(decision, "The stream runs in another way now: the old run is stopped"),
    },
    Rule {
        name: "RestartRequested",
        from: "a Job or CronJob that runs",
        when: "the restart annotation differs from the run's",
        then: "stop",
        phase: "Pending",
        holds: |facts| changed(facts, Change::Restart),
        act: |_, decision| acts::stop(decision, "A restart is asked for: the run is stopped"),
    },
    Rule {
        name: "BackfillRequested",
        from: "a Job or CronJob that runs, not a backfill",
        when: "a backfill is asked for by a request, an annotation or the program",
        then: "stop",
        phase: "Pending",
        holds: |facts| facts.wanted().is_some() && runs(facts, |run| !run.purpose.is_backfill()),
        act: |_, decision| acts::stop(decision, "A backfill is asked for: the stream is stopped for it"),
    },
    Rule {
        name: "SpecChanged",
        from: "a Job or CronJob that runs",
        when: "the stream's spec is not the run's",
        then: "stop",
        phase: "Pending",
        holds: |facts| changed(facts, Change::Spec),
        act: |_, decision| acts::stop(decision, "The stream's spec has changed: the run is stopped"),
    },
    Rule {
        name: "RolloutWaits",
        from: "a Job or CronJob that runs",
        when: "a template or a Secret has changed, and it is not the stream's turn",
        then: "it runs on as it is",
        phase: "that of the run",
        holds: |facts| changed(facts, Change::Surroundings) && facts.rollout() != super::Permit::Granted,
        act: acts::wait_for_rollout,
    },
    Rule {
        name: "RolledOut",
        from: "a Job or CronJob that runs",
        when: "a template or a Secret has changed, and it is the stream's turn",
        then: "that it takes part is written to the status; then stop",
        phase: "Pending",
        holds: |facts| changed(facts, Change::Surroundings),
        act: acts::roll_out,
    },
    Rule {
        name: "Backfilling",
        from: "a backfill that runs",
        when: "it is as it would be made now",
        then: "it stays; made anew if somebody changed it",
        phase: "Backfilling",
        holds: |facts| runs(facts, |run| run.purpose.is_backfill()),
        act: acts::run_on,
    },
    Rule {
        name: "Scheduled",
        from: "a CronJob",
        when: "it is as it would be made now",
        then: "it stays; made anew if somebody changed it",
        phase: "Scheduled",
        holds: |facts| runs(facts, |run| run.purpose == Purpose::Schedule),
        act: acts::run_on,
    },
    Rule {
        name: "Running",
        from: "a Job that runs",
        when: "it is as it would be made now",
        then: "it stays; made anew if somebody changed it",
        phase: "Running",
        holds: |facts| facts.run().is_some(),
        act: acts::run_on,
    },
    Rule {
        name: "PodsLinger",
        from: "nothing",
        when: "pods of a former run have not ended",
        then: "they are waited for; those that their Job has left behind are deleted",
        phase: "Pending",
        holds: |facts| !facts.lingering().is_empty(),
        act: acts::wait_for_pods,
    },
    Rule {
        name: "BackingOff",
        from: "nothing",
        when: "the time of the next attempt has not come",
        then: "it is waited for",
        phase: "Pending",
        holds: |facts| facts.pause().is_some(),
        act: acts::wait_for_attempt,
    },
    Rule {
        name: "StartsLimited",
        from: "nothing",
        when: "the class starts no more Jobs for now",
        then: "its turn is waited for",
        phase: "Pending",
        holds: |facts| facts.start() != super::Permit::Granted,
        act: acts::wait_for_start,
    },
    Rule {
        name: "BackfillStarts",
        from: "nothing",
        when: "a backfill is wanted: one that was begun, else the first request, else one of the stream's own",
        then: "its Job is created",
        phase: "Pending, then Backfilling",
        holds: |facts| facts.wanted().is_some(),
        act: acts::start_backfill,
    },
    Rule {
        name: "ScheduleStarts",
        from: "nothing",
        when: "the stream has a schedule",
        then: "its CronJob is created",
        phase: "Pending, then Scheduled",
        holds: |facts| facts.wish().is_some_and(|wish| wish.mode == Mode::Scheduled),
        act: |facts, decision| acts::start(facts, decision, Purpose::Schedule, 0),
    },
    Rule {
        name: "StreamStarts",
        from: "nothing",
        when: "otherwise",
        then: "its Job is created",
        phase: "Pending, then Running",
        holds: |_| true,
        act: |facts, decision| acts::start(facts, decision, Purpose::Stream, 0),
    },
];
