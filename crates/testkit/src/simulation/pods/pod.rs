//! A pod starts a second after it was made, once its claims are bound, and ends five seconds later if it is one that ends.
//!
//! Each answer is the status as it is with the next phase laid over it. A pod that has started is looked at again only to
//! let it end, so what others write into its status stays.

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use mainstay::conditions::{Conditions, State};
use mainstay::diff::content_hash;
use mainstay::{Error, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::{list, seconds, still_to_wait, text};

const STARTED_AFTER: Duration = Duration::from_secs(1);
const ENDED_AFTER: Duration = Duration::from_secs(5);
/// Why a pod is not ready whose image cannot be pulled.
const STUCK: &str = "ContainersNotReady";

/// What becomes of a pod next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing.
    Stays,
    /// Something, after this time.
    Waits(Duration),
    /// An image cannot be pulled.
    CannotStart,
    Starts,
    Ends {
        well: bool,
    },
}

pub(super) fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    match next(request)? {
        Next::Stays => Ok(SyncResponse::new()),
        Next::Waits(time) => Ok(SyncResponse::new().requeue_after(time)),
        Next::CannotStart => SyncResponse::from_status(stuck(request)?),
        Next::Starts => {
            let response = SyncResponse::from_status(started(request)?)?;
            Ok(if is_task(request.parent_json()) { response.requeue_after(ENDED_AFTER) } else { response })
        }
        Next::Ends { well } => SyncResponse::from_status(ended(request, well)?),
    }
}

fn next(request: &SyncRequest) -> Result<Next, Error> {
    let pod = request.parent_json();
    if !text(&pod["spec"]["nodeName"]).is_empty() {
        return Ok(Next::Stays);
    }
    let (status, now) = (&pod["status"], request.now());
    Ok(match text(&status["phase"]) {
        "Pending" if !are_claims_bound(request)? => Next::Stays,
        "Pending" => match still_to_wait(&pod["metadata"]["creationTimestamp"], STARTED_AFTER, now) {
            Some(wait) => Next::Waits(wait),
            None if !has_image(pod, "broken") => Next::Starts,
            None if is_known_as_stuck(status) => Next::Stays,
            None => Next::CannotStart,
        },
        "Running" if is_task(pod) => match still_to_wait(&status["startTime"], ENDED_AFTER, now) {
            Some(wait) => Next::Waits(wait),
            None => Next::Ends { well: !has_image(pod, "failing") },
        },
        _ => Next::Stays,
    })
}

/// Whether its containers end by themselves.
fn is_task(pod: &Value) -> bool {
    matches!(text(&pod["spec"]["restartPolicy"]), "Never" | "OnFailure")
}

fn has_image(pod: &Value, word: &str) -> bool {
    let containers = [&pod["spec"]["initContainers"], &pod["spec"]["containers"]];
    containers.into_iter().flat_map(list).any(|container| text(&container["image"]).contains(word))
}

fn are_claims_bound(request: &SyncRequest) -> Result<bool, Error> {
    for volume in list(&request.parent_json()["spec"]["volumes"]) {
        let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() else { continue };
        let claim = request.get::<PersistentVolumeClaim>(name)?;
        let phase = claim.and_then(|claim| claim.status?.phase);
        if phase.as_deref() != Some("Bound") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_known_as_stuck(status: &Value) -> bool {
    Conditions::of_status(status).get("Ready").is_some_and(|ready| ready.reason == STUCK)
}

fn stuck(request: &SyncRequest) -> Result<Value, Error> {
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "the image cannot be pulled"}});
    let unready = (State::False, STUCK, "an image cannot be pulled");
    let mut status = with_conditions(request, unready)?;
    status["containerStatuses"] = containers(request.parent_json(), &waiting, false);
    Ok(status)
}

fn started(request: &SyncRequest) -> Result<Value, Error> {
    let now = seconds(request.now());
    let stem = request.parent_json()["metadata"]["generateName"].as_str();
    let address = address(request.namespace().unwrap_or_default(), stem.unwrap_or(request.name()));
    let mut status = with_conditions(request, (State::True, "Started", "all of its containers run"))?;
    status["phase"] = "Running".into();
    status["startTime"] = json!(now);
    status["podIPs"] = json!([{"ip": address}]);
    status["podIP"] = address.into();
    status["containerStatuses"] =
        containers(request.parent_json(), &json!({"running": {"startedAt": now}}), true);
    Ok(status)
}

fn ended(request: &SyncRequest, well: bool) -> Result<Value, Error> {
    let pod = request.parent_json();
    let (phase, reason, code) = if well { ("Succeeded", "Completed", 0) } else { ("Failed", "Error", 1) };
    let unready = if well { "PodCompleted" } else { "PodFailed" };
    let terminated = json!({"terminated": {
        "exitCode": code,
        "reason": reason,
        "startedAt": pod["status"]["startTime"],
        "finishedAt": seconds(request.now()),
    }});
    let mut status = with_conditions(request, (State::False, unready, "its containers have ended"))?;
    status["phase"] = phase.into();
    status["containerStatuses"] = containers(pod, &terminated, false);
    Ok(status)
}

/// The status as it is, with what is said of the pod being ready.
fn with_conditions(request: &SyncRequest, ready: (State, &str, &str)) -> Result<Value, Error> {
    let mut status = request.parent_json()["status"].clone();
    let mut conditions = Conditions::of_status(&status);
    for (name, (state, reason, message)) in [
        ("PodScheduled", (State::True, "Scheduled", "it needs no node")),
        ("Initialized", (State::True, "Initialized", "its init containers have ended")),
        ("ContainersReady", ready),
        ("Ready", ready),
    ] {
        conditions.set(name, state, reason, message, None, request.now())?;
    }
    status["conditions"] = serde_json::to_value(conditions)?;
    Ok(status)
}

fn containers(pod: &Value, state: &Value, ready: bool) -> Value {
    let told = list(&pod["spec"]["containers"]).iter().map(|container| {
        json!({
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
        })
    });
    told.collect()
}

/// An address that follows from the name; of one that was generated from what is the same each time.
fn address(namespace: &str, name: &str) -> String {
    let hash = u64::from_str_radix(&content_hash(&json!([namespace, name])), 16).unwrap_or_default();
    let [a, b, c, ..] = hash.to_be_bytes();
    format!("10.{a}.{b}.{c}")
}
