//! Claims and volumes that are there before them.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams};
use mainstay::Kind;
use serde_json::{Value, json};

use super::super::case::Case;
use super::super::side::NO_CLASS;

/// A volume for one claim; its name is no other case's.
pub(crate) fn volume(name: &str, namespace: &str, claim: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("{name}-{namespace}")},
        "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": NO_CLASS,
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp"},
            "claimRef": {"namespace": namespace, "name": claim}}})
}

fn claim(name: &str, size: &str, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": size}}}})
}

pub(crate) async fn are_bound(mut case: Case) -> Case {
    let (volumes, claims) = (Kind::of::<PersistentVolume>(), Kind::of::<PersistentVolumeClaim>());
    let namespace = case.cluster.namespace().to_owned();
    let class = format!("class-{namespace}");
    for (name, size) in [("small", "1Gi"), ("large", "10Gi")] {
        let mut volume = volume(name, &namespace, "nobody");
        volume["spec"]["claimRef"] = Value::Null;
        volume["spec"]["storageClassName"] = json!(class);
        volume["spec"]["capacity"]["storage"] = json!(size);
        case.cluster.create(volume).await;
        // A claim passes over a volume that is not available yet, and takes a larger one that is.
        let name = format!("{name}-{namespace}");
        case.until(&volumes, &name, "available", |volume| volume["status"]["phase"] == "Available").await;
    }
    case.create(claim("fits", "1Gi", &class)).await;
    case.until(&claims, "fits", "bound", |claim| claim["status"]["phase"] == "Bound").await;
    case.create(claim("also", "5Gi", &class)).await;
    case.until(&claims, "also", "bound", |claim| claim["status"]["phase"] == "Bound").await;
    case.create(claim("waits", "1Gi", &class)).await;
    case.show("claims", &[&claims]).await;
    case
}

pub(crate) async fn are_made_for_ephemeral_volumes(mut case: Case) -> Case {
    let (pods, claims) = (super::pods(), Kind::of::<PersistentVolumeClaim>());
    let namespace = case.cluster.namespace().to_owned();
    case.cluster.create(volume("ephemeral", &namespace, "web-cache")).await;
    let template = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"for": "a while"}},
        "spec": claim("any", "1Gi", NO_CLASS)["spec"]});
    let spec = json!({"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "web:1"}],
        "volumes": [{"name": "cache", "ephemeral": {"volumeClaimTemplate": template}}]});
    case.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})).await;
    case.until(&pods, "web", "runs", |pod| pod["status"]["phase"] == "Running").await;
    case.show("made for the pod", &[&pods, &claims]).await;
    let api: Api<Pod> = Api::namespaced(case.cluster.client(), &namespace);
    api.delete("web", &DeleteParams::default()).await.unwrap();
    case.show("gone with the pod", &[&pods, &claims]).await;
    case
}
