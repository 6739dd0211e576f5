//! Which pods are made, and which go, while a Job is not over.

use expect_test::expect;
use serde_json::json;

use super::*;

#[test]
fn a_new_job_has_as_many_pods_as_it_may() {
    job(json!({"parallelism": 3, "completions": 2})).status(json!({"startTime": null})).check(expect![[r#"
        status: {"startTime":"2026-01-01T00:01:00Z"}
        new pod
        new pod
    "#]]);
    job(json!({"parallelism": 2, "completions": null})).check(expect![[r#"
        status: {"startTime":"2026-01-01T00:00:00Z"}
        new pod
        new pod
    "#]]);
}

#[test]
fn what_is_done_need_not_be_done_again() {
    let world = job(json!({"parallelism": 3, "completions": 4})).status(json!({"succeeded": 2}));
    world.pods([counted(pod("a", "Succeeded")), counted(pod("b", "Succeeded")), pod("c", "Running")]).check(
        expect![[r#"
        status: {"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z","succeeded":2}
        new pod
    "#]],
    );
}

#[test]
fn a_queue_that_one_pod_found_empty_gets_no_more_pods() {
    let world = job(json!({"parallelism": 3, "completions": null}));
    world.pods([pod("a", "Succeeded"), pod("b", "Running")]).check(expect![[r#"
        status first: {"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"succeeded":["uid-a"]}}
        let go: a
    "#]]);
}

#[test]
fn a_failed_pod_is_replaced_after_ten_seconds() {
    let world = job(json!({})).pods([pod("a", "Failed")]);
    world.check(expect![[r#"
        status first: {"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
        again in 5 s
    "#]]);
    world.at(65).check(expect![[r#"
        status first: {"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
        new pod
    "#]]);
}

#[test]
fn each_failure_since_the_last_success_doubles_the_wait() {
    let failed = |name: &str, seconds| ended(counted(pod(name, "Failed")), 1, seconds);
    let world = job(json!({"completions": 3})).status(json!({"failed": 2}));
    let world = world.pods([failed("a", 20), failed("b", 55)]);
    world.check(expect![[r#"
        status: {"failed":2,"startTime":"2026-01-01T00:00:00Z"}
        again in 15 s
    "#]]);
    let mut pods = world.pods.clone();
    pods.push(ended(counted(pod("c", "Succeeded")), 0, 50));
    world.status(json!({"succeeded": 1})).pods(pods).check(expect![[r#"
        status: {"failed":2,"startTime":"2026-01-01T00:00:00Z","succeeded":1}
        again in 5 s
    "#]]);
}

#[test]
fn pods_that_are_too_many_lose_the_finalizer_and_then_go() {
    let young = |mut pod: Value| {
        pod["metadata"]["creationTimestamp"] = json!(at(30));
        pod
    };
    let world = job(json!({"parallelism": 2, "completions": 5}));
    let pods = [pod("a", "Pending"), pod("b", "Running"), young(pod("c", "Pending")), pod("d", "Running")];
    let world = world.pods(pods);
    world.check(expect![[r#"
        status: {"active":4,"ready":2,"startTime":"2026-01-01T00:00:00Z"}
        let go: a c
    "#]]);
    let mut pods = world.pods.clone();
    pods[0] = counted(pods[0].clone());
    pods[2] = counted(pods[2].clone());
    let world = world.pods(pods);
    world.check(expect![[r#"
        status: {"active":4,"ready":2,"startTime":"2026-01-01T00:00:00Z"}
        delete: a c
    "#]]);
    // Whoever has lost it can no longer be counted, even if there were room for it again.
    let mut world = world;
    world.job["spec"]["parallelism"] = json!(5);
    world.check(expect![[r#"
        status: {"active":4,"ready":2,"startTime":"2026-01-01T00:00:00Z"}
        delete: a c
    "#]]);
}

#[test]
fn a_suspended_job_has_no_pods_and_no_start() {
    let world = job(json!({"suspend": true}));
    let world = world.pods([pod("a", "Running")]);
    world.check(expect![[r#"
        status: {"active":1,"conditions":["Suspended=True JobSuspended: Job suspended"],"ready":1}
        let go: a
    "#]]);
    let world = world.pods([counted(pod("a", "Running"))]);
    world.check(expect![[r#"
        status: {"active":1,"conditions":["Suspended=True JobSuspended: Job suspended"],"ready":1}
        delete: a
    "#]]);
    let world = world.pods([]);
    world.check(expect![[r#"
        status: {"conditions":["Suspended=True JobSuspended: Job suspended"]}
        event Suspended: Job suspended
    "#]]);
}

#[test]
fn a_resumed_job_starts_anew() {
    let suspended = json!([{"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}]);
    let world = job(json!({"activeDeadlineSeconds": 20}));
    let world = world.status(json!({"startTime": null, "conditions": suspended}));
    world.check(expect![[r#"
        status: {"conditions":["Suspended=False JobResumed: Job resumed"],"startTime":"2026-01-01T00:01:00Z"}
        new pod
        again in 20 s
    "#]]);
    world.pods([pod("a", "Pending")]).check(expect![[r#"
        status: {"active":1,"conditions":["Suspended=False JobResumed: Job resumed"],"startTime":"2026-01-01T00:01:00Z"}
        again in 20 s
        event Resumed: Job resumed
    "#]]);
}

#[test]
fn where_only_ended_pods_are_replaced_one_that_goes_is_waited_for() {
    let going = || [pod("a", "Going")];
    job(json!({})).at(70).pods(going()).check(expect![[r#"
        status first: {"startTime":"2026-01-01T00:00:00Z","terminating":1,"uncountedTerminatedPods":{"failed":["uid-a"]}}
        let go: a
        new pod
    "#]]);
    job(json!({"podReplacementPolicy": "Failed"})).at(70).pods(going()).check(expect![[r#"
        status: {"startTime":"2026-01-01T00:00:00Z","terminating":1}
    "#]]);
}

#[test]
fn new_pods_carry_the_finalizer_and_have_names_of_their_own_job() {
    let world = job(json!({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 2}));
    let mut job: Job = serde_json::from_value(world.job.clone()).unwrap();
    let new = [super::super::manage::NewPod { index: Some(2), failures: Some((1, 1)) }];
    let names = |uid: &str| crate::controllers::names::Names::new(uid, 0, []);
    let make = |job: &Job, new: &[_], taken: &std::collections::BTreeSet<String>| {
        super::super::make::new_pods(job, new, &names(job.metadata.uid.as_deref().unwrap()), |name| {
            taken.contains(name)
        })
    };
    let none = std::collections::BTreeSet::new();
    let pods = make(&job, &new, &none);
    let name = pods[0].metadata.name.clone().unwrap();
    assert!(name.starts_with("x-2-") && name.len() == 9, "{name}");
    let mut told = serde_json::to_value(&pods[0]).unwrap();
    told["metadata"]["name"] = json!("");
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "annotations": {
              "batch.kubernetes.io/job-completion-index": "2",
              "batch.kubernetes.io/job-index-failure-count": "1",
              "batch.kubernetes.io/job-index-ignored-failure-count": "1"
            },
            "finalizers": [
              "batch.kubernetes.io/job-tracking"
            ],
            "generateName": "x-2-",
            "labels": {
              "batch.kubernetes.io/job-completion-index": "2"
            },
            "name": ""
          },
          "spec": {
            "containers": [
              {
                "env": [
                  {
                    "name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"
                      }
                    }
                  }
                ],
                "image": "work",
                "name": "main"
              }
            ],
            "hostname": "x-2",
            "restartPolicy": "Never"
          }
        }"#]]
    .assert_eq(&format!("{told:#}"));
    job.metadata.uid = Some("another".into());
    let others = make(&job, &new, &none);
    assert_ne!(others[0].metadata.name.as_ref(), Some(&name));
    let more = make(&job, &[new[0], new[0]], &[name.clone()].into());
    assert!(more[0].metadata.name != more[1].metadata.name && more[0].metadata.name != Some(name));
}
