//! Decisions about `CronJobs`, told in a few lines each.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::decide::{Decision, decide};

/// A `CronJob` that was made at midnight of New Year's Day 2026 and runs at every full hour.
fn cron(spec: Value) -> Value {
    let mut whole = json!({
        "schedule": "0 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
        "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "metadata": {"labels": {"of": "tick"}},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "work"}]}}},
        },
    });
    let Value::Object(fields) = spec else { panic!("no object") };
    whole.as_object_mut().unwrap().extend(fields);
    json!({
        "metadata": {"name": "tick", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": whole,
    })
}

/// A Job for an hour of that day.
fn job(hour: i64, condition: &str) -> Value {
    let minute = 29_453_760 + hour * 60;
    let time = format!("2026-01-01T{hour:02}:00:00Z");
    let mut job = json!({
        "metadata": {
            "name": format!("tick-{minute}"), "namespace": "ns", "uid": format!("uid-{hour}"), "resourceVersion": "7",
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": time},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "u", "controller": true}],
        },
        "status": {"startTime": time},
    });
    if !condition.is_empty() {
        job["status"]["conditions"] = json!([{"type": condition, "status": "True"}]);
    }
    if condition == "Complete" {
        job["status"]["completionTime"] = json!(format!("2026-01-01T{hour:02}:10:00Z"));
    }
    job
}

fn decided(cron: &Value, jobs: &[Value], now: &str) -> Decision {
    let cron: CronJob = serde_json::from_value(cron.clone()).unwrap();
    let jobs: Vec<Job> = jobs.iter().map(|job| serde_json::from_value(job.clone()).unwrap()).collect();
    decide(&cron, &jobs, now.parse().unwrap())
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(cron: &Value, jobs: &[Value], now: &str, expected: Expect) {
    let decision = decided(cron, jobs, now);
    let mut status = serde_json::to_value(&decision.status).unwrap();
    for active in status.get_mut("active").and_then(Value::as_array_mut).into_iter().flatten() {
        *active = active["name"].take();
    }
    let mut text = format!("status: {status}\n");
    if let Some(job) = &decision.new {
        let annotations = job.metadata.annotations.as_ref().unwrap();
        let time = annotations.values().next().unwrap();
        writeln!(text, "start {} for {time}", job.metadata.name.as_ref().unwrap()).unwrap();
    }
    for name in &decision.deleted {
        writeln!(text, "delete {name}").unwrap();
    }
    if let Some(after) = decision.again_after {
        writeln!(text, "again in {} s", after.as_secs()).unwrap();
    }
    for event in &decision.events {
        writeln!(text, "event {}: {}", event.reason(), event.note()).unwrap();
    }
    expected.assert_eq(&text);
}

#[test]
fn nothing_is_started_before_its_time() {
    check(
        &cron(json!({})),
        &[],
        "2026-01-01T00:59:59.5Z",
        expect![[r#"
        status: {}
        again in 0 s
    "#]],
    );
}

#[test]
fn a_job_is_started_in_time_and_once() {
    let mut cron = cron(json!({}));
    check(
        &cron,
        &[],
        "2026-01-01T01:00:00Z",
        expect![[r#"
        status: {}
        start tick-29453820 for 2026-01-01T01:00:00Z
        again in 3600 s
        event SuccessfulCreate: Created job tick-29453820
    "#]],
    );
    // What is there tells that it was started, whether or not the status does yet.
    check(
        &cron,
        &[job(1, "")],
        "2026-01-01T01:00:00.1Z",
        expect![[r#"
        status: {"active":["tick-29453820"],"lastScheduleTime":"2026-01-01T01:00:00Z"}
        again in 3599 s
    "#]],
    );
    cron["status"] = json!({"lastScheduleTime": "2026-01-01T01:00:00Z"});
    check(
        &cron,
        &[],
        "2026-01-01T01:30:00Z",
        expect![[r#"
        status: {"lastScheduleTime":"2026-01-01T01:00:00Z"}
        again in 1800 s
    "#]],
    );
}

#[test]
fn of_times_that_were_missed_the_last_is_made_up_for() {
    check(
        &cron(json!({})),
        &[],
        "2026-01-01T05:30:00Z",
        expect![[r#"
        status: {}
        start tick-29454060 for 2026-01-01T05:00:00Z
        again in 1800 s
        event SuccessfulCreate: Created job tick-29454060
    "#]],
    );
    check(
        &cron(json!({"startingDeadlineSeconds": 1800})),
        &[],
        "2026-01-01T05:29:00Z",
        expect![[r#"
        status: {}
        start tick-29454060 for 2026-01-01T05:00:00Z
        again in 1860 s
        event SuccessfulCreate: Created job tick-29454060
    "#]],
    );
    check(
        &cron(json!({"startingDeadlineSeconds": 60})),
        &[],
        "2026-01-01T05:30:00Z",
        expect![[r#"
        status: {}
        again in 1800 s
    "#]],
    );
}

#[test]
fn whoever_missed_more_than_a_hundred_is_told() {
    let told = |now: &str| {
        let decision = decided(&cron(json!({})), &[], now);
        decision.events.iter().any(|event| event.reason() == "TooManyMissedTimes") && decision.new.is_some()
    };
    assert!(!told("2026-01-05T04:59:00Z"));
    assert!(told("2026-01-05T05:00:00Z"));
    assert!(told("2126-01-05T05:00:00Z"));
}

#[test]
fn a_job_that_runs_is_waited_for_or_replaced_or_left() {
    let running = [job(1, "")];
    let now = "2026-01-01T02:00:00Z";
    check(
        &cron(json!({"concurrencyPolicy": "Forbid"})),
        &running,
        now,
        expect![[r#"
        status: {"active":["tick-29453820"],"lastScheduleTime":"2026-01-01T01:00:00Z"}
        again in 3600 s
        event JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid
    "#]],
    );
    check(
        &cron(json!({"concurrencyPolicy": "Replace"})),
        &running,
        now,
        expect![[r#"
        status: {"lastScheduleTime":"2026-01-01T01:00:00Z"}
        delete tick-29453820
        again in 3600 s
        event SuccessfulDelete: Deleted job tick-29453820
    "#]],
    );
    check(
        &cron(json!({})),
        &running,
        now,
        expect![[r#"
        status: {"active":["tick-29453820"],"lastScheduleTime":"2026-01-01T01:00:00Z"}
        start tick-29453880 for 2026-01-01T02:00:00Z
        again in 3600 s
        event SuccessfulCreate: Created job tick-29453880
    "#]],
    );
    check(
        &cron(json!({"concurrencyPolicy": "Forbid"})),
        &[job(1, "Failed")],
        now,
        expect![[r#"
        status: {"lastScheduleTime":"2026-01-01T01:00:00Z"}
        start tick-29453880 for 2026-01-01T02:00:00Z
        again in 3600 s
        event SuccessfulCreate: Created job tick-29453880
    "#]],
    );
}

#[test]
fn a_suspended_one_starts_nothing_and_looks_after_its_jobs() {
    let jobs = [job(1, "Complete"), job(2, "Complete")];
    let mut cron = cron(json!({"suspend": true, "successfulJobsHistoryLimit": 1}));
    cron["status"] =
        json!({"active": [{"name": "tick-29453880", "uid": "uid-2"}, {"name": "gone", "uid": "uid-9"}]});
    check(
        &cron,
        &jobs,
        "2026-01-01T09:00:00Z",
        expect![[r#"
        status: {"lastScheduleTime":"2026-01-01T02:00:00Z","lastSuccessfulTime":"2026-01-01T02:10:00Z"}
        delete tick-29453820
        event SawCompletedJob: Saw completed job: tick-29453880, condition: Complete
        event MissingJob: Active job went missing: gone
        event SuccessfulDelete: Deleted job tick-29453820
    "#]],
    );
}

#[test]
fn the_oldest_of_the_finished_jobs_go() {
    let cron = cron(json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 0}));
    let jobs = [job(1, "Complete"), job(2, "Complete"), job(3, "Failed"), job(4, "Complete"), job(5, "")];
    check(
        &cron,
        &jobs,
        "2026-01-01T05:30:00Z",
        expect![[r#"
        status: {"active":["tick-29454060"],"lastScheduleTime":"2026-01-01T05:00:00Z","lastSuccessfulTime":"2026-01-01T04:10:00Z"}
        delete tick-29453820
        delete tick-29453940
        again in 1800 s
        event SuccessfulDelete: Deleted job tick-29453820
        event SuccessfulDelete: Deleted job tick-29453940
    "#]],
    );
}

#[test]
fn a_job_that_somebody_made_from_the_template_is_not_one_of_the_schedule() {
    let mut manual = job(1, "");
    manual["metadata"]["name"] = json!("by-hand");
    check(
        &cron(json!({"concurrencyPolicy": "Forbid"})),
        &[manual],
        "2026-01-01T01:00:00Z",
        expect![[r#"
        status: {}
        start tick-29453820 for 2026-01-01T01:00:00Z
        again in 3600 s
        event SuccessfulCreate: Created job tick-29453820
    "#]],
    );
}

#[test]
fn times_are_those_of_the_zone() {
    let cron = cron(json!({"schedule": "30 9 * * *", "timeZone": "America/New_York"}));
    check(
        &cron,
        &[],
        "2026-01-01T14:30:00Z",
        expect![[r#"
        status: {}
        start tick-29454630 for 2026-01-01T09:30:00-05:00
        again in 86400 s
        event SuccessfulCreate: Created job tick-29454630
    "#]],
    );
}

#[test]
fn what_cannot_be_read_is_told() {
    check(
        &cron(json!({"schedule": "61 * * * *"})),
        &[],
        "2026-01-01T09:00:00Z",
        expect![[r#"
        status: {}
        event UnparseableSchedule: unparseable schedule: "61 * * * *" : end of range (61) above maximum (59): 61
    "#]],
    );
    check(
        &cron(json!({"timeZone": "Mars/Base"})),
        &[],
        "2026-01-01T09:00:00Z",
        expect![[r#"
        status: {}
        event UnknownTimeZone: invalid timeZone: "Mars/Base": unknown time zone Mars/Base
    "#]],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A controller that dies whenever it likes, before or after each of its writes.
    #[test]
    fn each_time_has_one_job(cuts in prop::collection::vec((0_i64..40, 0..3_u8), 1..60)) {
        let mut cron = cron(json!({"successfulJobsHistoryLimit": 1}));
        let mut jobs: Vec<Value> = Vec::new();
        let mut started: Vec<String> = Vec::new();
        let mut now = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        for (minutes, writes) in cuts {
            now += jiff::SignedDuration::from_mins(minutes);
            let decision = decided(&cron, &jobs, &now.to_string());
            if writes > 0 {
                cron["status"] = serde_json::to_value(&decision.status).unwrap();
            }
            if writes > 1 {
                jobs.retain(|job| !decision.deleted.contains(job["metadata"]["name"].as_str().unwrap()));
                if let Some(new) = decision.new {
                    let name = new.metadata.name.clone().unwrap();
                    prop_assert!(!started.contains(&name), "{} twice", name);
                    let hour = (name[5..].parse::<i64>().unwrap() - 29_453_760) / 60;
                    let mut made = job(hour % 24, "Complete");
                    made["metadata"]["name"] = json!(name);
                    made["metadata"]["annotations"] = json!(new.metadata.annotations);
                    jobs.push(made);
                    started.push(name);
                }
            }
        }
    }

    #[test]
    fn times_and_numbers_of_any_size_are_decided_on(
        made in any_time(), now in any_time(), last in prop::option::of(any_time()),
        deadline in prop::option::of(prop_oneof![0..100_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()]),
        limits in prop::collection::vec(prop_oneof![0..3, Just(i32::MIN), Just(i32::MAX)], 2),
        schedule in prop::sample::select(vec!["* * * * *", "0 * * * *", "0 0 29 2 *", "@every 1s", "59 23 31 12 *"]),
    ) {
        let mut cron = cron(json!({
            "schedule": schedule, "startingDeadlineSeconds": deadline,
            "successfulJobsHistoryLimit": limits[0], "failedJobsHistoryLimit": limits[1],
        }));
        cron["metadata"]["creationTimestamp"] = json!(made.to_string());
        cron["status"] = json!({"lastScheduleTime": last.map(|last| last.to_string())});
        let jobs = [job(1, "Complete"), job(2, "Failed"), job(3, "")];
        let decision = decided(&cron, &jobs, &now.to_string());
        prop_assert!(decision.deleted.len() <= 2);
    }
}

/// A time, with the first and the last that there are.
fn any_time() -> impl Strategy<Value = Timestamp> {
    let near = (1_i64..100_000).prop_map(|more| Timestamp::from_second(1_767_225_600 + more).unwrap());
    prop_oneof![
        4 => near,
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX),
        1 => Just(Timestamp::UNIX_EPOCH),
    ]
}
