//! How networks and simulations stand.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FaultAction;
use crate::peers::Peer;

/// How a network stands.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// The generation that all of this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many peers there shall be.
    pub replicas: i32,
    /// How many of them answer.
    pub ready_replicas: i32,
    /// Where all that belongs to the network is.
    pub namespace: String,
    /// The peers that answer, as they are in `peers.json`, as far as there is room for them here.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// Number of peers that answer and are not listed here. All of them are in `peers.json`. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peers_omitted: i32,
    /// The first hundred of those that do not answer, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unready: Vec<UnreadyPeer>,
    /// Number of peers that do not answer and are not listed here. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unready_omitted: i32,
    /// When the network will be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<Time>,
    /// How they are connected. Not there before peers have been asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<EdgesStatus>,
    /// How many islands there are; 1 if all peers can reach each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<i32>,
    /// `Assembled`, `Bootstrapped`, `Connected`, `Ready`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &i32) -> bool {
    *count == 0
}

/// A peer that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreadyPeer {
    /// The name of its pod.
    pub name: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// How peers are connected.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EdgesStatus {
    /// How many connections are declared, among peers that answer.
    pub desired: i32,
    /// How many there are.
    pub observed: i32,
    /// How many of the declared ones there are not.
    pub missing: i32,
    /// How many of these are kept apart by a fault of a simulation, and not mended meanwhile.
    #[serde(default)]
    pub severed: i32,
    /// The first of those that are missing: `peers-0-1 > peers-0-2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// How a simulation stands.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulationStatus {
    /// The generation that all of this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How far it is.
    pub phase: SimulationPhase,
    /// Which run of the simulation this is about: made from all that the run depends on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// When the load began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// The peers that it is about, by the names of their pods, in the order of their workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// The addresses that peers may have been told to keep out while a partition is active. All of them are let in again at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_addresses: Vec<String>,
    /// What became of each fault, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultStatus>,
    /// What the network looked like while the load was there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<NetworkSample>,
    /// What was found for each criterion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionResult>,
    /// Whether all of them are met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The ConfigMap with the report, key `report.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// `Ready`: it has been judged.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// How far a simulation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize, JsonSchema)]
pub enum SimulationPhase {
    /// Its network is not ready.
    #[default]
    Pending,
    /// Manager and workers are being started.
    Starting,
    /// The load is there.
    Running,
    /// It has been judged.
    Finished,
    /// It could not be carried out, and there is no verdict.
    Failed,
}

/// Whether a network stood what it had to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub enum Verdict {
    /// It did.
    Passed,
    /// It did not.
    Failed,
}

/// What became of a fault.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultStatus {
    /// What goes wrong.
    pub action: FaultAction,
    /// How far it is.
    pub phase: FaultPhase,
    /// The peers that it happens to, once they are chosen. In a partition: the smaller side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// How many times it has been done, for `churn`.
    #[serde(default)]
    pub rounds: i32,
    /// The pods that are to be deleted now, for `kill` and `churn`. It is these that go, and never those that come in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<DoomedPod>,
    /// As `blockedAddresses` of the simulation. Written by former versions only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The peers that have been told already, for `pause` and `latency`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// Why it did not happen, or not to all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A pod that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoomedPod {
    /// Its name.
    pub name: String,
    /// Which of that name it is.
    pub uid: String,
}

/// How far a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize, JsonSchema)]
pub enum FaultPhase {
    /// Its time has not come.
    #[default]
    Waiting,
    /// It is so.
    Active,
    /// It is over.
    Over,
    /// It cannot be had from these peers.
    Unsupported,
}

/// What a network looked like at one time.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSample {
    /// When.
    pub at: Time,
    /// Peers that answered.
    pub ready_peers: i32,
    /// Declared connections that were not there.
    pub missing_edges: i32,
    /// Islands.
    pub components: i32,
}

/// What was found for a criterion.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriterionResult {
    /// What it is called.
    pub name: String,
    /// Whether it is met.
    pub met: bool,
    /// What was measured; not there if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What it was compared with.
    pub threshold: f64,
    /// In a sentence.
    pub message: String,
}
