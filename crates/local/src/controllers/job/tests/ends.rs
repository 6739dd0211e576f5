//! When a Job is over, and what becomes of it then.

use expect_test::expect;
use serde_json::json;

use super::*;

const FAILURE: &str = "FailureTarget";

fn condition(type_: &str, reason: &str) -> Value {
    json!([{"type": type_, "status": "True", "reason": reason, "message": "why", "lastTransitionTime": at(50)}])
}

#[test]
fn a_job_is_complete_when_its_last_pod_is_counted() {
    let world = job(json!({})).pods([pod("a", "Succeeded")]);
    world.check(expect![[r#"
        status first: {"conditions":["SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods"],"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"succeeded":["uid-a"]}}
        let go: a
    "#]]);
    let met = condition("SuccessCriteriaMet", "CompletionsReached");
    let status = json!({"conditions": met, "uncountedTerminatedPods": {"succeeded": ["uid-a"]}});
    let world = world.status(status);
    world.check(expect![[r#"
        status first: {"conditions":["SuccessCriteriaMet=True CompletionsReached: why"],"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"succeeded":["uid-a"]}}
        let go: a
    "#]]);
    let world = world.pods([counted(pod("a", "Succeeded"))]);
    world.check(expect![[r#"
        status: {"conditions":["SuccessCriteriaMet=True CompletionsReached: why"],"startTime":"2026-01-01T00:00:00Z","succeeded":1}
    "#]]);
    let world = world.status(json!({"succeeded": 1, "uncountedTerminatedPods": {}}));
    world.check(expect![[r#"
        status: {"completionTime":"2026-01-01T00:01:00Z","conditions":["SuccessCriteriaMet=True CompletionsReached: why","Complete=True CompletionsReached: why"],"startTime":"2026-01-01T00:00:00Z","succeeded":1}
        event Completed: Job completed
    "#]]);
    world.pods([counted(pod("a", "Succeeded")), counted(pod("b", "Going"))]).check(expect![[r#"
        status: {"conditions":["SuccessCriteriaMet=True CompletionsReached: why"],"startTime":"2026-01-01T00:00:00Z","succeeded":1,"terminating":1}
    "#]]);
}

#[test]
fn a_job_that_wants_nothing_is_complete() {
    job(json!({"completions": 0})).check(expect![[r#"
        status first: {"conditions":["SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods"],"startTime":"2026-01-01T00:00:00Z"}
    "#]]);
}

#[test]
fn too_many_failures_end_a_job_and_the_pods_that_are_left_have_failed_too() {
    let world = job(json!({"backoffLimit": 0, "parallelism": 2, "completions": 2}));
    let world = world.pods([pod("a", "Failed"), pod("b", "Running")]);
    world.check(expect![[r#"
        status first: {"active":1,"conditions":["FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit"],"ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a","uid-b"]}}
        let go: a
        delete: b
    "#]]);
    let uncounted = json!({"failed": ["uid-a", "uid-b"]});
    let status = json!({"conditions": condition(FAILURE, "BackoffLimitExceeded"), "uncountedTerminatedPods": uncounted});
    let world = world.status(status);
    // After a crash right behind the status.
    world.check(expect![[r#"
        status first: {"active":1,"conditions":["FailureTarget=True BackoffLimitExceeded: why"],"ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a","uid-b"]}}
        let go: a
        delete: b
    "#]]);
    let world = world.pods([counted(pod("a", "Failed")), pod("b", "Going")]);
    world.check(expect![[r#"
        status first: {"conditions":["FailureTarget=True BackoffLimitExceeded: why"],"failed":1,"startTime":"2026-01-01T00:00:00Z","terminating":1,"uncountedTerminatedPods":{"failed":["uid-b"]}}
        let go: b
    "#]]);
    let world = world.pods([counted(pod("a", "Failed"))]);
    world.check(expect![[r#"
        status: {"conditions":["FailureTarget=True BackoffLimitExceeded: why"],"failed":2,"startTime":"2026-01-01T00:00:00Z"}
    "#]]);
    world.status(json!({"failed": 2, "uncountedTerminatedPods": {}})).check(expect![[r#"
        status: {"conditions":["FailureTarget=True BackoffLimitExceeded: why","Failed=True BackoffLimitExceeded: why"],"failed":2,"startTime":"2026-01-01T00:00:00Z"}
        event BackoffLimitExceeded: why
    "#]]);
}

#[test]
fn restarts_of_containers_count_where_they_are_restarted() {
    let restarted = |times: i32| {
        let mut pod = pod("a", "Running");
        pod["status"]["containerStatuses"] =
            json!([{"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": times}]);
        pod
    };
    let template =
        json!({"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "work"}]}});
    let is_over = |limit: i32, times: i32| {
        let world = job(json!({"backoffLimit": limit, "template": template})).pods([restarted(times)]);
        world.told().contains("FailureTarget=True BackoffLimitExceeded")
    };
    assert_eq!([is_over(3, 2), is_over(3, 3), is_over(0, 0), is_over(0, 1)], [false, true, false, true]);
    let never = job(json!({"backoffLimit": 0})).pods([restarted(5)]);
    assert!(!never.told().contains(FAILURE));
}

#[test]
fn a_job_that_is_active_too_long_has_failed() {
    let world = job(json!({"activeDeadlineSeconds": 60})).pods([pod("a", "Running")]);
    let world = world.at(59);
    world.check(expect![[r#"
        status: {"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}
        again in 1 s
    "#]]);
    world.at(60).check(expect![[r#"
        status first: {"active":1,"conditions":["FailureTarget=True DeadlineExceeded: Job was active longer than specified deadline"],"ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        delete: a
    "#]]);
}

#[test]
fn a_rule_fails_a_job_at_once() {
    let rules = json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [3, 42]}},
    ]});
    let world = job(json!({"podFailurePolicy": rules}));
    let disrupted = |mut pod: Value| {
        pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        pod
    };
    let world = world.pods([ended(pod("a", "Failed"), 42, 50)]);
    world.check(expect![[r#"
        status first: {"conditions":["FailureTarget=True PodFailurePolicy: Container main for pod ns/a failed with exit code 42 matching FailJob rule at index 1"],"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
    "#]]);
    let world = world.pods([disrupted(ended(pod("a", "Failed"), 42, 50))]);
    world.check(expect![[r#"
        status first: {"startTime":"2026-01-01T00:00:00Z"}
        let go: a
        new pod
    "#]]);
    world.pods([ended(pod("a", "Failed"), 1, 50)]).check(expect![[r#"
        status first: {"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
        new pod
    "#]]);
}

#[test]
fn a_finished_job_goes_when_its_time_is_up() {
    let complete = json!({"conditions": condition("Complete", "CompletionsReached")});
    let left = |ttl: Value, seconds: i64| {
        let world = job(json!({"ttlSecondsAfterFinished": ttl})).status(complete.clone()).at(seconds);
        let job: Job = serde_json::from_value(world.job).unwrap();
        super::super::time_left(&job, world.now).map(|left| left.as_secs())
    };
    assert_eq!(left(json!(100), 60), Some(90));
    assert_eq!(left(json!(100), 200), Some(0));
    assert_eq!(left(json!(0), 50), Some(0));
    assert_eq!(left(Value::Null, 200), None);
}
