//! Indexed Jobs.

use expect_test::expect;
use serde_json::json;

use super::*;

fn indexed(completions: i32, spec: Value) -> World {
    let mut whole = json!({"completionMode": "Indexed", "completions": completions, "parallelism": 2});
    merge(&mut whole, spec);
    job(whole)
}

fn failures(mut pod: Value, counted: i32) -> Value {
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] =
        json!(counted.to_string());
    pod
}

#[test]
fn the_first_indexes_that_are_neither_done_nor_active_come_next() {
    let world =
        indexed(6, json!({"parallelism": 4})).status(json!({"completedIndexes": "0,2", "succeeded": 2}));
    world.pods([of_index(3, pod("d", "Running"))]).check(expect![[r#"
        status: {"active":1,"completedIndexes":"0,2","ready":1,"startTime":"2026-01-01T00:00:00Z","succeeded":2}
        new pod of index 1
        new pod of index 4
        new pod of index 5
    "#]]);
}

#[test]
fn an_index_that_succeeds_is_written_down_before_its_pod_may_go() {
    let world = indexed(3, json!({}));
    let pods = [of_index(0, pod("a", "Succeeded")), of_index(1, pod("b", "Succeeded"))];
    world.pods(pods).check(expect![[r#"
        status first: {"completedIndexes":"0,1","startTime":"2026-01-01T00:00:00Z","succeeded":2}
        let go: a b
        new pod of index 2
    "#]]);
}

#[test]
fn a_second_pod_of_an_index_and_one_without_go() {
    let world = indexed(3, json!({"parallelism": 3}));
    let pods = [
        of_index(0, pod("a", "Running")),
        of_index(0, pod("b", "Pending")),
        pod("c", "Running"),
        of_index(7, pod("d", "Running")),
        of_index(1, pod("e", "Running")),
    ];
    world.pods(pods).check(expect![[r#"
        status: {"active":5,"ready":4,"startTime":"2026-01-01T00:00:00Z"}
        let go: c d b
    "#]]);
}

#[test]
fn a_failed_pod_waits_for_the_next_of_its_index() {
    let world = indexed(2, json!({"backoffLimitPerIndex": 1}));
    let failed = || failures(of_index(0, pod("a", "Failed")), 0);
    let running = || failures(of_index(1, pod("b", "Running")), 0);
    let world = world.pods([failed(), running()]);
    world.check(expect![[r#"
        status: {"active":1,"failedIndexes":"","ready":1,"startTime":"2026-01-01T00:00:00Z"}
        again in 5 s
    "#]]);
    let world = world.at(70);
    world.check(expect![[r#"
        status: {"active":1,"failedIndexes":"","ready":1,"startTime":"2026-01-01T00:00:00Z"}
        new pod of index 0 after 1 failures and 0 ignored
    "#]]);
    let world = world.pods([failed(), running(), failures(of_index(0, pod("c", "Pending")), 1)]);
    world.check(expect![[r#"
        status first: {"active":2,"failedIndexes":"","ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
    "#]]);
    world.pods([running(), failures(of_index(0, pod("c", "Failed")), 1)]).check(expect![[r#"
        status first: {"active":1,"failedIndexes":"0","ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-c"]}}
        let go: c
    "#]]);
}

#[test]
fn a_job_fails_with_its_indexes() {
    let limited = |spec: Value| {
        let mut whole = json!({"backoffLimitPerIndex": 0});
        merge(&mut whole, spec);
        indexed(2, whole).pods([of_index(0, pod("a", "Failed")), of_index(1, pod("b", "Running"))])
    };
    limited(json!({"maxFailedIndexes": 0})).check(expect![[r#"
        status first: {"active":1,"conditions":["FailureTarget=True MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"],"failedIndexes":"0","ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a","uid-b"]}}
        let go: a
        delete: b
    "#]]);
    // Those that go on account of it do not fail their indexes.
    let target = json!([{"type": "FailureTarget", "status": "True", "reason": "MaxFailedIndexesExceeded", "message": "why"}]);
    let uncounted = json!({"failed": ["uid-a", "uid-b"]});
    let status = json!({"conditions": target, "failedIndexes": "0", "uncountedTerminatedPods": uncounted});
    let world = limited(json!({"maxFailedIndexes": 0})).status(status);
    world.pods([of_index(1, pod("b", "Going"))]).check(expect![[r#"
        status first: {"conditions":["FailureTarget=True MaxFailedIndexesExceeded: why"],"failed":1,"failedIndexes":"0","startTime":"2026-01-01T00:00:00Z","terminating":1,"uncountedTerminatedPods":{"failed":["uid-b"]}}
        let go: b
    "#]]);
    let world = limited(json!({}));
    world.check(expect![[r#"
        status first: {"active":1,"failedIndexes":"0","ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
    "#]]);
    let pods = [of_index(0, counted(pod("a", "Failed"))), of_index(1, pod("b", "Succeeded"))];
    world.status(json!({"failed": 1, "failedIndexes": "0"})).pods(pods).check(expect![[r#"
        status first: {"completedIndexes":"1","conditions":["FailureTarget=True FailedIndexes: Job has failed indexes"],"failed":1,"failedIndexes":"0","startTime":"2026-01-01T00:00:00Z","succeeded":1}
        let go: b
    "#]]);
}

#[test]
fn a_rule_can_give_an_index_up() {
    let rules =
        json!({"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}]});
    let world = indexed(3, json!({"backoffLimitPerIndex": 5, "podFailurePolicy": rules}));
    world.pods([of_index(0, ended(pod("a", "Failed"), 2, 30)), of_index(1, ended(pod("b", "Failed"), 1, 30))]).check(expect![[r#"
        status first: {"failedIndexes":"0","startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
        new pod of index 1 after 1 failures and 0 ignored
        new pod of index 2 after 0 failures and 0 ignored
    "#]]);
}

#[test]
fn a_rule_can_make_some_successes_enough() {
    let rules =
        json!({"rules": [{"succeededIndexes": "0-1"}, {"succeededIndexes": "1-3", "succeededCount": 1}]});
    let world = indexed(4, json!({"successPolicy": rules}));
    let world = world.pods([of_index(0, pod("a", "Succeeded")), of_index(1, pod("b", "Running"))]);
    assert!(!world.told().contains("SuccessCriteriaMet"));
    let world = world.pods([of_index(2, pod("c", "Succeeded")), of_index(1, pod("b", "Running"))]);
    world.check(expect![[r#"
        status first: {"active":1,"completedIndexes":"2","conditions":["SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 1"],"ready":1,"startTime":"2026-01-01T00:00:00Z","succeeded":1}
        let go: c
        delete: b
    "#]]);
    // Its end is no failure, however it comes about.
    let met = json!([{"type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy", "message": "why"}]);
    let mut killed = of_index(1, pod("b", "Failed"));
    killed["metadata"]["deletionTimestamp"] = json!(at(58));
    let world = world.status(json!({"conditions": met, "completedIndexes": "2", "succeeded": 1}));
    world.pods([of_index(2, counted(pod("c", "Succeeded"))), killed]).check(expect![[r#"
        status first: {"completedIndexes":"2","conditions":["SuccessCriteriaMet=True SuccessPolicy: why"],"startTime":"2026-01-01T00:00:00Z","succeeded":1}
        let go: b
    "#]]);
}
