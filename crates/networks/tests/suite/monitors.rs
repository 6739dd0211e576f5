//! Monitors come and go with their kind.

use mainstay::{Kind, Scope};
use serde_json::json;

use crate::suite::fixtures::in_each_world;

#[tokio::test(flavor = "multi_thread")]
async fn monitors_are_made_once_the_cluster_has_their_kind() {
    in_each_world(async |world| {
        let monitor = json!({"enabled": true, "path": "/numbers"});
        world.network("watched", json!({"monitoring": {"podMonitor": monitor}})).await;
        world.until_ready("watched").await;
        world
            .cluster
            .define(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "podmonitors.monitoring.coreos.com"},
                "spec": {
                    "group": "monitoring.coreos.com", "scope": "Namespaced",
                    "names": {
                        "kind": "PodMonitor", "plural": "podmonitors", "singular": "podmonitor", "listKind": "PodMonitorList",
                    },
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                        }},
                    }],
                },
            }))
            .await;
        let monitors = Kind::new("monitoring.coreos.com/v1", "PodMonitor", "podmonitors", Scope::Namespaced);
        let there = async || world.part("watched", &monitors, "peers-0").await;
        let monitor = world.until("watched", "a monitor", there).await;
        assert_eq!(monitor["spec"]["podMetricsEndpoints"][0]["path"], "/numbers");
        world.patch("watched", json!({"monitoring": {"podMonitor": {"enabled": false}}})).await;
        let gone = async || there().await.is_none().then_some(());
        world.until("watched", "the monitor to go", gone).await;
        world.until_ready("watched").await;
    })
    .await;
}
