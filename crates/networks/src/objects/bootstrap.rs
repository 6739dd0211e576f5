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
use crate::kinds::labels::role;
use crate::peers::PEERS_KEY;

/// How often the Job is tried again.
const RETRIES: i32 = 4;
/// After so long it has failed; what is missing then is the operator's affair.
const DEADLINE_SECONDS: i64 = 600;
/// The volume with `peers.json`.
const VOLUME: &str = "peers";

/// What the Job runs. Peers are read from the ConfigMap of the default name.
pub fn bootstrap_job_spec(config: impl Into<BootstrapConfig>) -> JobSpec {
    job_spec(&config.into(), &NetworkConfig::default().peers_config_map)
}

fn job_spec(config: &BootstrapConfig, peers_config_map: &str) -> JobSpec {
    let container = Container {
        name: "bootstrap".into(),
        image: Some(config.image.clone()),
        image_pull_policy: Some(config.image_pull_policy.clone()),
        args: Some(vec!["runner".into(), "bootstrap".into()]),
        env: Some(environment(config)),
        volume_mounts: Some(vec![VolumeMount {
            name: VOLUME.into(),
            mount_path: FILES.into(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    let peers =
        ConfigMapVolumeSource { name: peers_config_map.to_owned(), ..ConfigMapVolumeSource::default() };
    let pod = PodSpec {
        restart_policy: Some("Never".into()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        containers: vec![container],
        volumes: Some(vec![Volume { name: VOLUME.into(), config_map: Some(peers), ..Volume::default() }]),
        ..PodSpec::default()
    };
    JobSpec {
        backoff_limit: Some(RETRIES),
        active_deadline_seconds: Some(DEADLINE_SECONDS),
        template: PodTemplateSpec { metadata: None, spec: Some(pod) },
        ..JobSpec::default()
    }
}

fn environment(config: &BootstrapConfig) -> Vec<EnvVar> {
    let all = [
        ("BOOTSTRAP_METHOD", text(&json!(config.method))),
        ("BOOTSTRAP_N", config.n.to_string()),
        ("BOOTSTRAP_PEERS_PATH", format!("{FILES}/{PEERS_KEY}")),
        ("BOOTSTRAP_SEED", config.seed.to_string()),
        ("BOOTSTRAP_EDGES", json!(config.edges).to_string()),
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
