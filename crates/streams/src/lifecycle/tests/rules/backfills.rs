//! Backfills: who asks for them, in what order they run, and what becomes of requests.

use expect_test::expect;

use super::{check, running, started};
use crate::kinds::{BackfillPhase, Phase};
use crate::lifecycle::tests::world::{PLEASE_BACKFILL, World, seconds};
use crate::wish::Problem;

#[test]
fn a_stream_is_not_stopped_for_a_backfill_that_cannot_be_made() {
    let mut world = running();
    world.user.is_backfill_broken = true;
    world.request("r", 0);
    check(
        &world,
        expect![[r#"
            Running ProblemWhileRunning: It runs on as it was before this: spec.jobTemplateRef: is a number
            s-1 as it is
        "#]],
    );
}

#[test]
fn a_request_that_no_job_can_be_made_for_has_failed_and_stops_nothing() {
    let mut world = running();
    world.request("r", 0);
    let (path, message) = ("spec.payload".to_owned(), "is too long".to_owned());
    world.requests[0].problem = Some(Problem { reason: "PayloadTooLarge", path, message });
    world.request("s", 0);
    check(
        &world,
        expect![[r#"
        Pending BackfillRequested: A backfill is asked for: the stream is stopped for it
        nothing
    "#]],
    );
    world.requests.truncate(1);
    check(
        &world,
        expect![[r#"
        Running Running: Job s-1 runs
        s-1 attempt 0
    "#]],
    );
    world.step();
    let over = &world.status.backfills[0];
    assert_eq!((over.phase, over.reason.as_deref()), (BackfillPhase::Failed, Some("PayloadTooLarge")));
    assert_eq!(over.message, "spec.payload: is too long");
    world.settle();
    assert_eq!((world.jobs[0].name.as_str(), world.status.backfills.len()), ("s-1", 0));
}

#[test]
fn a_backfill_that_runs_is_not_stopped_by_what_would_keep_it_from_being_made() {
    let mut world = running();
    world.request("r", 0);
    world.settle();
    let (path, message) = ("spec.payload".to_owned(), "is too long".to_owned());
    world.requests[0].problem = Some(Problem { reason: "JobTooLarge", path, message });
    world.settle();
    assert_eq!((world.jobs[0].name.as_str(), world.status.backfills.len()), ("b-2", 0));
}

#[test]
fn a_request_stops_the_stream_and_is_settled_when_its_backfill_is_done() {
    let mut world = running();
    world.request("r", 0);
    check(
        &world,
        expect![[r#"
        Pending BackfillRequested: A backfill is asked for: the stream is stopped for it
        nothing
    "#]],
    );
    world.step();
    world.step();
    world.collect().unwrap();
    check(
        &world,
        expect![[r#"
        Pending BackfillStarts: Backfill b-2 is started
        b-2 attempt 1
    "#]],
    );
    world.step();
    check(
        &world,
        expect![[r#"
        Backfilling Backfilling: Backfill b-2 runs
        b-2 attempt 1
        - BackfillStarted: Backfill b-2 was started
    "#]],
    );
    world.settle();
    world.complete();
    world.step();
    assert_eq!(world.status.backfills[0].phase, BackfillPhase::Completed);
    world.settle();
    assert!(world.status.backfills.is_empty() && world.status.begun.is_none());
    assert_eq!(world.status.phase, Some(Phase::Running));
}

#[test]
fn a_request_is_tried_again_as_often_as_it_says_then_has_failed() {
    let mut world = running();
    world.request("a", 1);
    world.request("b", 0);
    world.settle();
    world.fail(1);
    world.step();
    world.collect().unwrap();
    world.now += seconds(11);
    check(
        &world,
        expect![[r#"
        Pending BackfillStarts: Backfill b-3 is started
        b-3 attempt 2
    "#]],
    );
    world.settle();
    world.fail(1);
    world.step();
    let outcome = &world.status.backfills[0];
    assert_eq!((outcome.request.as_str(), outcome.phase, outcome.attempts), ("a", BackfillPhase::Failed, 2));
    world.settle();
    assert_eq!(world.status.run.as_ref().unwrap().purpose.request(), Some("b"));
    world.fail(1);
    assert_eq!(world.settle().phase(), Phase::CrashLoopDetected);
}

#[test]
fn a_cancelled_backfill_is_stopped_and_a_cancelled_request_in_the_queue_is_settled() {
    let mut world = running();
    world.request("a", 0);
    world.request("b", 0);
    world.settle();
    world.requests.iter_mut().for_each(|request| request.is_cancelled = true);
    check(
        &world,
        expect![[r#"
        Pending BackfillCancelled: The backfill is not wanted any more: it is stopped
        nothing, status first
    "#]],
    );
    world.step();
    let phases: Vec<_> = world.status.backfills.iter().map(|over| (over.phase, over.attempts)).collect();
    assert_eq!(phases, [(BackfillPhase::Cancelled, 1), (BackfillPhase::Cancelled, 0)]);
    assert_eq!(world.settle().phase(), Phase::Running);
    assert_eq!(world.status.history[0].reason, "BackfillCancelled");
}

#[test]
fn a_suspended_backfill_keeps_its_request_open_and_goes_on_with_it() {
    let mut world = running();
    world.request("a", 0);
    world.settle();
    world.user.is_suspended = true;
    world.settle();
    assert!(world.status.backfills.is_empty());
    world.user.is_suspended = false;
    world.settle();
    let run = world.status.run.as_ref().unwrap();
    assert_eq!((run.purpose.request(), run.attempt), (Some("a"), 2));
}

#[test]
fn a_new_stream_is_backfilled_once_and_its_first_reload_value_asks_for_nothing() {
    let mut world = World::default();
    world.user.has_backfill_template = true;
    world.user.reload = 1;
    check(
        &world,
        expect![[r#"
        Pending BackfillStarts: Backfill b-1 is started
        b-1 attempt 1
    "#]],
    );
    world.settle();
    world.complete();
    check(
        &world,
        expect![[r#"
        Pending OutcomeRecorded: Job b-1 completed
        nothing, status first, lets go b-1, again in 0s
        - BackfillCompleted: Job b-1 completed
    "#]],
    );
    world.settle();
    assert_eq!(world.jobs[0].name, "s-2");
    world.user.reload = 2;
    world.settle();
    assert_eq!(world.jobs[0].name, "b-3");
    world.complete();
    world.settle();
    assert_eq!((world.jobs[0].name.as_str(), world.status.reloaded.as_deref()), ("s-4", Some("2")));
}

#[test]
fn a_stream_that_runs_already_needs_no_first_backfill() {
    let mut world = running();
    world.user.has_backfill_template = true;
    assert_eq!(world.decide().rule, "Running");
}

#[test]
fn a_reload_that_crashes_does_not_mend_itself() {
    let mut world = running();
    world.user.reload = 1;
    world.settle();
    world.fail(1);
    assert_eq!(world.settle().phase(), Phase::CrashLoopDetected);
    world.user.spec = 1;
    world.settle();
    assert!(world.status.run.as_ref().unwrap().purpose.is_backfill());
}

#[test]
fn a_backfill_that_asks_for_a_backfill_has_failed_as_with_any_other_code() {
    let of_request: fn(&mut World) = |world| world.request("r", 1);
    let of_reload: fn(&mut World) = |world| world.user.reload = 1;
    for ask in [of_request, of_reload] {
        let told = [1, PLEASE_BACKFILL].map(|code| {
            let mut world = started(World::default().class(|class| class.restart.budget = 1));
            ask(&mut world);
            let mut phases = Vec::new();
            for _ in 0..2 {
                world.settle();
                world.fail(code);
                world.step();
                phases.push((world.status.phase, world.status.backfill_asked, world.status.next_attempt));
            }
            (phases, world.settle().phase(), world.status.runs_started)
        });
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0].1, Phase::CrashLoopDetected);
    }
}

#[test]
fn what_a_program_asked_for_is_still_to_be_done_after_its_backfill_asked_again() {
    let mut world = running();
    world.fail(PLEASE_BACKFILL);
    world.settle();
    assert!(world.status.run.as_ref().unwrap().purpose.is_backfill());
    world.fail(PLEASE_BACKFILL);
    check(
        &world,
        expect![[r#"
        CrashLoopDetected OutcomeRecorded: Job b-2 failed: BackoffLimitExceeded, exit code 5; no more is started until its spec changes, a restart is asked for, or it is suspended and resumed
        nothing, status first, lets go b-2, again in 0s
        ! BackfillFailed: Job b-2 failed: BackoffLimitExceeded, exit code 5
        ! CrashLoopDetected: Job b-2 failed: BackoffLimitExceeded, exit code 5; no more is started until its spec changes, a restart is asked for, or it is suspended and resumed
    "#]],
    );
    assert_eq!(world.settle().phase(), Phase::CrashLoopDetected);
    world.user.spec = 1;
    world.settle();
    assert!(world.status.run.as_ref().unwrap().purpose.is_backfill());
    world.complete();
    world.settle();
    assert!(!world.status.run.as_ref().unwrap().purpose.is_backfill());
}
