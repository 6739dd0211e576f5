//! What runs a system in a cluster. Pure.
//!
//! A Deployment for each system: each has an account with the least rights, and its own health.

use super::permissions::Account;
use super::{APP, PORT};
use crate::output::Manifest;
use crate::systems::Reach;
use serde_json::{Value, json};

/// How it is to run.
pub(super) struct Pods<'a> {
    pub(super) image: &'a str,
    pub(super) replicas: u16,
    pub(super) reach: Reach<'a>,
}

/// The Deployment of a system. It runs by the account, in its namespace.
pub(super) fn deployment(system: &str, account: &Account, pods: &Pods<'_>) -> Manifest {
    let labels = json!({"app.kubernetes.io/name": APP, "app.kubernetes.io/component": system});
    // Without leases, two must never run at once, not even during an update.
    let strategy = if pods.reach.leases.is_some() { "RollingUpdate" } else { "Recreate" };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": account.name, "namespace": account.namespace, "labels": labels},
        "spec": {
            "replicas": pods.replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"type": strategy},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": account.name,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container(system, pods)],
                },
            },
        },
    })
}

fn container(system: &str, pods: &Pods<'_>) -> Value {
    let mut arguments = vec!["run".to_owned(), system.to_owned(), format!("--serve=0.0.0.0:{PORT}")];
    arguments.extend(pods.reach.namespace.map(|namespace| format!("--namespace={namespace}")));
    arguments.extend(pods.reach.leases.map(|namespace| format!("--leases={namespace}")));
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10});
    json!({
        "name": "mainstay",
        "image": pods.image,
        "args": arguments,
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/livez"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
    })
}
