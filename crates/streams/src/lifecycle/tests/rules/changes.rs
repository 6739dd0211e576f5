//! What the user changes, and what starts wait for.

use expect_test::expect;

use super::{check, running};
use crate::kinds::Phase;
use crate::lifecycle::tests::world::{User, World};
use crate::lifecycle::{Health, JobState, LiveJob, RULES};

#[test]
fn suspended_means_no_job() {
    let mut world = running();
    world.user.is_suspended = true;
    check(
        &world,
        expect![[r#"
        Suspended Suspended: Suspended by its spec
        nothing
    "#]],
    );
    world.step();
    check(
        &world,
        expect![[r#"
            Suspended StopRecorded: Suspended by its spec
            nothing, status first, lets go s-1, again in 0s
            - StreamSuspended: Suspended by its spec
        "#]],
    );
    world.settle();
    assert!(world.jobs.is_empty());
    assert_eq!(world.status.history[0].reason, "Suspended");
    world.user.is_suspended = false;
    world.step();
    check(
        &world,
        expect![[r#"
        Running Running: Job s-2 runs
        s-2 attempt 0
        - StreamResumed: The stream is not suspended any more
        - StreamStarted: Stream s-2 was started
    "#]],
    );
}

#[test]
fn what_cannot_be_read_leaves_the_old_job_alone() {
    let mut world = running();
    world.user.is_broken = true;
    check(
        &world,
        expect![[r#"
            Running ProblemWhileRunning: It runs on as it was before this: spec.jobTemplateRef: is a number
            s-1 as it is
        "#]],
    );
    let mut world = World::default();
    world.user.is_broken = true;
    check(
        &world,
        expect![[r#"
        Failed CannotRun: spec.jobTemplateRef: is a number
        nothing
        ! Broken: spec.jobTemplateRef: is a number
    "#]],
    );
    world.settle();
    world.user.is_broken = false;
    assert_eq!(world.settle().phase(), Phase::Running);
}

#[test]
fn of_several_jobs_the_newest_stays_and_one_that_nobody_knows_goes() {
    let mut world = running();
    let mut other = world.jobs[0].clone();
    other.name = "s-7".to_owned();
    other.run.iter_mut().for_each(|run| (run.number, run.job) = (7, "s-7".to_owned()));
    world.jobs.push(other);
    let (state, is_deleting, is_held) = (JobState::Running, false, false);
    world.jobs.push(LiveJob {
        name: "x".to_owned(),
        run: None,
        state,
        is_deleting,
        is_held,
        health: Health::Ready,
    });
    check(
        &world,
        expect![[r#"
        Running TooMany: There are several Jobs at once, of which one may stay: s-1, s-7, x
        s-7 as it is
    "#]],
    );
    world.jobs.drain(..2);
    world.status.run = None;
    check(
        &world,
        expect![[r#"
        Pending UnknownJob: A Job is there of which nobody can tell what it was made as: it is stopped
        nothing
    "#]],
    );
}

#[test]
fn another_mode_stops_the_run() {
    let mut world = running();
    world.user.is_scheduled = true;
    check(
        &world,
        expect![[r#"
        Pending ModeSwitched: The stream runs in another way now: the old run is stopped
        nothing
    "#]],
    );
    world.settle();
    check(
        &world,
        expect![[r#"
        Scheduled Scheduled: CronJob c-2 runs
        c-2 attempt 0
    "#]],
    );
    world.user.is_scheduled = false;
    world.settle();
    assert_eq!((world.schedule.is_none(), world.jobs[0].name.as_str()), (true, "s-3"));
}

#[test]
fn a_changed_spec_or_restart_value_stops_the_run_at_once() {
    let mut world = running();
    world.may_roll_out = false;
    world.user.spec = 1;
    check(
        &world,
        expect![[r#"
        Pending SpecChanged: The stream's spec has changed: the run is stopped
        nothing
    "#]],
    );
    world.user.restart = 1;
    check(
        &world,
        expect![[r#"
        Pending RestartRequested: A restart is asked for: the run is stopped
        nothing
    "#]],
    );
    world.settle();
    assert_eq!(world.status.history[0].reason, "RestartRequested");
}

#[test]
fn a_changed_template_waits_for_its_turn() {
    let mut world = running();
    world.may_roll_out = false;
    world.user.template = 1;
    check(
        &world,
        expect![[r#"
        Running RolloutWaits: A template or a Secret has changed: it waits for its turn to be restarted, and runs on meanwhile
        s-1 as it is, again in 7s
    "#]],
    );
    world.may_roll_out = true;
    check(
        &world,
        expect![[r#"
            Pending RolledOut: A template or a Secret has changed: the run is stopped
            nothing, status first
        "#]],
    );
}

#[test]
fn what_a_job_has_left_behind_is_ended_even_if_nothing_shall_run() {
    let user = User { is_suspended: true, ..World::default().user };
    let world = World { has_pods: true, user, ..World::default() };
    let decision = world.decide();
    assert_eq!((decision.rule, decision.left_behind), ("Suspended", vec!["old-pod".to_owned()]));
    let mut world = World { has_pods: true, ..World::default() };
    check(
        &world,
        expect![[r#"
        Pending PodsLinger: Pods of a former run have not ended: old-pod; deleted, as their Job is gone: old-pod
        nothing
    "#]],
    );
    assert_eq!(world.settle().phase(), Phase::Running);
}

#[test]
fn a_start_waits_for_old_pods_and_for_its_turn() {
    let mut world = World { has_pods: true, pods_end: true, may_start: false, ..World::default() };
    check(
        &world,
        expect![[r#"
        Pending PodsLinger: Pods of a former run have not ended: old-pod
        nothing
    "#]],
    );
    world.has_pods = false;
    check(
        &world,
        expect![[r#"
        Pending StartsLimited: Its class starts no more Jobs for now: it waits for its turn
        nothing, again in 5s
    "#]],
    );
    world.may_start = true;
    check(
        &world,
        expect![[r#"
        Pending StreamStarts: Stream s-1 is started
        s-1 attempt 0
    "#]],
    );
}

#[test]
fn a_job_that_is_there_before_the_status_knows_is_taken_in() {
    let mut world = World::default();
    world.step();
    assert!(world.status.run.is_none());
    check(
        &world,
        expect![[r#"
        Running Running: Job s-1 runs
        s-1 attempt 0
        - StreamStarted: Stream s-1 was started
    "#]],
    );
    world.step();
    assert_eq!((world.status.runs_started, world.status.configuration_hash.as_deref()), (1, Some("0-s0")));
    check(
        &world,
        expect![[r#"
        Running Running: Job s-1 runs
        s-1 attempt 0
    "#]],
    );
}

#[test]
fn rules_have_names_of_their_own_and_the_last_one_always_fits() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}
