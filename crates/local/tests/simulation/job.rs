//! Jobs that succeed, fail, are indexed, suspended, overdue and expired, and pods that go before their time.
//!
//! Pods end six seconds after they were made; those of an image that is `broken` never do.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use mainstay::{Controller, DeletionBudget, Kind, SyncRequest, SyncResponse};
use mainstay_testkit::simulation::{Check, Family, Program, Script, State, check, operator, pods};
use serde_json::{Value, json};

use crate::simulation::controllers_of;

fn jobs() -> Check {
    let number = |job: &Value, field: &str| job["status"][field].as_i64().unwrap_or(0);
    let counts_are_possible = move |state: &State| {
        for job in state.of(&Kind::of::<Job>()) {
            if let Some(completions) = job["spec"]["completions"].as_i64()
                && number(job, "succeeded") > completions
            {
                return Err(format!("{} of {completions} have succeeded", number(job, "succeeded")));
            }
        }
        Ok(())
    };
    check(controllers_of(&["Job", "Pod"]))
        .beside(pods())
        .always("no more have succeeded than shall", counts_are_possible)
}

/// What can go wrong with writes, and some of the rest. One script has everything go wrong; worlds take time.
fn disturbed(check: Check) -> Check {
    check.every_crash_point().seeds(5)
}

fn kind() -> Kind {
    Kind::of::<Job>()
}

pub(super) fn job(name: &str, image: &str, spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": image}],
        }}},
    });
    let Value::Object(fields) = spec else { panic!("no object") };
    job["spec"].as_object_mut().unwrap().extend(fields);
    job
}

/// A condition of the only Job.
fn has(state: &State, condition: &str, reason: &str) -> bool {
    let conditions = state.of(&kind()).filter_map(|job| job["status"]["conditions"].as_array()).flatten();
    conditions.into_iter().any(|it| it["type"] == condition && it["reason"] == reason)
}

#[test]
fn whatever_goes_wrong_a_job_is_done_once() {
    let script = Script::new().create(job("work", "work", json!({})));
    // Single requests are many; those that fail are among what goes wrong by seeds.
    let check = jobs().script(script).every_crash_point().every_lost_event().every_time_travel();
    check.every_second_leader().every_clock_jump().seeds(20).run();
}

#[test]
fn jobs_succeed_and_are_counted_once() {
    let script = Script::new().create(job("work", "work", json!({"parallelism": 2, "completions": 3})));
    disturbed(jobs().script(script)).every_second_leader().run();
}

#[test]
fn jobs_fail_when_their_pods_have_failed_too_often() {
    let script = Script::new().create(job("work", "failing", json!({"backoffLimit": 1})));
    disturbed(jobs().script(script)).every_clock_jump().run();
}

#[test]
fn indexes_are_completed_each_once() {
    let spec = json!({"completionMode": "Indexed", "parallelism": 2, "completions": 3});
    disturbed(jobs().script(Script::new().create(job("work", "work", spec)))).run();
}

#[test]
fn indexes_fail_each_by_itself() {
    let spec = json!({
        "completionMode": "Indexed", "parallelism": 2, "completions": 2, "backoffLimitPerIndex": 1,
    });
    disturbed(jobs().script(Script::new().create(job("work", "failing", spec)))).run();
}

#[test]
fn rules_end_jobs_early() {
    let failure = json!({"podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
    ]}});
    let success = json!({
        "completionMode": "Indexed", "parallelism": 1, "completions": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    });
    let script = Script::new()
        .create(job("fails", "failing", failure))
        .at_once()
        .create(job("succeeds", "work", success));
    disturbed(jobs().script(script)).run();
}

#[test]
fn suspended_jobs_have_no_pods() {
    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    let script = Script::new()
        .create(job("work", "broken", json!({"suspend": true, "parallelism": 2, "completions": 2})))
        .patch(&kind(), "work", suspend(false))
        .patch(&kind(), "work", suspend(true))
        .patch(&kind(), "work", suspend(false));
    disturbed(jobs().script(script)).run();
}

#[test]
fn a_job_that_was_suspended_is_done() {
    let script = Script::new().create(job("work", "work", json!({"suspend": true}))).patch(
        &kind(),
        "work",
        json!({"spec": {"suspend": false}}),
    );
    disturbed(jobs().script(script)).run();
}

#[test]
fn surplus_pods_go_uncounted() {
    let parallelism = |pods: i32| json!({"spec": {"parallelism": pods}});
    let script = Script::new()
        .create(job("work", "broken", json!({"parallelism": 3, "completions": 5})))
        .patch(&kind(), "work", parallelism(1))
        .patch(&kind(), "work", parallelism(2));
    let uncounted = |state: &State| match state.of(&kind()).find(|job| job["status"].get("failed").is_some())
    {
        Some(_) => Err("a pod counts as failed".to_owned()),
        None => Ok(()),
    };
    let check = jobs().script(script).always("what was too many has not failed", uncounted);
    // A second controller that is told late deletes others; only leases help against that.
    disturbed(check).but(Family::TwoLeaders).run();
}

#[test]
fn overdue_jobs_fail() {
    let spec = json!({"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 30});
    let script = Script::new().create(job("work", "broken", spec));
    // A clock that is behind makes the deadline come later than anybody waits.
    disturbed(jobs().script(script)).but(Family::ClockJumps).run();
}

#[test]
fn expired_jobs_go_with_their_pods() {
    let spec = json!({"completions": 2, "parallelism": 2, "ttlSecondsAfterFinished": 20});
    let check = jobs().script(Script::new().create(job("work", "work", spec))).may_remove(&kind());
    disturbed(check).but(Family::ClockJumps).run();
}

#[test]
fn a_job_that_is_made_anew_at_once_starts_anew() {
    let work = || job("work", "work", json!({"completions": 2, "parallelism": 2}));
    let script = Script::new()
        .create(work())
        .at_once()
        .wait(Duration::from_secs(3))
        .at_once()
        .delete(&kind(), "work")
        .at_once()
        .create(work());
    disturbed(jobs().script(script)).run();
}

#[test]
fn a_queue_is_worked_off() {
    let script = Script::new().create(job("work", "work", json!({"parallelism": 2})));
    jobs().script(script).every_crash_point().run();
}

/// Somebody who deletes pods.
fn deletes(name: &str, which: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Program {
    let which = std::sync::Arc::new(which);
    operator(name, move |builder| {
        let which = which.clone();
        let everything = DeletionBudget { burst: u32::MAX, per_minute: u32::MAX };
        builder.deletion_budget(everything).controller(Controller::of::<Pod>().writes_parents().sync(
            move |request: &SyncRequest| {
                let response = SyncResponse::new();
                Ok(if which(request.parent_json()) { response.delete_parent() } else { response })
            },
        ))
    })
}

#[test]
fn pods_that_are_deleted_while_they_run_have_failed_and_are_replaced() {
    let first = |pod: &Value| {
        let failures = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"];
        pod["status"]["phase"] == "Running" && failures == "0"
    };
    let spec = json!({
        "completionMode": "Indexed", "parallelism": 2, "completions": 2, "backoffLimitPerIndex": 1,
    });
    let script = Script::new().create(job("work", "work", spec));
    disturbed(jobs().beside(deletes("evictions", first)).script(script)).run();
}

#[test]
fn pods_that_are_deleted_when_they_have_ended_are_counted() {
    let ended = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let script = Script::new()
        .create(job("works", "work", json!({"parallelism": 2, "completions": 3})))
        .at_once()
        .create(job("fails", "failing", json!({"backoffLimit": 0})));
    disturbed(jobs().beside(deletes("collection", ended)).script(script)).run();
}

#[test]
fn jobs_of_others_are_left_alone() {
    let script = Script::new().create(job("work", "work", json!({"managedBy": "example.com/other"})));
    let alone = |state: &State| match state.of(&Kind::of::<Pod>()).next() {
        Some(_) => Err("there is a pod".to_owned()),
        None => Ok(()),
    };
    jobs().script(script).always("it has no pods", alone).run();
}

#[test]
fn reasons_are_those_of_kubernetes() {
    let cases = [
        (job("work", "work", json!({})), "Complete", "CompletionsReached"),
        (job("work", "failing", json!({"backoffLimit": 0})), "Failed", "BackoffLimitExceeded"),
        (job("work", "broken", json!({"activeDeadlineSeconds": 5})), "Failed", "DeadlineExceeded"),
        (job("work", "work", json!({"suspend": true})), "Suspended", "JobSuspended"),
    ];
    for (job, condition, reason) in cases {
        let never = move |state: &State| {
            if has(state, condition, reason) { Err("seen".to_owned()) } else { Ok(()) }
        };
        let report = jobs().script(Script::new().create(job)).always("never", never).report();
        assert!(report.to_string().contains("seen"), "{condition} {reason} was never true:\n{report}");
    }
}
