//! `CronJobs` over a few hours: a world begins at midnight, and nobody waits for long in it.
//!
//! Schedules are sparse: between two times of theirs a world comes to rest.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Family, Script, State, check, pods};
use serde_json::{Value, json};

use super::job::job;

use crate::controllers_of;

const HOUR: Duration = Duration::from_hours(1);

/// A clock that is wrong by an hour is wrong about every time there is.
fn cron_jobs(script: Script) -> Check {
    check(controllers_of(&["CronJob", "Job", "Pod"])).beside(pods()).script(script).but(Family::ClockJumps)
}

fn kind() -> Kind {
    Kind::of::<CronJob>()
}

/// At half past every hour.
fn cron(image: &str, spec: Value) -> Value {
    let template = job("", image, json!({}));
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "30 * * * *", "jobTemplate": {"spec": template["spec"]}},
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
        .wait(HOUR)
        .wait(HOUR)
        .wait(HOUR)
        .patch(&kind(), "tick", json!({"spec": {"suspend": true}}));
    cron_jobs(script).always("old Jobs go", at_most(3)).every_fault().seeds(10).run();
}

#[test]
fn a_job_that_runs_keeps_the_next_from_being_started() {
    let script = Script::new().create(cron("broken", json!({"concurrencyPolicy": "Forbid"}))).wait(HOUR * 3);
    cron_jobs(script).always("one at a time", at_most(1)).every_fault().seeds(10).run();
}

#[test]
fn a_job_that_runs_is_replaced_by_the_next() {
    let script = Script::new().create(cron("broken", json!({"concurrencyPolicy": "Replace"}))).wait(HOUR * 2);
    cron_jobs(script).always("one at a time", at_most(1)).every_fault().seeds(10).run();
}

#[test]
fn failed_jobs_are_kept_by_their_own_limit() {
    let mut cron = cron("failing", json!({"failedJobsHistoryLimit": 1}));
    cron["spec"]["jobTemplate"]["spec"]["backoffLimit"] = json!(0);
    let script = Script::new().create(cron).wait(HOUR).wait(HOUR);
    cron_jobs(script).every_crash_point().seeds(5).run();
}

#[test]
fn times_that_pass_while_it_is_suspended_are_made_up_for_if_they_are_not_too_long_ago() {
    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    let script = |spec: Value| {
        Script::new()
            .create(cron("work", spec))
            .wait(HOUR)
            .patch(&kind(), "tick", suspend(true))
            .wait(HOUR)
            .patch(&kind(), "tick", suspend(false))
    };
    let started = |jobs: usize| {
        move |state: &State| match state.of(&Kind::of::<Job>()).count() {
            count if count > jobs => Err(format!("{count} Jobs")),
            _ => Ok(()),
        }
    };
    let late = cron_jobs(script(json!({"startingDeadlineSeconds": 60})));
    late.always("the second is too late", started(1)).every_crash_point().run();
    let report = cron_jobs(script(json!({}))).always("the second is late", started(1)).report();
    assert!(report.to_string().contains("2 Jobs"), "{report}");
    cron_jobs(script(json!({}))).every_crash_point().seeds(5).run();
}

#[test]
fn one_that_is_made_anew_at_once_starts_anew() {
    let script = Script::new()
        .create(cron("work", json!({})))
        .wait(HOUR)
        .delete(&kind(), "tick")
        .at_once()
        .create(cron("work", json!({})))
        .wait(HOUR);
    cron_jobs(script).every_crash_point().every_lost_event().seeds(5).run();
}
