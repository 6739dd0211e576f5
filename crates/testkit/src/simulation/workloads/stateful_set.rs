//! A `StatefulSet` has pods with numbers, made and replaced one after the other. Their claims are made when they are
//! absent, belong to nobody, and are never deleted.
//!
//! As in Kubernetes, an ordered set waits for a pod that never becomes ready even when a new template would mend it:
//! somebody has to delete that pod.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Api, PostParams};
use mainstay::diff::content_hash;
use mainstay::{Error, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::{LivePod, NAME, count, kept_pod, list, numbers, pod_from, replicas, text};

/// On pods: which template they are from.
const REVISION: &str = "controller-revision-hash";

/// Makes the claims that are missing, then answers. A claim is no child: it outlives the set and has no owner.
pub(super) async fn sync(request: SyncRequest, client: kube::Client) -> Result<SyncResponse, Error> {
    let set = request.parent_json();
    let mut response = SyncResponse::from_status(status(&request))?;
    let namespace = request.namespace().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, namespace);
    let parameters = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
    for pod in plan(set, request.name(), &LivePod::all(&request)) {
        for claim in claims_of(set, text(&pod["metadata"]["name"])) {
            if request.get::<PersistentVolumeClaim>(text(&claim["metadata"]["name"]))?.is_some() {
                continue;
            }
            match claims.create(&parameters, &serde_json::from_value(claim)?).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                made => drop(made?),
            }
        }
        response.add_child(pod)?;
    }
    Ok(response)
}

/// The pods that shall be there now: a step further than those that are.
fn plan(set: &Value, name: &str, live: &[LivePod]) -> Vec<Value> {
    let (wanted, revision) = (replicas(set), revision(set, name));
    let is_ordered = text(&set["spec"]["podManagementPolicy"]) != "Parallel";
    let find = |ordinal| live.iter().find(|pod| ordinal_of(&pod.name, name) == Some(ordinal));
    let mut pods = Vec::new();
    let mut all_ready = true;
    for ordinal in 0..wanted {
        match find(ordinal) {
            // An ended pod is left out, so it is deleted and then found missing.
            Some(pod) if pod.has_ended() => all_ready = false,
            Some(pod) => {
                pods.push(kept_pod(&pod.name));
                all_ready &= pod.is_ready();
            }
            None if is_ordered && !all_ready => {}
            None => {
                pods.push(member(set, name, ordinal, &revision));
                all_ready = false;
            }
        }
    }
    // The surplus goes from its end, one at a time.
    let mut surplus: Vec<(i64, &LivePod)> = live
        .iter()
        .filter_map(|pod| Some((ordinal_of(&pod.name, name)?, pod)))
        .filter(|(ordinal, _)| *ordinal >= wanted)
        .collect();
    surplus.sort_by_key(|(ordinal, _)| *ordinal);
    let has_surplus = surplus.pop().is_some();
    pods.extend(surplus.iter().map(|(_, pod)| kept_pod(&pod.name)));
    let rolls = text(&set["spec"]["updateStrategy"]["type"]) != "OnDelete";
    if rolls && all_ready && !has_surplus {
        let outdated = (0..wanted).rev().filter_map(find).find(|pod| pod.label(REVISION) != revision);
        pods.retain(|pod| outdated.is_none_or(|outdated| text(&pod["metadata"]["name"]) != outdated.name));
    }
    pods
}

fn ordinal_of(pod: &str, set: &str) -> Option<i64> {
    pod.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

fn revision(set: &Value, name: &str) -> String {
    format!("{name}-{}", &content_hash(&set["spec"]["template"])[..10])
}

fn member(set: &Value, name: &str, ordinal: i64, revision: &str) -> Value {
    let pod_name = format!("{name}-{ordinal}");
    let mut pod = pod_from(&set["spec"]["template"], &pod_name);
    let labels = &mut pod["metadata"]["labels"];
    labels[REVISION] = revision.into();
    labels["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
    labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    let claims: Vec<&str> = list(&set["spec"]["volumeClaimTemplates"])
        .iter()
        .map(|claim| text(&claim["metadata"]["name"]))
        .collect();
    let others = list(&pod["spec"]["volumes"])
        .iter()
        .filter(|volume| !claims.contains(&text(&volume["name"])))
        .cloned();
    let claimed = claims.iter().map(
        |claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": format!("{claim}-{pod_name}")}}),
    );
    let volumes: Vec<Value> = others.chain(claimed).collect();
    let spec = &mut pod["spec"];
    if !volumes.is_empty() {
        spec["volumes"] = volumes.into();
    }
    spec["hostname"] = pod_name.into();
    spec["subdomain"] = set["spec"]["serviceName"].clone();
    pod
}

/// The claims of one pod.
fn claims_of(set: &Value, pod: &str) -> Vec<Value> {
    let claims = list(&set["spec"]["volumeClaimTemplates"]).iter().map(|template| {
        let mut labels = template["metadata"]["labels"].clone();
        for (name, value) in set["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten() {
            labels[name] = value.clone();
        }
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": format!("{}-{pod}", text(&template["metadata"]["name"])),
                "labels": labels,
                "annotations": template["metadata"]["annotations"],
            },
            "spec": template["spec"],
        })
    });
    claims.collect()
}

fn status(request: &SyncRequest) -> Value {
    let set = request.parent_json();
    let pods = LivePod::all(request);
    let next = revision(set, request.name());
    let ready = count(&pods, LivePod::is_ready);
    let updated = count(&pods, |pod| pod.is_active() && pod.label(REVISION) == next);
    let active = count(&pods, LivePod::is_active);
    let known = text(&set["status"]["currentRevision"]);
    let is_over = updated == active || known.is_empty();
    let current = if is_over { next.as_str() } else { known };
    let counts = [
        ("replicas", active),
        ("readyReplicas", ready),
        ("availableReplicas", ready),
        ("updatedReplicas", updated),
        ("currentReplicas", count(&pods, |pod| pod.is_active() && pod.label(REVISION) == current)),
    ];
    let mut status = numbers(&["replicas", "availableReplicas"], &counts);
    status.insert("currentRevision".into(), json!(current));
    status.insert("updateRevision".into(), json!(next));
    Value::Object(status)
}
