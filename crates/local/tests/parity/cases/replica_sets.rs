//! Replica sets and pods that are nobody's.

use serde_json::json;

use super::super::case::Case;
use super::{pods, replica_sets, template};

pub(crate) async fn adopts(mut case: Case) -> Case {
    let (sets, pods) = (replica_sets(), pods());
    let template = template("web:1", &json!({}));
    let stray = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stray", "labels": {"app": "web"}}, "spec": template["spec"]});
    case.create(stray).await;
    case.create(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}}))
        .await;
    let ready = |count: i64| move |set: &serde_json::Value| set["status"]["readyReplicas"] == count;
    case.until(&sets, "web", "ready", ready(2)).await;
    case.show("a pod was adopted", &[&sets, &pods]).await;
    case.patch(&pods, "stray", json!({"metadata": {"labels": {"app": "other"}}})).await;
    case.until(&sets, "web", "ready", ready(2)).await;
    case.show("and released", &[&sets, &pods]).await;
    case.patch(&sets, "web", json!({"spec": {"replicas": 0}})).await;
    case.until(&sets, "web", "empty", |set| set["status"]["replicas"] == 0).await;
    case.show("without replicas", &[&sets, &pods]).await;
    case
}
