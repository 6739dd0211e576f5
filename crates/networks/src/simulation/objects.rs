//! What a simulation has made: a manager, workers, and a ConfigMap with the report. Pure.

use std::collections::BTreeMap;

use mainstay::diff::content_hash;
use serde_json::{Value, json};

use super::report::{REPORT_KEY, Report};
use crate::config::{SimulationConfig, Throttle};
use crate::kinds::labels::{self, role};
use crate::kinds::{SimulationSpec, SimulationStatus};
use crate::peers::PEERS_KEY;

/// The port of managers.
pub const MANAGER_PORT: u16 = 5115;
/// Where `peers.json` is mounted.
const FILES: &str = "/network";
/// So long workers are waited for.
pub const START_SECONDS: i32 = 300;
/// So long a manager stays after the load, if nobody reads its report.
pub const LINGER_SECONDS: i32 = 600;
/// So long after the load workers may take to tell.
pub const GRACE_SECONDS: i32 = 60;

/// Which run a spec asks for: another one for each spec, the nonce included.
pub fn run_of(spec: &SimulationSpec) -> String {
    content_hash(&json!(spec))
}

/// The name of the manager's Job and Service.
pub fn manager_name(simulation: &str) -> String {
    format!("{simulation}-manager")
}

/// The name of a worker's Job.
pub fn worker_name(simulation: &str, worker: usize) -> String {
    format!("{simulation}-worker-{worker}")
}

/// The name of the ConfigMap with the report.
pub fn report_name(simulation: &str) -> String {
    format!("{simulation}-report")
}

/// What the objects of a run are made from.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The name of the simulation.
    pub name: &'a str,
    /// The name of the network.
    pub network: &'a str,
    /// The ConfigMap with `peers.json`.
    pub peers_config_map: &'a str,
    /// What was declared.
    pub config: &'a SimulationConfig,
    /// What was decided: the run and its peers.
    pub status: &'a SimulationStatus,
}

impl Run<'_> {
    fn metadata(&self, name: &str, role: &str) -> Value {
        json!({"name": name, "labels": self.labels(role), "annotations": {labels::RUN: self.status.run}})
    }

    fn labels(&self, role: &str) -> BTreeMap<&str, String> {
        [(labels::NETWORK, self.network), (labels::SIMULATION, self.name), (labels::ROLE, role)]
            .map(|(label, value)| (label, value.to_owned()))
            .into()
    }

    /// The Service by which people find the manager. Workers are given its address, for not every cluster has names.
    pub fn service(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": self.metadata(&manager_name(self.name), role::MANAGER),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": true,
                "selector": self.labels(role::MANAGER),
                "ports": [{"name": "http", "port": MANAGER_PORT, "protocol": "TCP"}],
            },
        })
    }

    /// The manager.
    pub fn manager(&self) -> Value {
        let mut env = self.common();
        env.extend([
            ("SIMULATE_WORKERS", self.status.peers.len().to_string()),
            ("SIMULATE_START_SECONDS", START_SECONDS.to_string()),
            ("SIMULATE_GRACE_SECONDS", GRACE_SECONDS.to_string()),
            ("SIMULATE_LINGER_SECONDS", LINGER_SECONDS.to_string()),
            ("SIMULATE_PORT", MANAGER_PORT.to_string()),
        ]);
        if !self.config.otlp_endpoint.is_empty() {
            let of = format!("mainstay.network={},mainstay.simulation={}", self.network, self.name);
            env.extend([
                ("OTEL_EXPORTER_OTLP_ENDPOINT", self.config.otlp_endpoint.clone()),
                ("OTEL_RESOURCE_ATTRIBUTES", format!("{of},mainstay.run={}", self.status.run)),
            ]);
        }
        let mut job = self.job(&manager_name(self.name), role::MANAGER, env);
        let container = &mut job["spec"]["template"]["spec"]["containers"][0];
        container["ports"] = json!([{"name": "http", "containerPort": MANAGER_PORT, "protocol": "TCP"}]);
        container["readinessProbe"] = json!({"tcpSocket": {"port": MANAGER_PORT}, "periodSeconds": 1});
        job
    }

    /// The worker of the peer at a place.
    pub fn worker(&self, worker: usize, manager: &str) -> Value {
        let mut env = self.common();
        let throttle = match self.config.throttle_requests {
            Throttle::None => String::new(),
            Throttle::PerSecond(requests) => requests.to_string(),
        };
        env.extend([
            ("SIMULATE_WORKER", worker.to_string()),
            ("SIMULATE_PEER", self.status.peers.get(worker).cloned().unwrap_or_default()),
            ("SIMULATE_MANAGER", manager.to_owned()),
            ("SIMULATE_PEERS_PATH", format!("{FILES}/{PEERS_KEY}")),
            ("SIMULATE_THROTTLE_REQUESTS", throttle),
            ("SIMULATE_SEED", self.config.seed.to_string()),
        ]);
        let mut job = self.job(&worker_name(self.name, worker), role::WORKER, env);
        let pod = &mut job["spec"]["template"]["spec"];
        pod["volumes"] = json!([{"name": "peers", "configMap": {"name": self.peers_config_map}}]);
        let mounts = json!([{"name": "peers", "mountPath": FILES, "readOnly": true}]);
        pod["containers"][0]["volumeMounts"] = mounts;
        job
    }

    fn common(&self) -> Vec<(&'static str, String)> {
        let scenario = json!(self.config.scenario).as_str().unwrap_or_default().to_owned();
        vec![
            ("SIMULATE_RUN", self.status.run.clone()),
            ("SIMULATE_SCENARIO", scenario),
            ("SIMULATE_USERS", self.config.users.to_string()),
            ("SIMULATE_RUN_TIME_SECONDS", self.config.run_time_seconds.to_string()),
        ]
    }

    /// A Job that is tried once: who starts in the middle of a run has missed its beginning.
    fn job(&self, name: &str, role: &str, env: Vec<(&str, String)>) -> Value {
        let mut env: Vec<Value> =
            env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        env.push(json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}));
        let lasts = START_SECONDS + self.config.run_time_seconds + GRACE_SECONDS + LINGER_SECONDS + 60;
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": self.metadata(name, role),
            "spec": {
                "backoffLimit": 0,
                "activeDeadlineSeconds": lasts,
                "template": {
                    "metadata": {"labels": self.labels(role), "annotations": {labels::RUN: self.status.run}},
                    "spec": {
                        "restartPolicy": "Never",
                        "automountServiceAccountToken": false,
                        "enableServiceLinks": false,
                        "containers": [{
                            "name": role,
                            "image": self.config.image,
                            "imagePullPolicy": self.config.image_pull_policy,
                            "args": ["runner", "simulate", role],
                            "env": env,
                        }],
                    },
                },
            },
        })
    }

    /// The ConfigMap with the report.
    pub fn report(&self, report: &Report) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": self.metadata(&report_name(self.name), role::MANAGER),
            "data": {REPORT_KEY: json!(report).to_string()},
        })
    }
}
