//! Deployments.

use serde_json::{Value, json};

use super::super::case::Case;
use super::{deployments, is_observed, pods, replica_sets, template};

fn deployment(image: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template(image, &json!({}))},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn is_rolled_out(object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    is_observed(object)
        && status["updatedReplicas"] == spec["replicas"]
        && status["replicas"] == spec["replicas"]
        && status["availableReplicas"] == spec["replicas"]
}

pub(crate) async fn rolls(mut case: Case) -> Case {
    let (deployments, sets, pods) = (deployments(), replica_sets(), pods());
    let all = [&deployments, &sets, &pods];
    case.create(deployment("web:1", &json!({}))).await;
    case.until(&deployments, "web", "available", is_rolled_out).await;
    case.show("created", &all).await;
    case.patch(&deployments, "web", image("web:2")).await;
    case.until(&deployments, "web", "rolled out", is_rolled_out).await;
    case.show("with another image", &all).await;
    case.patch(&deployments, "web", json!({"spec": {"replicas": 5}})).await;
    case.until(&deployments, "web", "scaled", is_rolled_out).await;
    case.show("with five replicas", &[&deployments, &sets]).await;
    case.patch(&deployments, "web", image("web:1")).await;
    case.until(&deployments, "web", "rolled back", is_rolled_out).await;
    case.show("with the first image again", &all).await;
    case.patch(&deployments, "web", json!({"spec": {"paused": true}})).await;
    case.patch(&deployments, "web", image("web:3")).await;
    case.until(&deployments, "web", "observed", is_observed).await;
    case.show("paused, with a third image", &[&deployments, &sets]).await;
    case.patch(&deployments, "web", json!({"spec": {"paused": false, "revisionHistoryLimit": 1}})).await;
    case.until(&deployments, "web", "rolled out", is_rolled_out).await;
    case.show("resumed, with one old replica set kept", &[&deployments, &sets]).await;
    case.patch(&deployments, "web", json!({"spec": {"replicas": 0}})).await;
    case.until(&deployments, "web", "observed", is_observed).await;
    case.show("with no replicas", &all).await;
    case
}

pub(crate) async fn recreates(mut case: Case) -> Case {
    let (deployments, sets, pods) = (deployments(), replica_sets(), pods());
    let strategy = json!({"replicas": 1, "strategy": {"type": "Recreate"}});
    case.create(deployment("web:1", &strategy)).await;
    case.until(&deployments, "web", "available", is_rolled_out).await;
    case.patch(&deployments, "web", image("web:2")).await;
    case.until(&deployments, "web", "rolled out", is_rolled_out).await;
    case.show("with another image", &[&deployments, &sets, &pods]).await;
    case.show_order("order");
    case
}

pub(crate) async fn stalls(mut case: Case) -> Case {
    let (deployments, sets, pods) = (deployments(), replica_sets(), pods());
    let more = json!({"replicas": 2, "progressDeadlineSeconds": 2, "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}});
    case.create(deployment("web:1", &more)).await;
    case.until(&deployments, "web", "available", is_rolled_out).await;
    let mut broken = image("web:broken");
    broken["spec"]["template"]["metadata"]["annotations"] = json!({super::super::side::UNPULLABLE: "true"});
    case.patch(&deployments, "web", broken).await;
    case.show("with an image that cannot be pulled", &[&deployments, &sets, &pods]).await;
    case
}
