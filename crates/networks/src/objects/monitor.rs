//! What Prometheus' operator is asked for.

use serde_json::{Value, json};

use super::metadata;
use crate::config::NetworkConfig;
use crate::kinds::labels;

/// The definition that has to be there: its name, group, version, kind and plural.
pub const MONITORS: [&str; 5] =
    ["podmonitors.monitoring.coreos.com", "monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"];

/// The monitor of a group of peers.
pub fn pod_monitor(network: &str, config: &NetworkConfig, place: usize) -> Value {
    let name = config.group_name(place);
    let [_, group, version, kind, _] = MONITORS;
    let monitor = &config.monitoring.pod_monitor;
    let mut spec = json!({
        "selector": {"matchLabels": {labels::NETWORK: network, labels::GROUP: name}},
        "podMetricsEndpoints": [{"port": monitor.port, "path": monitor.path}],
    });
    if !monitor.pod_target_labels.is_empty() {
        spec["podTargetLabels"] = json!(monitor.pod_target_labels);
    }
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": metadata(network, &name), "spec": spec,
    })
}
