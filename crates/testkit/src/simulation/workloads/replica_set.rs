//! A `ReplicaSet` has so many pods, under names that follow from its own. One that has ended is replaced.

use mainstay::diff::content_hash;
use mainstay::{Error, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::{LivePod, count, kept_pod, numbers, pod_from, replicas};

pub(super) fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let set = request.parent_json();
    let pods = LivePod::all(request);
    let mut response = SyncResponse::from_status(status(&pods))?;
    for ordinal in 0..replicas(set) {
        let name = pod_name(request.name(), ordinal);
        match pods.iter().find(|pod| pod.name == name) {
            None => response.add_child(pod_from(&set["spec"]["template"], &name))?,
            // Not being in the answer it is deleted, and then found missing.
            Some(pod) if pod.has_ended() => &mut response,
            Some(_) => response.add_child(kept_pod(&name))?,
        };
    }
    Ok(response)
}

fn status(pods: &[LivePod]) -> Value {
    let active = count(pods, LivePod::is_active);
    let ready = count(pods, LivePod::is_ready);
    let counts = [
        ("replicas", active),
        ("fullyLabeledReplicas", active),
        ("readyReplicas", ready),
        ("availableReplicas", ready),
    ];
    Value::Object(numbers(&["replicas"], &counts))
}

fn pod_name(set: &str, ordinal: i64) -> String {
    let hash = content_hash(&json!([set, ordinal]));
    format!("{set}-{}", &hash[..5])
}
