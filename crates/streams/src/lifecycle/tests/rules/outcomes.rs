//! What becomes of a run that ends.

use expect_test::expect;

use super::{check, running, started};
use crate::kinds::{Outcome, Phase};
use crate::lifecycle::JobState;
use crate::lifecycle::tests::world::{FATAL, PLEASE_BACKFILL, RETRYABLE, World, Write, seconds};

#[test]
fn a_completed_run_is_recorded_and_followed_by_another_after_the_least_interval() {
    let mut world = running();
    world.complete();
    check(
        &world,
        expect![[r#"
        Pending OutcomeRecorded: Job s-1 completed
        nothing, status first, lets go s-1, again in 0s
        - StreamRestarting: Job s-1 completed
    "#]],
    );
    world.step();
    world.collect().unwrap();
    check(
        &world,
        expect![[r#"
            Pending BackingOff: The next attempt is at 1970-01-12T13:46:50Z
            nothing, again in 10s
        "#]],
    );
    world.settle();
    assert_eq!((world.status.restarts, world.jobs[0].name.as_str()), (1, "s-2"));
}

#[test]
fn without_a_budget_the_first_failure_is_a_crash_loop() {
    let mut world = running();
    world.fail(1);
    check(
        &world,
        expect![[r#"
        CrashLoopDetected OutcomeRecorded: Job s-1 failed: BackoffLimitExceeded, exit code 1; no more is started until its spec changes, a restart is asked for, or it is suspended and resumed
        nothing, status first, lets go s-1, again in 0s
        ! StreamingJobFailed: Job s-1 failed: BackoffLimitExceeded, exit code 1
        ! CrashLoopDetected: Job s-1 failed: BackoffLimitExceeded, exit code 1; no more is started until its spec changes, a restart is asked for, or it is suspended and resumed
    "#]],
    );
    world.settle();
    check(
        &world,
        expect![[r#"
        CrashLoopDetected CrashLoop: Job s-1 failed (BackoffLimitExceeded, exit code 1). No more is started until its spec changes, a restart is asked for, or it is suspended and resumed
        nothing
    "#]],
    );
    assert!(world.jobs.is_empty());
}

#[test]
fn a_crash_loop_ends_by_a_change_a_restart_a_reload_a_request_or_a_suspension() {
    let mends: [fn(&mut World); 6] = [
        |world| world.user.spec = 1,
        |world| world.user.template = 1,
        |world| world.user.restart = 1,
        |world| world.user.reload = 1,
        |world| world.request("r", 0),
        |world| {
            world.user.is_suspended = true;
            world.settle();
            world.user.is_suspended = false;
        },
    ];
    for mend in mends {
        let mut world = running();
        world.fail(1);
        assert_eq!(world.settle().phase(), Phase::CrashLoopDetected);
        mend(&mut world);
        world.settle();
        assert_eq!((world.jobs.len(), world.status.crashed.is_none(), world.status.failures), (1, true, 0));
    }
}

#[test]
fn a_budget_is_used_up_with_waits_that_double() {
    let mut world = started(World::default().class(|class| class.restart.budget = 3));
    let mut waits = Vec::new();
    for _ in 0..4 {
        world.fail(1);
        world.step();
        waits.push(world.status.next_attempt.map(|at| at.duration_since(world.now).as_secs()));
        world.settle();
    }
    assert_eq!(waits, [Some(10), Some(20), Some(40), None]);
    assert_eq!(world.status.phase, Some(Phase::CrashLoopDetected));
}

#[test]
fn a_run_that_was_healthy_for_long_is_the_first_failure_again() {
    let mut world = started(World::default().class(|class| class.restart.budget = 1));
    for _ in 0..3 {
        world.now += seconds(601);
        world.fail(1);
        world.settle();
        assert_eq!((world.status.failures, world.jobs.len()), (1, 1));
    }
}

#[test]
fn exit_codes_say_what_follows() {
    let mut world = running();
    for _ in 0..5 {
        world.fail(RETRYABLE);
        world.settle();
    }
    assert_eq!((world.status.failures, world.status.phase), (0, Some(Phase::Running)));
    world.fail(PLEASE_BACKFILL);
    world.settle();
    assert_eq!((world.jobs[0].name.as_str(), world.status.backfill_asked), ("b-7", true));
    world.complete();
    world.settle();
    assert_eq!((world.jobs[0].name.as_str(), world.status.backfill_asked), ("s-8", false));
    let mut world = started(World::default().class(|class| class.restart.budget = 9));
    world.fail(FATAL);
    assert_eq!(world.settle().phase(), Phase::CrashLoopDetected);
}

#[test]
fn a_run_that_somebody_deleted_is_told_of_and_replaced() {
    let mut world = running();
    world.delete("s-1");
    check(
        &world,
        expect![[r#"
        Pending StopRecorded: Run 1 was stopped: Deleted
        nothing, status first, lets go s-1, again in 0s
        - StreamRestarting: Stream s-1 was stopped: Deleted
    "#]],
    );
    world.step();
    check(
        &world,
        expect![[r#"
        Pending Ending: It is waited for that the last run is gone with its pods
        nothing
    "#]],
    );
    world.settle();
    assert_eq!(world.jobs[0].name, "s-2");
    let past = &world.status.history[0];
    assert_eq!((past.outcome, past.reason.as_str()), (Outcome::Stopped, "Deleted"));
}

#[test]
fn a_job_that_failed_while_it_was_deleted_has_failed() {
    let mut world = running();
    world.fail(1);
    world.delete("s-1");
    world.step();
    assert_eq!(world.status.history[0].outcome, Outcome::Failed);
    assert!(!world.jobs[0].is_held);
}

#[test]
fn an_outcome_is_counted_once_even_if_the_operator_dies_after_writing_it() {
    let mut world = started(World::default().class(|class| class.restart.budget = 3));
    world.fail(1);
    let decision = world.decide();
    world.carry_out(&decision, &Write::Status).unwrap();
    check(
        &world,
        expect![[r#"
        Pending Ending: It is waited for that the last run is gone with its pods
        nothing, lets go s-1
    "#]],
    );
    world.settle();
    assert_eq!((world.status.failures, world.status.history.len()), (1, 1));
}

#[test]
fn a_slot_that_failed_is_told_of_and_the_schedule_goes_on_within_its_budget() {
    let mut world = scheduled(5);
    let (at, reason) = (world.now, "BackoffLimitExceeded".to_owned());
    let state = JobState::Failed { at, exit_code: None, reason, is_disrupted: false };
    let slots = (1..=3).map(|slot| (format!("c-1-{slot}"), at, state.clone()));
    world.schedule.as_mut().unwrap().ended = slots.collect();
    check(
        &world,
        expect![[r#"
        Scheduled SlotRecorded: Job c-1-3 failed: BackoffLimitExceeded
        c-1 as it is, status first, lets go c-1-1 c-1-2 c-1-3, again in 0s
        ! ScheduleFailed: Job c-1-1 failed: BackoffLimitExceeded
        ! ScheduleFailed: Job c-1-2 failed: BackoffLimitExceeded
        ! ScheduleFailed: Job c-1-3 failed: BackoffLimitExceeded
    "#]],
    );
    world.settle();
    assert_eq!(world.status.history.iter().map(|past| &past.job).collect::<Vec<_>>(), ["c-1-3", "c-1-2"]);
    check(
        &world,
        expect![[r#"
        Scheduled Scheduled: CronJob c-1 runs
        c-1 attempt 0, lets go c-1-1 c-1-2 c-1-3
    "#]],
    );
}

/// A stream with a schedule, whose class has this budget.
fn scheduled(budget: u32) -> World {
    let mut world = World::default().class(|class| class.restart.budget = budget);
    world.user.is_scheduled = true;
    started(world)
}

/// A Job of the schedule ends.
fn end_slot(world: &mut World, exit_code: Option<i32>) {
    world.now += seconds(60);
    let (at, reason) = (world.now, "BackoffLimitExceeded".to_owned());
    let state = match exit_code {
        Some(0) => JobState::Completed { at },
        exit_code => JobState::Failed { at, exit_code, reason, is_disrupted: false },
    };
    let name = format!("slot-{}", at.as_second());
    world.schedule.as_mut().unwrap().ended.push((name, at, state));
    world.settle();
}

#[test]
fn a_schedule_that_fails_every_time_is_a_crash_loop_when_its_budget_is_used_up() {
    let mut world = scheduled(2);
    end_slot(&mut world, Some(1));
    end_slot(&mut world, Some(1));
    assert_eq!((world.status.failures, world.status.phase), (2, Some(Phase::Scheduled)));
    end_slot(&mut world, Some(0));
    assert_eq!(world.status.failures, 0, "a success begins anew");
    for _ in 0..3 {
        assert!(world.schedule.is_some());
        end_slot(&mut world, Some(1));
    }
    assert_eq!((world.status.phase, world.schedule.is_none()), (Some(Phase::CrashLoopDetected), true));
    world.user.restart = 1;
    world.settle();
    assert_eq!((world.status.phase, world.status.failures), (Some(Phase::Scheduled), 0));
}

#[test]
fn exit_codes_of_scheduled_jobs_mean_what_the_class_says() {
    let mut world = scheduled(0);
    for _ in 0..3 {
        end_slot(&mut world, Some(RETRYABLE));
    }
    assert_eq!((world.status.failures, world.status.phase), (0, Some(Phase::Scheduled)));
    end_slot(&mut world, Some(PLEASE_BACKFILL));
    assert!(world.jobs[0].name.starts_with('b'));
    let mut world = scheduled(9);
    end_slot(&mut world, Some(FATAL));
    assert_eq!(world.status.phase, Some(Phase::CrashLoopDetected));
}

#[test]
fn a_run_that_is_disrupted_is_followed_by_another_without_being_counted() {
    let mut world = running();
    for _ in 0..3 {
        world.disrupt();
        world.settle();
    }
    assert_eq!((world.status.failures, world.status.phase), (0, Some(Phase::Running)));
    assert_eq!(world.status.history[0].reason, "Disrupted");
    world.request("r", 0);
    world.settle();
    world.disrupt();
    world.settle();
    assert_eq!((world.jobs[0].name.as_str(), world.status.backfills.len()), ("b-6", 0));
}

#[test]
fn a_crash_loop_has_no_job_even_if_what_is_written_cannot_be_run() {
    let mut world = running();
    world.fail(FATAL);
    world.settle();
    world.user.reload = 1;
    world.step();
    // The user takes it back before the status says that the loop is over, and writes nonsense.
    world.user.reload = 0;
    world.user.is_backfill_broken = true;
    assert_eq!(world.settle().phase(), Phase::CrashLoopDetected);
    assert!(world.jobs.is_empty());
}
