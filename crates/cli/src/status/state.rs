//! Whether an object does its work, as a person wants to know it. Pure.

use crate::systems::{self, Parent, System};
use mainstay::readiness::{Readiness, readiness};
use mainstay_streams::kinds::labels;
use serde_json::Value;

/// Of an object that a system should look after, and none does.
pub(super) const UNSEEN: &str = "no operator has seen it";

/// How an object does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// It has ended well, or whom it belongs to has.
    Done,
    /// It does not, for this reason.
    NotReady(String),
}

impl State {
    pub(crate) fn is_fine(&self) -> bool {
        !matches!(self, State::NotReady(_))
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            State::Ready => "yes",
            State::Done => "done",
            State::NotReady(_) => "no",
        }
    }

    pub(crate) fn why(&self) -> &str {
        match self {
            State::NotReady(why) => why,
            State::Ready | State::Done => "",
        }
    }
}

/// How an object does, given how its owner does.
pub(crate) fn state(object: &Value, owner: Option<&State>) -> State {
    let is_pod = object["kind"] == "Pod" && object["apiVersion"] == "v1";
    let phase = object.pointer("/status/phase").and_then(Value::as_str);
    // A Job that is complete keeps the pods of its failed attempts too.
    if is_pod && (phase == Some("Succeeded") || owner == Some(&State::Done)) {
        return State::Done;
    }
    if is_unseen(object) {
        return State::NotReady(UNSEEN.to_owned());
    }
    let is_job = object["kind"] == "Job" && object["apiVersion"] == "batch/v1";
    match readiness(object) {
        Readiness::Ready if is_job => State::Done,
        Readiness::Ready => State::Ready,
        // The Job of a stream does its work while it runs.
        Readiness::NotReady(_)
            if is_job && is_of_a_stream(object) && object["status"]["ready"].as_i64() > Some(0) =>
        {
            State::Ready
        }
        Readiness::NotReady(_) if is_job && failed(object).is_some() => {
            State::NotReady(failed(object).unwrap_or_default())
        }
        Readiness::NotReady(why) if is_pod => State::NotReady(pod_reason(object).unwrap_or(why)),
        Readiness::NotReady(why) => State::NotReady(why),
    }
}

fn is_of_a_stream(object: &Value) -> bool {
    object["metadata"]["labels"].get(labels::STREAM_UID).is_some()
}

/// Whether it is of a kind that a system looks after, and none has: an operator writes a status first of all.
fn is_unseen(object: &Value) -> bool {
    let is_parent = |parent: &Parent| {
        parent.has_status
            && object["kind"] == parent.kind.kind()
            && object["apiVersion"] == parent.kind.api_version()
    };
    let is_empty = object.get("status").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    is_empty && systems::ALL.iter().flat_map(System::parents).flatten().any(|parent| is_parent(&parent))
}

/// Why a Job has failed, if it has.
fn failed(job: &Value) -> Option<String> {
    let conditions = job.pointer("/status/conditions")?.as_array()?;
    let failed = conditions.iter().find(|one| one["type"] == "Failed" && one["status"] == "True")?;
    let message = failed["message"].as_str().filter(|text| !text.is_empty());
    message.or(failed["reason"].as_str()).map(str::to_owned)
}

/// What keeps a pod from running, nearer to the cause than its condition: a container that waits or has ended, or no node.
fn pod_reason(pod: &Value) -> Option<String> {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let statuses = |field: &str| {
        pod.pointer(&format!("/status/{field}")).and_then(Value::as_array).into_iter().flatten()
    };
    let containers = statuses("initContainerStatuses").chain(statuses("containerStatuses"));
    let stuck = containers.filter(|container| container["ready"] != true).find_map(|container| {
        let name = container["name"].as_str()?;
        let state = &container["state"];
        let told = ["waiting", "terminated"].into_iter().find_map(|word| state[word].as_object())?;
        let text = |field: &str| told.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        if told.get("exitCode").and_then(Value::as_i64) == Some(0) {
            return None;
        }
        let reason = text("reason")?;
        Some(match text("message") {
            Some(message) => format!("container {name}: {reason}: {message}"),
            None => format!("container {name}: {reason}"),
        })
    });
    stuck.or_else(|| {
        let conditions = pod.pointer("/status/conditions")?.as_array()?;
        let unscheduled =
            conditions.iter().find(|one| one["type"] == "PodScheduled" && one["status"] == "False")?;
        unscheduled["message"].as_str().map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "status": status})
    }

    #[test]
    fn a_pod_tells_what_its_container_waits_for() {
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        let status = json!({"phase": "Pending",
            "conditions": [{"type": "Ready", "status": "False", "message": "containers with unready status: [web]"}],
            "containerStatuses": [{"name": "web", "ready": false, "state": waiting}]});
        let told = State::NotReady("container web: ImagePullBackOff: no such image".into());
        assert_eq!(state(&pod(&status), None), told);
    }

    #[test]
    fn a_pod_without_a_node_tells_why() {
        let status = json!({"phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]});
        assert_eq!(state(&pod(&status), None), State::NotReady("0/1 nodes are available".into()));
    }

    #[test]
    fn an_object_that_no_operator_has_seen_is_not_ready() {
        let mut app = json!({"apiVersion": "examples.mainstay.dev/v1", "kind": "WebApp", "status": {}});
        assert_eq!(state(&app, None), State::NotReady("no operator has seen it".into()));
        app["status"]["readyReplicas"] = json!(2);
        assert_eq!(state(&app, None), State::Ready);
        app["apiVersion"] = json!("example.com/v1");
        app["status"] = json!({});
        assert_eq!(state(&app, None), State::Ready, "of other kinds nobody knows");
    }

    #[test]
    fn what_has_ended_well_is_done() {
        let ended = json!({"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]});
        assert_eq!(state(&pod(&ended), None), State::Done);
        let job = |kind: &str, message: &str| {
            json!({"apiVersion": "batch/v1", "kind": "Job",
                "status": {"conditions": [{"type": kind, "status": "True", "message": message}]}})
        };
        assert_eq!(state(&job("Complete", ""), None), State::Done);
        assert_eq!(state(&job("Failed", "too late"), None), State::NotReady("too late".into()));
        let attempt = pod(&json!({"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]}));
        assert_eq!(state(&attempt, Some(&State::Done)), State::Done);
        assert!(!state(&attempt, Some(&State::Ready)).is_fine());
    }
}
