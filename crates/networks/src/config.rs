//! What code uses of networks and simulations: every field is there. The defaults are here and nowhere else.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, NodeSelectorTerm, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mainstay::Config;
use serde::Serialize;
use serde_json::Value;

use crate::kinds::{
    Adapter, BootstrapSpec, EdgeSpec, InitStepSpec, Method, MonitoringSpec, NetworkSpec, PeerGroupSpec,
    PeerPortSpec, PodMonitorSpec, Repair, RpcSpec, Scenario, SimulationSpec, StorageSpec, TopologySpec,
};
use crate::kinds::{CriterionSpec, FaultSpec};

/// The image of everything that this project itself runs in a cluster: the `mainstay` command.
pub const IMAGE: &str = concat!("mainstay:", env!("CARGO_PKG_VERSION"));
/// The arguments that make that command a reference peer.
pub const REFERENCE_PEER: [&str; 2] = ["runner", "peer"];

/// A [`NetworkSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = NetworkSpec, rename_all = "camelCase")]
pub struct NetworkConfig {
    /// How many peers there are.
    #[config(required)]
    pub replicas: i32,
    /// Groups of peers that are alike.
    #[config(each)]
    pub peers: Vec<PeerGroupConfig>,
    /// How peers are connected.
    #[config(nested)]
    pub bootstrap: BootstrapConfig,
    /// What is done about connections later.
    #[config(nested)]
    pub topology: TopologyConfig,
    /// How long the network lives.
    pub ttl_seconds: Lifetime,
    /// What watches the network.
    #[config(nested)]
    pub monitoring: MonitoringConfig,
    /// The nodes that peers may be on; all if there are none here.
    pub node_selector_terms: Vec<NodeSelectorTerm>,
    /// What kind of network it is.
    pub network_type: String,
    /// Anything else that peers are to know.
    pub config: BTreeMap<String, Value>,
    /// The name of the ConfigMap with `peers.json`.
    pub peers_config_map: String,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            replicas: 0,
            peers: vec![PeerGroupConfig::default()],
            bootstrap: BootstrapConfig::default(),
            topology: TopologyConfig::default(),
            ttl_seconds: Lifetime::Endless,
            monitoring: MonitoringConfig::default(),
            node_selector_terms: Vec::new(),
            network_type: "local".into(),
            config: BTreeMap::new(),
            peers_config_map: "keramik-peers".into(),
        }
    }
}

/// How long a network lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Lifetime {
    /// Until somebody deletes it.
    Endless,
    /// So many seconds after it was made.
    Seconds(i64),
}

impl From<i64> for Lifetime {
    fn from(seconds: i64) -> Self {
        Self::Seconds(seconds)
    }
}

/// A [`PeerGroupSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = PeerGroupSpec, rename_all = "camelCase")]
pub struct PeerGroupConfig {
    /// The name of the group. Empty: after its place, as [`NetworkConfig::group_name`] says.
    pub name: String,
    /// Its share of all peers, relative to other groups.
    pub weight: i32,
    /// What a peer runs.
    pub image: String,
    /// When the image is pulled.
    pub image_pull_policy: String,
    /// What is run of it. Empty: the image's own.
    pub command: Vec<String>,
    /// With which arguments.
    pub args: Arguments,
    /// Its environment.
    pub env: Vec<EnvVar>,
    /// Further ports.
    pub ports: Vec<PeerPortSpec>,
    /// What it needs and may have.
    pub resources: ResourceRequirements,
    /// A volume for each peer.
    pub storage: Storage,
    /// How a peer is asked about itself.
    #[config(nested)]
    pub rpc: RpcConfig,
    /// The port that other peers connect to.
    pub p2p_port: i32,
    /// Whether peers may announce addresses that their pods do not have.
    pub allow_other_addresses: bool,
    /// The key that a peer of this group has in `peers.json`.
    pub tag: String,
    /// What is run to its end before a peer starts.
    #[config(each)]
    pub init: Vec<InitStepConfig>,
}

impl Default for PeerGroupConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            weight: 1,
            image: IMAGE.into(),
            image_pull_policy: "IfNotPresent".into(),
            command: Vec::new(),
            args: Arguments::ByImage,
            env: Vec::new(),
            ports: Vec::new(),
            resources: ResourceRequirements::default(),
            storage: Storage::None,
            rpc: RpcConfig::default(),
            p2p_port: 4001,
            allow_other_addresses: false,
            tag: "ipfs".into(),
            init: Vec::new(),
        }
    }
}

impl NetworkConfig {
    /// The namespace of the network of this name.
    pub fn namespace(network: &str) -> String {
        format!("network-{network}")
    }

    /// The name of a group, by its place. Pods of the group are called after it.
    pub fn group_name(&self, place: usize) -> String {
        match self.peers.get(place) {
            Some(group) if !group.name.is_empty() => group.name.clone(),
            _ => format!("peers-{place}"),
        }
    }
}

/// The arguments of a peer's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Arguments {
    /// Those of a reference peer for [`IMAGE`], none for any other.
    ByImage,
    /// These.
    Given(Vec<String>),
}

impl From<Vec<String>> for Arguments {
    fn from(given: Vec<String>) -> Self {
        Self::Given(given)
    }
}

impl PeerGroupConfig {
    /// The arguments of a peer's program.
    pub fn arguments(&self) -> Vec<String> {
        match &self.args {
            Arguments::Given(given) => given.clone(),
            Arguments::ByImage if self.image == IMAGE && self.command.is_empty() => {
                REFERENCE_PEER.map(str::to_owned).to_vec()
            }
            Arguments::ByImage => Vec::new(),
        }
    }
}

/// A volume for each peer, or none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Storage {
    /// What a peer writes is gone with its pod.
    None,
    /// A claim for each.
    Volume(StorageConfig),
}

impl From<StorageSpec> for Storage {
    fn from(spec: StorageSpec) -> Self {
        Self::Volume(spec.into())
    }
}

/// A [`StorageSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Serialize, Config)]
#[config(spec = StorageSpec, rename_all = "camelCase")]
pub struct StorageConfig {
    /// How large it is.
    pub size: Quantity,
    /// Its storage class. Empty: the cluster's default.
    pub class: String,
    /// Where it is mounted.
    pub path: String,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self { size: Quantity("1Gi".into()), class: String::new(), path: "/data".into() }
    }
}

/// An [`RpcSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = RpcSpec, rename_all = "camelCase")]
pub struct RpcConfig {
    /// What it speaks.
    pub adapter: Adapter,
    /// Its port.
    pub port: i32,
    /// How long an answer is waited for.
    pub timeout_milliseconds: i32,
}

impl Default for RpcConfig {
    fn default() -> Self {
        Self { adapter: Adapter::Kubo, port: 5001, timeout_milliseconds: 2000 }
    }
}

/// An [`InitStepSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Default, Config)]
#[config(spec = InitStepSpec, rename_all = "camelCase")]
pub struct InitStepConfig {
    /// What it is for.
    #[config(required)]
    pub name: String,
    /// What is run. Empty: the peer's own image.
    pub image: String,
    /// What is run of it. Empty: the image's own.
    pub command: Vec<String>,
    /// With which arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<EnvVar>,
}

/// A [`BootstrapSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = BootstrapSpec, rename_all = "camelCase")]
pub struct BootstrapConfig {
    /// Whether peers are connected.
    pub enabled: bool,
    /// The image of the Job that does it.
    pub image: String,
    /// When that is pulled.
    pub image_pull_policy: String,
    /// Which peers are connected.
    pub method: Method,
    /// Number of peers that each dials, as the method has it.
    #[config(former = n)]
    pub degree: i32,
    /// What chance is made from.
    pub seed: i64,
    /// The connections, for [`Method::Explicit`].
    pub edges: Vec<EdgeSpec>,
    /// How many times in a hundred a connection of [`Method::SmallWorld`] goes somewhere else.
    pub rewire_percent: i32,
    /// After so many seconds those peers that answer are connected without the others.
    pub patience_seconds: i32,
}

impl Default for BootstrapConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            image: IMAGE.into(),
            image_pull_policy: "IfNotPresent".into(),
            method: Method::Ring,
            degree: 3,
            seed: 0,
            edges: Vec::new(),
            rewire_percent: 10,
            patience_seconds: 60,
        }
    }
}

/// A [`TopologySpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = TopologySpec, rename_all = "camelCase")]
pub struct TopologyConfig {
    /// What is done about connections that are missing.
    pub repair: Repair,
    /// How often peers are asked for their connections.
    pub observe_seconds: i32,
}

impl Default for TopologyConfig {
    fn default() -> Self {
        Self { repair: Repair::Missing, observe_seconds: 10 }
    }
}

/// A [`MonitoringSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Default, Config)]
#[config(spec = MonitoringSpec, rename_all = "camelCase")]
pub struct MonitoringConfig {
    /// A `PodMonitor` for each group.
    #[config(nested)]
    pub pod_monitor: PodMonitorConfig,
}

/// A [`PodMonitorSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = PodMonitorSpec, rename_all = "camelCase")]
pub struct PodMonitorConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// The name of the port with metrics.
    pub port: String,
    /// Where on it.
    pub path: String,
    /// Labels of pods that their metrics get.
    pub pod_target_labels: Vec<String>,
}

impl Default for PodMonitorConfig {
    fn default() -> Self {
        Self { enabled: false, port: "rpc".into(), path: "/metrics".into(), pod_target_labels: Vec::new() }
    }
}

/// A [`SimulationSpec`] with nothing left out.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(spec = SimulationSpec, rename_all = "camelCase")]
pub struct SimulationConfig {
    /// What users do.
    #[config(required)]
    pub scenario: Scenario,
    /// How many of them there are for each peer.
    pub users: i32,
    /// For how many seconds they do it.
    pub run_time_seconds: i32,
    /// The most requests per second to each peer.
    pub throttle_requests: Throttle,
    /// What chance is made from.
    pub seed: i64,
    /// The image of manager and workers.
    pub image: String,
    /// When that is pulled.
    pub image_pull_policy: String,
    /// Where the numbers of the load are sent by OTLP. Empty: nowhere.
    pub otlp_endpoint: String,
    /// What the network has to stand.
    pub criteria: Vec<CriterionSpec>,
    /// What goes wrong meanwhile.
    pub faults: Vec<FaultSpec>,
    /// Another value runs it once more.
    pub nonce: String,
}

impl Default for SimulationConfig {
    fn default() -> Self {
        Self {
            scenario: Scenario::Identity,
            users: 1,
            run_time_seconds: 60,
            throttle_requests: Throttle::None,
            seed: 0,
            image: IMAGE.into(),
            image_pull_policy: "IfNotPresent".into(),
            otlp_endpoint: String::new(),
            criteria: Vec::new(),
            faults: Vec::new(),
            nonce: String::new(),
        }
    }
}

/// The most requests per second to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Throttle {
    /// As many as users can.
    None,
    /// So many.
    PerSecond(i32),
}

impl From<i32> for Throttle {
    fn from(requests: i32) -> Self {
        Self::PerSecond(requests)
    }
}
