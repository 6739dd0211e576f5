//! `CronJobs` over a few of their times.
//!
//! A world begins at midnight and comes to rest when nothing has changed for two minutes. So times are ten minutes apart, and each wait
//! ends in between.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Script, State, check, pods};
use serde_json::{Value, json};

use super::job::job;

use crate::simulation::controllers_of;

/// From one time to the next, as near as it goes with a user who sees to it that all has come to rest.
const TURN: Duration = Duration::from_mins(7);

/// A clock that is wrong by an hour is wrong about every time there is.
fn cron_jobs(script: Script) -> Check {
    let pod = Kind::of::<Pod>();
    check(controllers_of(&["CronJob", "Job", "Pod"]))
        .beside(pods())
        .script(script)
        .ignoring_in(&pod, "/status/podIP")
        .ignoring_in(&pod, "/status/podIPs/*/ip")
        .but(Family::ClockJumps)
}

fn disturbed(check: Check) -> Check {
    check.every_crash_point().seeds(5)
}

fn kind() -> Kind {
    Kind::of::<CronJob>()
}

/// At every tenth minute.
fn cron(image: &str, spec: Value) -> Value {
    let template = job("", image, json!({}));
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": template["spec"]}},
    });
    let Value::Object(fields) = spec else { panic!("no object") };
    cron["spec"].as_object_mut().unwrap().extend(fields);
    cron
}

/// At most so many Jobs at once.
fn at_most(jobs: usize) -> impl Fn(&State) -> Result<(), String> {
    move |state: &State| match state.of(&Kind::of::<Job>()).count() {
        count if count > jobs => Err(format!("{count} Jobs")),
        _ => Ok(()),
    }
}

#[test]
fn each_time_has_its_job_and_the_last_ones_are_kept() {
    let script = Script::new()
        .create(cron("work", json!({"successfulJobsHistoryLimit": 2})))
        .wait(TURN)
        .wait(TURN)
        .wait(TURN)
        .patch(&kind(), "tick", json!({"spec": {"suspend": true}}));
    disturbed(cron_jobs(script).always("old Jobs go", at_most(3))).run();
}

#[test]
fn a_job_that_runs_keeps_the_next_from_being_started() {
    let script = Script::new().create(cron("broken", json!({"concurrencyPolicy": "Forbid"}))).wait(TURN * 3);
    disturbed(cron_jobs(script).always("one at a time", at_most(1))).every_second_leader().run();
}

#[test]
fn a_job_that_runs_is_replaced_by_the_next() {
    let script = Script::new().create(cron("broken", json!({"concurrencyPolicy": "Replace"}))).wait(TURN * 3);
    disturbed(cron_jobs(script).always("one at a time", at_most(1))).run();
}

#[test]
fn failed_jobs_are_kept_by_their_own_limit() {
    let mut cron = cron("failing", json!({"failedJobsHistoryLimit": 1}));
    cron["spec"]["jobTemplate"]["spec"]["backoffLimit"] = json!(0);
    let script = Script::new().create(cron).wait(TURN * 3);
    cron_jobs(script).every_crash_point().run();
}

#[test]
fn times_that_pass_while_it_is_suspended_are_made_up_for_if_they_are_not_too_long_ago() {
    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    let script = |spec: Value| {
        Script::new()
            .create(cron("work", spec))
            .wait(TURN)
            .patch(&kind(), "tick", suspend(true))
            .wait(TURN)
            .patch(&kind(), "tick", suspend(false))
    };
    let late = cron_jobs(script(json!({"startingDeadlineSeconds": 60})));
    late.always("the second is too late", at_most(1)).every_crash_point().run();
    let report = cron_jobs(script(json!({}))).always("the second is late", at_most(1)).report();
    assert!(report.to_string().contains("2 Jobs"), "{report}");
    cron_jobs(script(json!({}))).every_crash_point().run();
}

#[test]
fn one_that_is_made_anew_at_once_starts_anew() {
    let script = Script::new()
        .create(cron("work", json!({})))
        .wait(TURN)
        .delete(&kind(), "tick")
        .at_once()
        .create(cron("work", json!({})))
        .wait(TURN);
    disturbed(cron_jobs(script)).run();
}
