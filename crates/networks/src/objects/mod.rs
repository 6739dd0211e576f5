//! Every object that a network consists of, from nothing but its name and config. Pure: the operator applies them, and `render` prints them.
//!
//! ```text
//! Namespace network-NAME
//! ├─ ConfigMap network-config   what peers are to know
//! ├─ Secret    network-secret   what their keys are made from
//! ├─ Service, StatefulSet       one of each for a group of peers
//! ├─ ConfigMap keramik-peers    the peers that answer
//! ├─ ConfigMap network-edges    how they are connected
//! ├─ ConfigMap bootstrap-edges-HASH   the connections that are declared, if a variable cannot hold them
//! ├─ Job       bootstrap-HASH   connects them
//! └─ PodMonitor                 one for a group, where the cluster has that kind
//! ```

mod bootstrap;
mod group;
mod monitor;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mainstay::diff::content_hash;
use serde_json::{Value, json};

use crate::config::NetworkConfig;
use crate::graph::{self, EDGES_KEY, Edges, OMITTED_KEY};
use crate::kinds::labels;
use crate::peers::{self, PEERS_KEY, Peer};

pub use bootstrap::{bootstrap_edges, bootstrap_job, bootstrap_job_name, bootstrap_job_spec};
pub use group::{replicas, service, stateful_set};
pub use monitor::{MONITORS, pod_monitor};

/// The name of the ConfigMap with what peers are to know.
pub const CONFIG_MAP: &str = "network-config";
/// The name of the ConfigMap with the connections that there are.
pub const EDGES_CONFIG_MAP: &str = "network-edges";
/// The name of the Secret that the keys of peers are made from, and its key.
pub const SECRET: (&str, &str) = ("network-secret", "secret");
/// Where files about the network are, in peers and in Jobs.
pub const FILES: &str = "/network";
/// The file with what peers are to know.
const CONFIG_KEY: &str = "config.json";

/// What objects depend on besides the config.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// What the keys of peers are made from; without it there is no Secret.
    pub secret: Option<&'a str>,
    /// The peers that answer, and how they are connected; without them there is no `peers.json`.
    pub peers: Option<(&'a [Peer], &'a Edges)>,
    /// Whether there is a Job that connects them.
    pub bootstrap: bool,
}

/// All of them, in the order in which they can be made. Monitors are apart: see [`pod_monitor`].
pub fn all(network: &str, config: &NetworkConfig, parts: &Parts<'_>) -> Vec<Value> {
    let mut all = vec![namespace(network), config_map(network, config)];
    all.extend(parts.secret.map(|text| secret(network, text)));
    for place in 0..config.peers.len() {
        all.push(service(network, config, place));
        all.push(stateful_set(network, config, place));
    }
    if let Some((peers, edges)) = parts.peers {
        all.push(peers_config_map(network, config, peers));
        all.push(edges_config_map(network, edges));
    }
    if parts.bootstrap {
        all.extend(bootstrap_edges(network, config));
        all.push(bootstrap_job(network, config));
    }
    all
}

/// Where all the others are.
pub fn namespace(network: &str) -> Value {
    let name = NetworkConfig::namespace(network);
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {labels::NETWORK: network}},
    })
}

/// What peers are to know, as the file that `NETWORK_CONFIG` names has it.
pub(crate) fn config_text(config: &NetworkConfig) -> String {
    json!({"networkType": config.network_type, "config": config.config}).to_string()
}

/// The hash of what peers are to know: they are restarted when it is another.
fn config_hash(config: &NetworkConfig) -> String {
    content_hash(&json!(config_text(config)))
}

fn config_map(network: &str, config: &NetworkConfig) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(network, CONFIG_MAP),
        "data": {CONFIG_KEY: config_text(config)},
    })
}

/// It is made once: the ids of peers follow from it.
fn secret(network: &str, text: &str) -> Value {
    let (name, key) = SECRET;
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata(network, name),
        "type": "Opaque", "immutable": true, "data": {key: base64(text)},
    })
}

fn peers_config_map(network: &str, config: &NetworkConfig, listed: &[Peer]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(network, &config.peers_config_map),
        "data": {PEERS_KEY: peers::write(listed)},
    })
}

fn edges_config_map(network: &str, edges: &Edges) -> Value {
    let (text, omitted) = graph::write(edges);
    let mut data = json!({EDGES_KEY: text});
    if omitted > 0 {
        data[OMITTED_KEY] = json!(omitted.to_string());
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(network, EDGES_CONFIG_MAP), "data": data,
    })
}

fn metadata(network: &str, name: &str) -> Value {
    json!({
        "name": name, "namespace": NetworkConfig::namespace(network), "labels": {labels::NETWORK: network},
    })
}

/// The labels of what has a part in the network.
fn with_role(network: &str, role: &str) -> BTreeMap<String, String> {
    let all = [(labels::NETWORK, network), (labels::ROLE, role)];
    all.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// As the data of Secrets is written.
fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}
