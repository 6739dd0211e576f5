//! What every cluster has from the start.

use super::create;
use crate::builtin::rules::json::text_at;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Key;
use serde_json::{Value, json};

const WHO: &str = "apiserver-bootstrap";

/// Makes what is missing of the objects that every cluster has.
pub(crate) async fn run(server: &Server) -> Result<(), ApiError> {
    for name in ["kube-system", "kube-public", "kube-node-lease", "default"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        ensure(server, "", "v1", "namespaces", namespace).await?;
    }
    for (name, value, what) in [
        ("system-cluster-critical", 2_000_000_000, "Pods without which the cluster does not work."),
        ("system-node-critical", 2_000_001_000, "Pods without which their node does not work."),
    ] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": what, "preemptionPolicy": "PreemptLowerPriority",
        });
        ensure(server, "scheduling.k8s.io", "v1", "priorityclasses", class).await?;
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        },
        "status": {"loadBalancer": {}},
    });
    ensure(server, "", "v1", "services", service).await
}

async fn ensure(
    server: &Server,
    group: &str,
    version: &str,
    plural: &str,
    object: Value,
) -> Result<(), ApiError> {
    let Some(kind) = server.registry.find(group, version, plural) else { return Ok(()) };
    let key = Key::new(text_at(&object, "/metadata/namespace"), text_at(&object, "/metadata/name"));
    if server.store.get(&kind.collection, &key).is_some() {
        return Ok(());
    }
    create(server, kind, &key, object, WHO).await
}
