use jiff::Timestamp;
use serde_json::{Value, json};

use super::{bare_template, class, run, stream};
use crate::job::{is_left_behind, job, read_job, read_schedule};
use crate::kinds::Purpose;
use crate::lifecycle::JobState;
use crate::wish::Stream;

fn at(minute: u8) -> Timestamp {
    time(minute).parse().unwrap()
}

fn time(minute: u8) -> String {
    format!("2026-01-01T00:{minute:02}:00Z")
}

#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn live(conditions: Value) -> Value {
    json!({
        "metadata": {"name": "eu-1", "uid": "j1", "creationTimestamp": time(0)},
        "status": {"startTime": time(1), "conditions": conditions},
    })
}

/// A pod of the Job `j1` with containers that ended at a minute with an exit code.
fn pod(name: &str, ended: &[(u8, i32)]) -> Value {
    let statuses = ended.iter().map(
        |(minute, code)| json!({"state": {"terminated": {"exitCode": code, "finishedAt": time(*minute)}}}),
    );
    json!({
        "metadata": {"name": name, "ownerReferences": [{"uid": "j1", "controller": true}]},
        "status": {"containerStatuses": statuses.collect::<Vec<_>>()},
    })
}

fn failed() -> Value {
    live(
        json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": time(9)}]),
    )
}

#[test]
fn a_job_that_was_made_is_read_as_the_run_that_it_is() {
    let (stream, class) = (stream(), class());
    let stream = Stream::new(&stream, &class);
    let mut made = job(&stream, &bare_template(), &run(Purpose::Stream), None).unwrap().children.remove(0);
    let read = read_job(&made, &[]);
    assert_eq!(read.name, "eu-0123456789-3");
    assert_eq!(read.run, Some(run(Purpose::Stream)));
    assert_eq!((read.state, read.is_deleting, read.is_held), (JobState::Running, false, true));
    made["metadata"]["deletionTimestamp"] = json!(time(5));
    made["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    made["metadata"]["annotations"]["mainstay.dev/run"] = json!("scribble");
    let read = read_job(&made, &[]);
    assert_eq!((read.run, read.is_deleting, read.is_held), (None, true, false));
}

#[test]
fn a_job_has_ended_when_a_condition_says_so() {
    let state = |conditions| read_job(&live(conditions), &[]).state;
    assert_eq!(state(json!([])), JobState::Running);
    assert_eq!(state(json!([{"type": "FailureTarget", "status": "True"}])), JobState::Running);
    assert_eq!(state(json!([{"type": "Failed", "status": "False"}])), JobState::Running);
    let complete = json!([{"type": "Complete", "status": "True", "lastTransitionTime": time(7)}]);
    assert_eq!(state(complete.clone()), JobState::Completed { at: at(7) });
    let mut job = live(complete);
    job["status"]["completionTime"] = json!(time(6));
    assert_eq!(read_job(&job, &[]).state, JobState::Completed { at: at(6) });
    let bare = json!([{"type": "Failed", "status": "True"}]);
    assert_eq!(
        state(bare),
        JobState::Failed { at: at(1), exit_code: None, reason: "Failed".into(), is_disrupted: false }
    );
}

#[test]
fn the_exit_code_is_of_the_first_container_to_fail_in_the_last_pod() {
    let code = |pods: &[Value]| match read_job(&failed(), pods).state {
        JobState::Failed { at: when, exit_code, reason, .. } => {
            assert_eq!((when, reason.as_str()), (at(9), "BackoffLimitExceeded"));
            exit_code
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(code(&[]), None);
    assert_eq!(code(&[pod("a", &[(2, 1)]), pod("b", &[(5, 137), (4, 7), (3, 0)])]), Some(7));
    assert_eq!(code(&[pod("b", &[(5, 7)]), pod("a", &[(2, 1)])]), Some(7));
    let mut foreign = pod("c", &[(8, 99)]);
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("j2");
    assert_eq!(code(&[foreign, pod("a", &[(2, 1)])]), Some(1));
    let mut restarted = pod("a", &[]);
    restarted["status"]["initContainerStatuses"] =
        json!([{"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 4}}}]);
    assert_eq!(code(&[restarted]), Some(4));
}

#[test]
fn a_schedule_tells_of_its_own_jobs_that_have_ended_the_oldest_first() {
    let cron_job = json!({"metadata": {"name": "eu-s", "uid": "c1"}});
    let of = |name: &str, owner: &str, minute: u8, condition: &str| {
        json!({
            "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}]},
            "status": {
                "startTime": time(minute),
                "conditions": [{"type": condition, "status": "True", "lastTransitionTime": time(minute + 1)}],
            },
        })
    };
    let jobs = [
        of("late", "c1", 5, "Failed"),
        of("running", "c1", 7, "Suspended"),
        of("early", "c1", 3, "Complete"),
        of("foreign", "c2", 4, "Complete"),
    ];
    let schedule = read_schedule(&cron_job, &jobs, &[]);
    assert_eq!((schedule.name.as_str(), schedule.run, schedule.is_deleting), ("eu-s", None, false));
    let late = JobState::Failed { at: at(6), exit_code: None, reason: "Failed".into(), is_disrupted: false };
    let expected = vec![
        ("early".to_owned(), at(3), JobState::Completed { at: at(4) }),
        ("late".to_owned(), at(5), late),
    ];
    assert_eq!(schedule.ended, expected);
}

#[test]
fn a_failure_is_one_once_its_pod_tells_of_it() {
    let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut job = json!({"metadata": {"name": "a", "uid": "1"}, "status": {"conditions": [failed]}});
    let pod = json!({"metadata": {"ownerReferences": [{"uid": "1"}]}, "status": {"phase": "Running"}});
    assert_eq!(read_job(&job, std::slice::from_ref(&pod)).state, JobState::Running);
    assert!(matches!(read_job(&job, &[]).state, JobState::Failed { exit_code: None, .. }));
    // Nothing is waited for once the Job is on its way out.
    job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:01Z");
    assert!(matches!(read_job(&job, &[pod]).state, JobState::Failed { exit_code: None, .. }));
}

#[test]
fn a_pod_is_left_behind_when_nobody_has_it_and_its_job_is_gone() {
    let check = |change: fn(&mut Value), job: &str| {
        let mut pod = json!({"metadata": {"name": "p", "labels": {"batch.kubernetes.io/job-name": "eu-1"}}});
        change(&mut pod);
        is_left_behind(&serde_json::from_value(pod).unwrap(), |name| name == job)
    };
    assert!(check(|_| {}, "eu-2"));
    assert!(!check(|_| {}, "eu-1"), "the Job may take it back");
    let kept: [fn(&mut Value); 4] = [
        |pod| {
            pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "eu-1", "uid": "j1", "controller": true}]);
        },
        |pod| pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]),
        |pod| pod["metadata"]["deletionTimestamp"] = json!(time(1)),
        |pod| pod["metadata"]["labels"] = json!({"mainstay.dev/stream-uid": "u"}),
    ];
    for change in kept {
        assert!(!check(change, "eu-2"));
    }
}

#[test]
fn a_job_that_failed_by_what_befell_its_pods_was_disrupted() {
    let failed_pod = |name: &str, status: Value| {
        let mut pod = pod(name, &[(2, 143)]);
        pod["status"]["phase"] = json!("Failed");
        pod["status"].as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        pod
    };
    let disrupted = || json!({"conditions": [{"type": "DisruptionTarget", "status": "True"}]});
    let is_disrupted = |limit: u64, pods: &[Value]| {
        let mut job = failed();
        job["spec"]["backoffLimit"] = json!(limit);
        matches!(read_job(&job, pods).state, JobState::Failed { is_disrupted: true, .. })
    };
    assert!(!is_disrupted(0, &[]));
    assert!(!is_disrupted(0, &[failed_pod("a", json!({}))]), "the code alone says nothing");
    assert!(is_disrupted(0, &[failed_pod("a", disrupted())]));
    assert!(is_disrupted(0, &[failed_pod("a", json!({"reason": "Evicted"}))]));
    assert!(is_disrupted(1, &[failed_pod("a", disrupted()), failed_pod("b", json!({}))]));
    assert!(!is_disrupted(0, &[failed_pod("a", disrupted()), failed_pod("b", json!({}))]));
}
