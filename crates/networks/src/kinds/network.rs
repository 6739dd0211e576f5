//! `Network`: so many peers, how each is run, and how they are connected.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, NodeSelectorTerm, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::NetworkStatus;

/// A network of peers. All that it consists of is in a namespace of its own, `network-NAME`.
#[derive(Debug, Clone, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "networks.mainstay.dev",
    version = "v1alpha1",
    kind = "Network",
    plural = "networks",
    shortname = "net",
    category = "mainstay",
    derive = "PartialEq",
    status = "NetworkStatus",
    printcolumn = r#"{"name": "Peers", "type": "integer", "jsonPath": ".status.replicas"}"#,
    printcolumn = r#"{"name": "Ready-Peers", "type": "integer", "jsonPath": ".status.readyReplicas"}"#,
    printcolumn = r#"{"name": "Missing-Edges", "type": "integer", "jsonPath": ".status.edges.missing"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name": "Expires", "type": "string", "jsonPath": ".status.expirationTime", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSpec {
    /// How many peers there are, all groups together.
    #[schemars(range(min = 1, max = 2000))]
    pub replicas: i32,
    /// Groups of peers that are alike; one of reference peers unless given.
    #[schemars(length(max = 10))]
    pub peers: Option<Vec<PeerGroupSpec>>,
    /// How peers are connected at first, and which of them shall be.
    pub bootstrap: Option<BootstrapSpec>,
    /// What is done about connections later.
    pub topology: Option<TopologySpec>,
    /// The network is deleted so many seconds after it was made; never unless given. The time can be seen in `status.expirationTime`, and
    /// changes with this field.
    #[schemars(range(min = 1))]
    pub ttl_seconds: Option<i64>,
    /// What watches the network.
    pub monitoring: Option<MonitoringSpec>,
    /// The nodes that peers may be on: those that fit one of these.
    pub node_selector_terms: Option<Vec<NodeSelectorTerm>>,
    /// What kind of network it is, in whatever words peers understand; `local` unless given.
    pub network_type: Option<String>,
    /// Anything else that peers are to know. They find it, with `networkType`, in the file that `NETWORK_CONFIG` names.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub config: Option<BTreeMap<String, Value>>,
    /// The name of the ConfigMap with `peers.json`; `keramik-peers` unless given.
    pub peers_config_map: Option<String>,
}

/// Peers that are alike.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerGroupSpec {
    /// The name of the group, which its pods' names begin with; `peers-0` for the first unless given.
    pub name: Option<String>,
    /// Its share of all peers, relative to other groups; 1 unless given.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub weight: Option<i32>,
    /// What a peer runs; the reference peer unless given.
    pub image: Option<String>,
    /// When the image is pulled; `IfNotPresent` unless given.
    pub image_pull_policy: Option<String>,
    /// What is run of it; the image's own unless given.
    pub command: Option<Vec<String>>,
    /// With which arguments; those of the reference peer unless `image` is given.
    pub args: Option<Vec<String>>,
    /// Its environment. It goes before what the operator gives to peers.
    pub env: Option<Vec<EnvVar>>,
    /// Further ports. One called `flight` is told to others as `flightAddr`.
    pub ports: Option<Vec<PeerPortSpec>>,
    /// What it needs and may have.
    pub resources: Option<ResourceRequirements>,
    /// A volume for each peer; none unless given.
    pub storage: Option<StorageSpec>,
    /// How a peer is asked about itself, and told to connect.
    pub rpc: Option<RpcSpec>,
    /// The port that other peers connect to; 4001 unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub p2p_port: Option<i32>,
    /// Whether peers may announce addresses that their pods do not have, such as those of a gateway; no unless given.
    pub allow_other_addresses: Option<bool>,
    /// The key that a peer of this group has in `peers.json`; `ipfs` unless given.
    pub tag: Option<String>,
    /// What is run to its end before a peer starts, one after the other.
    pub init: Option<Vec<InitStepSpec>>,
}

/// A port of a peer.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerPortSpec {
    /// What it is for.
    #[schemars(length(min = 1, max = 15))]
    pub name: String,
    /// Its number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// A volume for each peer.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageSpec {
    /// How large it is; `1Gi` unless given.
    pub size: Option<Quantity>,
    /// Its storage class; the cluster's default unless given.
    pub class: Option<String>,
    /// Where it is mounted; `/data` unless given.
    pub path: Option<String>,
}

/// How a peer is asked about itself, and told to connect.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RpcSpec {
    /// What it speaks; `kubo` unless given.
    pub adapter: Option<Adapter>,
    /// Its port; 5001 unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// How long an answer is waited for; 2000 unless given.
    #[schemars(range(min = 10, max = 60000))]
    pub timeout_milliseconds: Option<i32>,
}

/// What a peer's RPC speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Adapter {
    /// The HTTP RPC of Kubo, below `/api/v0`.
    Kubo,
    /// Plain JSON over HTTP; see docs/networks.md.
    Json,
}

/// What is run to its end before a peer starts.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitStepSpec {
    /// What it is for.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What is run; the peer's own image unless given.
    pub image: Option<String>,
    /// What is run of it.
    pub command: Option<Vec<String>>,
    /// With which arguments.
    pub args: Option<Vec<String>>,
    /// Its environment.
    pub env: Option<Vec<EnvVar>>,
}

/// How peers are connected.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapSpec {
    /// Whether they are; yes unless given. If not, nothing is declared about connections, and they are only observed.
    pub enabled: Option<bool>,
    /// The image of the Job that does it.
    pub image: Option<String>,
    /// When that is pulled; `IfNotPresent` unless given.
    pub image_pull_policy: Option<String>,
    /// Which peers are connected; `ring` unless given.
    pub method: Option<Method>,
    /// Number of peers that each peer dials; 3 unless given. For `kRegular` the number of peers that each is connected to.
    #[schemars(range(min = 1, max = 1000))]
    pub degree: Option<i32>,
    /// Deprecated: the former name of `degree`. `kubectl` reads a plain `n` as `false`, so it cannot be written without quotes.
    #[schemars(range(min = 1, max = 1000))]
    pub n: Option<i32>,
    /// What chance is made from in `random` and `smallWorld`; 0 unless given. The same seed and peers give the same connections.
    pub seed: Option<i64>,
    /// The connections, for `explicit`: names of two pods each.
    pub edges: Option<Vec<EdgeSpec>>,
    /// How many times in a hundred a connection of `smallWorld` goes somewhere else; 10 unless given.
    #[schemars(range(min = 0, max = 100))]
    pub rewire_percent: Option<i32>,
    /// If not all peers answer after so many seconds, those that do are connected without the others; 60 unless given.
    #[schemars(range(min = 0, max = 86400))]
    pub patience_seconds: Option<i32>,
}

/// Which peers are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Method {
    /// Each dials the next `degree`, the last ones the first again.
    Ring,
    /// Each dials `degree` others, as the seed has it.
    Random,
    /// Each dials the first `degree`.
    Sentinel,
    /// Everyone is connected to everyone.
    Full,
    /// Everyone dials the first.
    Star,
    /// Each is connected to exactly `degree` others.
    KRegular,
    /// A ring of which some connections go far, as the seed has it.
    SmallWorld,
    /// As `edges` says.
    Explicit,
}

/// A connection between two peers, by the names of their pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EdgeSpec {
    /// Who dials.
    #[schemars(length(min = 1))]
    pub from: String,
    /// Who is dialled.
    #[schemars(length(min = 1))]
    pub to: String,
}

/// What is done about connections later.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpec {
    /// What is done about connections that are missing; `missing` unless given.
    pub repair: Option<Repair>,
    /// How often peers are asked for their connections; every 10 seconds unless given.
    #[schemars(range(min = 1, max = 3600))]
    pub observe_seconds: Option<i32>,
}

/// What is done about connections that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Repair {
    /// They are dialled, and only they.
    Missing,
    /// They are told of.
    Never,
}

/// What watches the network.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MonitoringSpec {
    /// A `PodMonitor` for each group, where the cluster has that kind.
    pub pod_monitor: Option<PodMonitorSpec>,
}

/// What Prometheus' operator is asked for.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMonitorSpec {
    /// Whether there is one; no unless given.
    pub enabled: Option<bool>,
    /// The name of the port with metrics; `rpc` unless given.
    pub port: Option<String>,
    /// Where on it; `/metrics` unless given.
    pub path: Option<String>,
    /// Labels of pods that their metrics get.
    pub pod_target_labels: Option<Vec<String>>,
}
