//! kube-rs, unmodified, on the embedded and the real cluster: every entry point of `Api`, the watchers, a controller,
//! discovery, and the ways to connect.

mod api;
mod connections;
mod discovery;
mod operator;
mod subresources;
mod watching;
mod wire;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

/// A config map of one entry.
fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some([("value".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// With the label that tests select by: the namespace's own `kube-root-ca.crt` has none.
fn labelled(name: &str, label: &str) -> ConfigMap {
    let mut object = config_map(name, label);
    object.metadata.labels = Some([("app".to_owned(), label.to_owned())].into());
    object
}

/// An object of any kind from its JSON.
fn object<K: serde::de::DeserializeOwned>(tree: Value) -> K {
    serde_json::from_value(tree).expect("an object of its kind")
}

/// A pod of one container.
fn pod(name: &str) -> k8s_openapi::api::core::v1::Pod {
    object(json!({
        "metadata": {"name": name, "labels": {"app": "p"}},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "terminationGracePeriodSeconds": 0},
    }))
}

/// A deployment of two replicas.
fn deployment(name: &str) -> k8s_openapi::api::apps::v1::Deployment {
    object(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    }))
}

/// The Status that an error carries.
fn refusal<T: std::fmt::Debug>(answer: Result<T, kube::Error>) -> (u16, String) {
    match answer {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        other => panic!("not refused by the server: {other:?}"),
    }
}
