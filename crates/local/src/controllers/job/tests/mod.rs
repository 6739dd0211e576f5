//! Decisions about Jobs, told in a few lines each.

mod counting;
mod ends;
mod extremes;
mod indexed;
mod running;

use std::fmt::Write as _;

use expect_test::Expect;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::decide::{Decision, decide};
use super::members::{Member, Terms};

/// A Job and its pods, at a time.
struct World {
    job: Value,
    pods: Vec<Value>,
    now: Timestamp,
}

/// Seconds after the Job was started.
fn at(seconds: i64) -> String {
    (started() + SignedDuration::from_secs(seconds)).to_string()
}

fn started() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

/// A Job that was started a minute ago.
fn job(spec: Value) -> World {
    let mut whole = json!({
        "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "podReplacementPolicy": "TerminatingOrFailed", "selector": {"matchLabels": {"job": "x"}},
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}},
    });
    merge(&mut whole, spec);
    let job = json!({
        "metadata": {"name": "x", "namespace": "ns", "uid": "0000"}, "spec": whole,
        "status": {"startTime": at(0), "uncountedTerminatedPods": {}},
    });
    World { job, pods: Vec::new(), now: started() + SignedDuration::from_mins(1) }
}

fn merge(into: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { panic!("no object") };
    for (name, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(&name);
        } else {
            into[name] = value;
        }
    }
}

/// A pod in a phase; `Going` is one that runs and is being deleted.
fn pod(name: &str, phase: &str) -> Value {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "creationTimestamp": at(0),
            "finalizers": ["batch.kubernetes.io/job-tracking"], "labels": {"job": "x"},
        },
        "status": {"phase": phase},
    });
    match phase {
        "Running" => {
            pod["status"]["conditions"] =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(1)}]);
        }
        "Going" => {
            pod["status"]["phase"] = json!("Running");
            pod["metadata"]["deletionTimestamp"] = json!(at(55));
        }
        "Failed" => pod = ended(pod, 1, 55),
        "Succeeded" => pod = ended(pod, 0, 55),
        _ => {}
    }
    pod
}

/// With the exit code of its container, and when that ended.
fn ended(mut pod: Value, code: i32, seconds: i64) -> Value {
    pod["status"]["containerStatuses"] = json!([{
        "name": "main", "image": "work", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "finishedAt": at(seconds)}},
    }]);
    pod
}

/// Without the finalizer.
fn counted(mut pod: Value) -> Value {
    pod["metadata"]["finalizers"] = json!([]);
    pod
}

/// A pod of an index.
fn of_index(index: i32, mut pod: Value) -> Value {
    pod["metadata"]["annotations"] = json!({"batch.kubernetes.io/job-completion-index": index.to_string()});
    pod
}

impl World {
    fn pods(mut self, pods: impl IntoIterator<Item = Value>) -> Self {
        self.pods = pods.into_iter().collect();
        self
    }

    fn status(mut self, status: Value) -> Self {
        merge(&mut self.job["status"], status);
        self
    }

    fn at(mut self, seconds: i64) -> Self {
        self.now = started() + SignedDuration::from_secs(seconds);
        self
    }

    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.told());
    }

    fn told(&self) -> String {
        let job: Job = serde_json::from_value(self.job.clone()).unwrap();
        let pods: Vec<Pod> =
            self.pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
        tell(&decide(&job, &pods, self.now))
    }
}

fn tell(decision: &Decision<'_>) -> String {
    let mut text = String::new();
    let mut status = serde_json::to_value(&decision.status).unwrap();
    for (field, nothing) in
        [("ready", json!(0)), ("terminating", json!(0)), ("uncountedTerminatedPods", json!({}))]
    {
        if status[field] == nothing {
            status.as_object_mut().unwrap().remove(field);
        }
    }
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastProbeTime");
        *condition = json!(format!(
            "{}={} {}: {}",
            condition["type"].as_str().unwrap(),
            condition["status"].as_str().unwrap(),
            condition["reason"].as_str().unwrap(),
            condition["message"].as_str().unwrap()
        ));
    }
    let first = if decision.status_first { " first" } else { "" };
    writeln!(text, "status{first}: {status}").unwrap();
    let names = |members: &[Member<'_>]| members.iter().map(Member::name).collect::<Vec<_>>().join(" ");
    for (what, members) in [("let go", &decision.let_go), ("delete", &decision.deleted)] {
        if !members.is_empty() {
            writeln!(text, "{what}: {}", names(members)).unwrap();
        }
    }
    for new in &decision.new {
        write!(text, "new pod").unwrap();
        if let Some(index) = new.index {
            write!(text, " of index {index}").unwrap();
        }
        if let Some((counted, ignored)) = new.failures {
            write!(text, " after {counted} failures and {ignored} ignored").unwrap();
        }
        writeln!(text).unwrap();
    }
    if let Some(after) = decision.again_after {
        writeln!(text, "again in {} s", after.as_secs()).unwrap();
    }
    for event in &decision.events {
        writeln!(text, "event {}: {}", event.reason(), event.note()).unwrap();
    }
    text
}

/// Terms, for tests of parts.
fn terms(world: &World) -> Terms<'static> {
    let job: Job = serde_json::from_value(world.job.clone()).unwrap();
    Terms::from(Box::leak(Box::new(job.spec.unwrap())) as &'static _)
}
