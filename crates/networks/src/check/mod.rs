//! What is wrong with what users wrote, beyond what a schema can say. Pure.
//!
//! All problems are told at once, each with the path of its field as it is in YAML. Ranges that the schema has are looked at again, because
//! manifests are rendered and planned without an API server, too.

mod bootstrap;
mod connections;
mod groups;
mod names;
mod simulation;
#[cfg(test)]
mod tests;

use std::fmt;

pub use simulation::{simulation_name_problems, simulation_problems};

use crate::config::{Lifetime, NetworkConfig};
use crate::kinds::NetworkSpec;
use crate::objects::{CONFIG_MAP, EDGES_CONFIG_MAP, config_text};
use crate::sizes::{CONFIG_MAP_BYTES_MAX, in_json};

/// The most peers of a network.
pub const MOST_PEERS: i32 = 2000;
/// The most connections that a network declares.
pub const MOST_CONNECTIONS: u64 = 100_000;
/// The most groups of peers.
pub const MOST_GROUPS: usize = 10;

/// What others call their ConfigMap in a network's namespace.
const TAKEN_CONFIG_MAPS: [&str; 3] = [CONFIG_MAP, EDGES_CONFIG_MAP, "kube-root-ca.crt"];

/// Something that is wrong with what a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: `spec.peers[1].weight`.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Problems as they are found.
#[derive(Default)]
struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { path: path.into(), message: message.into() });
    }

    fn add_some(&mut self, path: impl Into<String>, message: Option<String>) {
        if let Some(message) = message {
            self.add(path, message);
        }
    }

    fn within(&mut self, path: impl Into<String>, value: i32, least: i32, most: i32) {
        if value < least || value > most {
            self.add(path, format!("must be from {least} to {most}, not {value}"));
        }
    }

    fn not_empty(&mut self, path: impl Into<String>, text: &str) {
        if text.is_empty() {
            self.add(path, "must not be empty");
        }
    }

    fn pull_policy(&mut self, path: impl Into<String>, policy: &str) {
        if !["Always", "IfNotPresent", "Never"].contains(&policy) {
            self.add(path, format!("must be Always, IfNotPresent or Never, not {policy:?}"));
        }
    }
}

/// What is wrong with a network of this name. The config is that of the spec.
pub fn problems(spec: &NetworkSpec, config: &NetworkConfig, name: &str) -> Vec<Problem> {
    let mut found = Found::default();
    bootstrap::check_names(spec, &mut found);
    // The name of the namespace is a label, too.
    let most = names::LABEL_LENGTH - NetworkConfig::namespace("").len();
    found.add_some("metadata.name", names::label(name, most));
    found.within("spec.replicas", config.replicas, 1, MOST_PEERS);
    groups::check(config, &mut found);
    bootstrap::check(config, &mut found);
    connections::check(config, &mut found);
    found.within("spec.topology.observeSeconds", config.topology.observe_seconds, 1, 3600);
    if let Lifetime::Seconds(seconds) = config.ttl_seconds
        && seconds < 1
    {
        found.add("spec.ttlSeconds", format!("must be at least 1, not {seconds}"));
    }
    let bytes = in_json(&config_text(config));
    if bytes > CONFIG_MAP_BYTES_MAX {
        let message =
            format!("must have at most {CONFIG_MAP_BYTES_MAX} bytes as JSON in a ConfigMap, not {bytes}");
        found.add("spec.config", message);
    }
    let map = config.peers_config_map.as_str();
    if TAKEN_CONFIG_MAPS.contains(&map) {
        let message = format!("must not be {map:?}, because a network has another ConfigMap of that name");
        found.add("spec.peersConfigMap", message);
    } else {
        found.add_some("spec.peersConfigMap", names::subdomain(map));
    }
    found.0
}
