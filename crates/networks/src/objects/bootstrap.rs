//! The Job that connects peers for the first time.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EnvVar, PodSpec, PodTemplateSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use mainstay::diff::content_hash;
use serde_json::{Value, json};

use super::{FILES, metadata, with_role};
use crate::config::{BootstrapConfig, NetworkConfig};
use crate::graph::EDGES_KEY;
use crate::kinds::labels::role;
use crate::peers::PEERS_KEY;
use crate::sizes::VARIABLE_BYTES_MAX;
use crate::topology::NamedEdges;

/// How often the Job is tried again.
const RETRIES: i32 = 4;
/// After so long it has failed; what is missing then is the operator's affair.
const DEADLINE_SECONDS: i64 = 600;
/// The volume with `peers.json`.
const VOLUME: &str = "peers";

/// The volume with the connections that are declared, if they are in a file, and where it is.
const EDGES_VOLUME: &str = "edges";
const EDGES_FILES: &str = "/bootstrap";

/// What the Job runs. Peers are read from the ConfigMap of the default name, and many edges from that of [`bootstrap_edges`].
pub fn bootstrap_job_spec(config: impl Into<BootstrapConfig>) -> JobSpec {
    job_spec(&config.into(), &NetworkConfig::default().peers_config_map)
}

fn job_spec(config: &BootstrapConfig, peers_config_map: &str) -> JobSpec {
    let mut mounts = vec![(VOLUME, peers_config_map.to_owned(), FILES)];
    if let DeclaredEdges::File { config_map, .. } = DeclaredEdges::of(config) {
        mounts.push((EDGES_VOLUME, config_map, EDGES_FILES));
    }
    let container = Container {
        name: "bootstrap".into(),
        image: Some(config.image.clone()),
        image_pull_policy: Some(config.image_pull_policy.clone()),
        args: Some(vec!["runner".into(), "bootstrap".into()]),
        env: Some(environment(config)),
        volume_mounts: Some(mounts.iter().map(|(volume, _, path)| mount(volume, path)).collect()),
        ..Container::default()
    };
    let pod = PodSpec {
        restart_policy: Some("Never".into()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        containers: vec![container],
        volumes: Some(
            mounts.iter().map(|(volume, config_map, _)| of_config_map(volume, config_map)).collect(),
        ),
        ..PodSpec::default()
    };
    JobSpec {
        backoff_limit: Some(RETRIES),
        active_deadline_seconds: Some(DEADLINE_SECONDS),
        template: PodTemplateSpec { metadata: None, spec: Some(pod) },
        ..JobSpec::default()
    }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}

fn of_config_map(volume: &str, config_map: &str) -> Volume {
    let source = ConfigMapVolumeSource { name: config_map.to_owned(), ..ConfigMapVolumeSource::default() };
    Volume { name: volume.into(), config_map: Some(source), ..Volume::default() }
}

/// How the Job gets the connections that are declared.
enum DeclaredEdges {
    /// In a variable.
    Variable(String),
    /// In a file, because a variable cannot hold them. The ConfigMap is named after its text, so that other edges make another Job.
    File { config_map: String, text: String },
}

impl DeclaredEdges {
    fn of(config: &BootstrapConfig) -> Self {
        let variable = json!(config.edges).to_string();
        if variable.len() <= VARIABLE_BYTES_MAX {
            return Self::Variable(variable);
        }
        let text = json!(NamedEdges::of(&config.edges)).to_string();
        Self::File { config_map: format!("bootstrap-edges-{}", content_hash(&json!(text))), text }
    }
}

/// The ConfigMap with the connections that are declared, if a variable cannot hold them.
pub fn bootstrap_edges(network: &str, config: &NetworkConfig) -> Option<Value> {
    match DeclaredEdges::of(&config.bootstrap) {
        DeclaredEdges::Variable(_) => None,
        DeclaredEdges::File { config_map, text } => Some(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(network, &config_map),
            "data": {EDGES_KEY: text},
        })),
    }
}

fn environment(config: &BootstrapConfig) -> Vec<EnvVar> {
    let edges = match DeclaredEdges::of(config) {
        DeclaredEdges::Variable(text) => ("BOOTSTRAP_EDGES", text),
        DeclaredEdges::File { .. } => ("BOOTSTRAP_EDGES_PATH", format!("{EDGES_FILES}/{EDGES_KEY}")),
    };
    let all = [
        ("BOOTSTRAP_METHOD", text(&json!(config.method))),
        ("BOOTSTRAP_N", config.degree.to_string()),
        ("BOOTSTRAP_PEERS_PATH", format!("{FILES}/{PEERS_KEY}")),
        ("BOOTSTRAP_SEED", config.seed.to_string()),
        edges,
        ("BOOTSTRAP_REWIRE_PERCENT", config.rewire_percent.to_string()),
    ];
    let variable = |(name, value): (&str, String)| EnvVar {
        name: name.to_owned(),
        value: Some(value),
        ..EnvVar::default()
    };
    all.into_iter().map(variable).collect()
}

/// A word as it is in JSON.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The name of the Job: another one whenever it would do something else.
pub fn bootstrap_job_name(config: &NetworkConfig) -> String {
    let made_from = json!(job_spec(&config.bootstrap, &config.peers_config_map));
    format!("bootstrap-{}", content_hash(&made_from))
}

/// The Job as it is made.
pub fn bootstrap_job(network: &str, config: &NetworkConfig) -> Value {
    let mut spec = job_spec(&config.bootstrap, &config.peers_config_map);
    let all = with_role(network, role::BOOTSTRAP);
    spec.template.metadata = Some(ObjectMeta { labels: Some(all.clone()), ..ObjectMeta::default() });
    let mut job = json!(Job { spec: Some(spec), ..Job::default() });
    job["metadata"] = metadata(network, &bootstrap_job_name(config));
    job["metadata"]["labels"] = json!(all);
    job
}
