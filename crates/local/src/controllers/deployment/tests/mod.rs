mod laws;
mod moves;
mod revisions;
mod statuses;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use serde_json::{Value, json};

use super::limits::Wish;
use super::sizes::{Set, Sets};

/// A Deployment with changes to what it usually is.
fn deployment(changes: &Value) -> Deployment {
    let mut value = json!({
        "metadata": {"name": "web", "uid": "1", "generation": 2},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": template("web:1"),
        },
    });
    merge(&mut value, changes);
    serde_json::from_value(value).unwrap()
}

fn spec(changes: &Value) -> DeploymentSpec {
    deployment(&json!({"spec": changes})).spec.unwrap()
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    })
}

/// A set that the Deployment made for an image, with changes.
fn replica_set(name: &str, image: &str, changes: &Value) -> ReplicaSet {
    let mut value = json!({
        "metadata": {
            "name": name, "uid": name, "generation": 1, "creationTimestamp": "2030-01-01T00:00:00Z",
            "labels": {"app": "web", "pod-template-hash": name},
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web", "pod-template-hash": name}},
            "template": template(image),
        },
        "status": {"replicas": 0, "observedGeneration": 1},
    });
    value["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = name.into();
    merge(&mut value, changes);
    serde_json::from_value(value).unwrap()
}

fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(into.entry(name).or_insert(Value::Null), change);
            }
        }
        (into, changes) => *into = changes.clone(),
    }
}

fn wish(replicas: i32, surge: i32, unavailable: i32) -> Wish {
    Wish { replicas, rolls: true, surge, unavailable }
}

/// A set of which all pods are available, and which was told of three replicas and one more.
fn set(name: &str, size: i32) -> Set {
    Set {
        name: name.to_owned(),
        size,
        actual: size,
        available: size,
        desired: Some(3),
        most: Some(4),
        created: None,
    }
}

fn sets(new: Option<Set>, old: impl IntoIterator<Item = Set>) -> Sets {
    Sets { new, old: old.into_iter().collect() }
}
