//! A Deployment has one `ReplicaSet` for each template that it ever had. The one for its present template is made in full; the
//! others are scaled down when it is available, or before it under `Recreate`.

use k8s_openapi::api::apps::v1::ReplicaSet;
use mainstay::conditions::{Conditions, State};
use mainstay::diff::content_hash;
use mainstay::readiness::readiness;
use mainstay::{Error, Kind, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::{count, kept, numbers, replicas, text};

/// On `ReplicaSets` and their pods, and in the selector: which template they are from.
const HASH: &str = "pod-template-hash";

pub(super) fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let deployment = request.parent_json();
    let spec = &deployment["spec"];
    let hash = &content_hash(&spec["template"])[..10];
    let name = format!("{}-{hash}", request.name());
    let kind = Kind::of::<ReplicaSet>();
    let sets: Vec<Value> = request.children_of(&kind).iter().map(|set| set.json()).collect();
    let (present, former): (Vec<&Value>, Vec<&Value>) =
        sets.iter().partition(|set| text(&set["metadata"]["name"]) == name);
    let present = present.first().copied();
    let is_rolled_out =
        present.is_some_and(|set| replicas(set) == replicas(deployment) && readiness(set).is_ready());
    let recreates = text(&spec["strategy"]["type"]) == "Recreate";
    let is_paused = spec["paused"] == true;

    let mut response = SyncResponse::from_status(status(request, &sets, present, is_rolled_out)?)?;
    for set in kept_history(&former, spec) {
        let goes = !is_paused && (is_rolled_out || recreates) && replicas(set) > 0;
        response.add_child(if goes {
            scaled_down(set)
        } else {
            kept("apps/v1", "ReplicaSet", name_of(set))
        })?;
    }
    if present.is_some() || !is_paused {
        let waits = recreates && former.iter().any(|set| !is_idle(set));
        let pods = if waits { 0 } else { replicas(deployment) };
        response.add_child(replica_set(deployment, &name, hash, pods))?;
    }
    Ok(response)
}

fn name_of(set: &Value) -> &str {
    text(&set["metadata"]["name"])
}

/// Whether it neither has nor wants pods.
fn is_idle(set: &Value) -> bool {
    replicas(set) == 0 && set["status"]["replicas"].as_i64().unwrap_or(0) == 0
}

/// All but the oldest of those that are idle.
fn kept_history<'a>(former: &[&'a Value], spec: &Value) -> Vec<&'a Value> {
    let limit =
        spec["revisionHistoryLimit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(10);
    let (mut idle, mut kept): (Vec<&Value>, Vec<&Value>) = former.iter().partition(|set| is_idle(set));
    idle.sort_by_key(|set| (text(&set["metadata"]["creationTimestamp"]), name_of(set)));
    kept.extend(idle.iter().rev().take(limit));
    kept
}

fn replica_set(deployment: &Value, name: &str, hash: &str, replicas: i64) -> Value {
    let (mut template, mut selector) =
        (deployment["spec"]["template"].clone(), deployment["spec"]["selector"].clone());
    template["metadata"]["labels"][HASH] = hash.into();
    selector["matchLabels"][HASH] = hash.into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": template["metadata"]["labels"]},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    })
}

/// All that it was made with, so that nothing is taken from it but its pods.
fn scaled_down(set: &Value) -> Value {
    let mut spec = set["spec"].clone();
    spec["replicas"] = 0.into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name_of(set), "labels": set["metadata"]["labels"]},
        "spec": spec,
    })
}

fn status(
    request: &SyncRequest,
    sets: &[Value],
    present: Option<&Value>,
    is_rolled_out: bool,
) -> Result<Value, Error> {
    let (deployment, now) = (request.parent_json(), request.now());
    let of = |set: &Value, field: &str| set["status"][field].as_i64().unwrap_or(0);
    let sum = |field: &str| sets.iter().map(|set| of(set, field)).sum::<i64>();
    let (wanted, available) = (replicas(deployment), sum("availableReplicas"));
    let counts = [
        ("replicas", sum("replicas")),
        ("updatedReplicas", present.map_or(0, |set| of(set, "replicas"))),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (wanted - available).max(0)),
    ];
    let mut status = numbers(&[], &counts);

    let mut conditions = Conditions::of_status(&deployment["status"]);
    let is_available = available >= wanted;
    let reason = if is_available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    let message = format!("{available} of {wanted} pods are available");
    conditions.set("Available", is_available.into(), reason, &message, None, now)?;
    let is_over = is_rolled_out && count(sets, |set| !is_idle(set)) <= 1;
    let (reason, message) = if is_over {
        ("NewReplicaSetAvailable", "the new ReplicaSet has taken over")
    } else {
        ("ReplicaSetUpdated", "the new ReplicaSet is taking over")
    };
    conditions.set("Progressing", State::True, reason, message, None, now)?;
    status.insert("conditions".into(), serde_json::to_value(conditions)?);
    Ok(Value::Object(status))
}
