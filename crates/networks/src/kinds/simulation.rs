//! `Simulation`: load and faults for a network, and what it has to stand.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SimulationStatus;

/// Load and faults for the network whose namespace it is in, and a verdict.
#[derive(Debug, Clone, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "networks.mainstay.dev",
    version = "v1alpha1",
    kind = "Simulation",
    plural = "simulations",
    shortname = "simu",
    category = "mainstay",
    namespaced,
    derive = "PartialEq",
    status = "SimulationStatus",
    printcolumn = r#"{"name": "Scenario", "type": "string", "jsonPath": ".spec.scenario"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Verdict", "type": "string", "jsonPath": ".status.verdict"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SimulationSpec {
    /// What users do.
    pub scenario: Scenario,
    /// How many of them there are for each peer; 1 unless given.
    #[schemars(range(min = 1, max = 10000))]
    pub users: Option<i32>,
    /// For how many seconds they do it; 60 unless given.
    #[schemars(range(min = 1, max = 86400))]
    pub run_time_seconds: Option<i32>,
    /// The most requests per second to each peer; as many as users can unless given.
    #[schemars(range(min = 1))]
    pub throttle_requests: Option<i32>,
    /// What chance is made from; 0 unless given.
    pub seed: Option<i64>,
    /// The image of manager and workers.
    pub image: Option<String>,
    /// When that is pulled; `IfNotPresent` unless given.
    pub image_pull_policy: Option<String>,
    /// Where the numbers of the load are sent by OTLP, as `http://collector.monitoring:4318`; they are served to Prometheus in any case.
    pub otlp_endpoint: Option<String>,
    /// What the network has to stand. All of them have to be met, and at least one request must have been answered.
    #[schemars(length(max = 50))]
    pub criteria: Option<Vec<CriterionSpec>>,
    /// What goes wrong meanwhile.
    #[schemars(length(max = 100))]
    pub faults: Option<Vec<FaultSpec>>,
    /// Whether a finished simulation is tried anew: any other value runs it once more.
    pub nonce: Option<String>,
}

/// What users do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scenario {
    /// They ask their peer who it is.
    Identity,
    /// They ask their peer whom it is connected to.
    Peers,
    /// They put blocks into their peer, and get those that others have put into theirs.
    Blocks,
}

/// Something that has to be so for the verdict to be good.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriterionSpec {
    /// What it is called in results; made from the rest unless given.
    pub name: Option<String>,
    /// What is measured.
    pub metric: Metric,
    /// What is made of the values of all peers, or of all samples; `mean` unless given.
    pub aggregation: Option<Aggregation>,
    /// How that is compared with the threshold.
    pub comparison: Comparison,
    /// What it is compared with.
    pub threshold: f64,
}

/// What is measured. The first ones have a value for each peer, the last ones for each time that the network was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Metric {
    /// Requests that were sent, failures included.
    Requests,
    /// Requests that failed.
    Failures,
    /// Failures among requests, from 0 to 1.
    FailureRatio,
    /// Requests in a second.
    RequestsPerSecond,
    /// How long answers took. Percentiles are of all requests together.
    LatencyMilliseconds,
    /// Peers that answer the operator.
    ReadyPeers,
    /// Declared connections that are not there.
    MissingEdges,
    /// Islands: 1 if all peers can reach each other.
    Components,
}

/// What is made of many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Aggregation {
    /// The least.
    Min,
    /// The most.
    Max,
    /// The mean.
    Mean,
    /// All together.
    Sum,
    /// The last.
    Last,
    /// What half of them do not exceed.
    P50,
    /// What 90 in 100 do not exceed.
    P90,
    /// What 95 in 100 do not exceed.
    P95,
    /// What 99 in 100 do not exceed.
    P99,
}

/// How a value is compared with a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Comparison {
    /// Less.
    #[serde(rename = "<")]
    Less,
    /// Less or equal.
    #[serde(rename = "<=")]
    AtMost,
    /// Equal.
    #[serde(rename = "==")]
    Equal,
    /// More or equal.
    #[serde(rename = ">=")]
    AtLeast,
    /// More.
    #[serde(rename = ">")]
    More,
}

/// Something that goes wrong at a certain time.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultSpec {
    /// So many seconds after the load began.
    #[schemars(range(min = 0, max = 86400))]
    pub at_seconds: i32,
    /// What goes wrong.
    pub action: FaultAction,
    /// For how many seconds; 10 unless given. A kill has no duration: the peer is back as soon as its pod is.
    #[schemars(range(min = 1, max = 86400))]
    pub duration_seconds: Option<i32>,
    /// Which peers it happens to, by the names of their pods; `count` of them, as the seed has it, unless given.
    pub peers: Option<Vec<String>>,
    /// To how many it happens, unless they are named; 1 unless given. In a partition: how many are on the smaller side.
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<i32>,
    /// How much later messages arrive, for `latency`; 100 unless given.
    #[schemars(range(min = 1, max = 60000))]
    pub latency_milliseconds: Option<i32>,
    /// How often `churn` kills, in seconds; 5 unless given.
    #[schemars(range(min = 1, max = 3600))]
    pub every_seconds: Option<i32>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FaultAction {
    /// Pods are deleted.
    Kill,
    /// Peers are there and do nothing.
    Pause,
    /// Messages arrive later.
    Latency,
    /// Peers on different sides cannot reach each other.
    Partition,
    /// Pods are deleted again and again.
    Churn,
}
