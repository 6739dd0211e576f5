//! Stateful sets.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use mainstay::Kind;
use serde_json::{Value, json};

use super::super::case::Case;
use super::{is_observed, pods, revisions, stateful_sets, template};

fn set(image: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "web"}},
            "template": template(image, &json!({}))},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn is_complete(set: &Value) -> bool {
    let (spec, status) = (&set["spec"], &set["status"]);
    is_observed(set)
        && status["availableReplicas"] == spec["replicas"]
        && status["replicas"] == spec["replicas"]
}

fn is_updated(set: &Value) -> bool {
    is_complete(set) && set["status"]["currentRevision"] == set["status"]["updateRevision"]
}

pub(crate) async fn ordered(mut case: Case) -> Case {
    let (sets, pods, revisions) = (stateful_sets(), pods(), revisions());
    let claims = Kind::of::<PersistentVolumeClaim>();
    let class = super::super::side::NO_CLASS;
    let template = json!([{"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}}]);
    case.cluster.create(super::volumes::volume("v0", case.cluster.namespace(), "data-db-0")).await;
    case.cluster.create(super::volumes::volume("v1", case.cluster.namespace(), "data-db-1")).await;
    case.cluster.create(super::volumes::volume("v2", case.cluster.namespace(), "data-db-2")).await;
    case.create(set("db:1", &json!({"volumeClaimTemplates": template}))).await;
    case.until(&sets, "db", "complete", is_complete).await;
    case.show("created", &[&sets, &revisions, &pods]).await;
    let mut bound = image("db:2");
    bound["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 2}});
    case.patch(&sets, "db", bound).await;
    case.until(&sets, "db", "partly updated", |set| {
        set["status"]["updatedReplicas"] == 1 && is_complete(set)
    })
    .await;
    case.show("updated down to the partition", &[&sets, &revisions, &pods]).await;
    case.patch(&sets, "db", json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})).await;
    case.until(&sets, "db", "updated", is_updated).await;
    case.show("updated", &[&sets, &revisions]).await;
    case.patch(&sets, "db", json!({"spec": {"replicas": 1}})).await;
    case.until(&sets, "db", "scaled", is_updated).await;
    case.show("scaled down", &[&sets, &revisions, &pods]).await;
    let mut names = case.names(&claims).await;
    names.sort();
    assert_eq!(names, ["data-db-0", "data-db-1", "data-db-2"], "claims stay");
    case.show_order("order");
    case
}

pub(crate) async fn parallel(mut case: Case) -> Case {
    let (sets, pods, revisions) = (stateful_sets(), pods(), revisions());
    let more = json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}, "replicas": 2});
    case.create(set("db:1", &more)).await;
    case.until(&sets, "db", "complete", is_complete).await;
    case.show("created", &[&sets, &revisions, &pods]).await;
    case.patch(&sets, "db", image("db:2")).await;
    case.until(&sets, "db", "updated", is_updated).await;
    case.patch(&sets, "db", image("db:1")).await;
    case.until(&sets, "db", "rolled back", is_updated).await;
    case.show("with the first image again", &[&sets, &revisions, &pods]).await;
    case
}
