//! What workers and the manager of a simulation tell, as JSON.

mod latencies;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::kinds::Scenario;
use crate::rpc::RpcError;

pub use latencies::{Latencies, Percentiles};

/// The key of the ConfigMap that the report is under.
pub const REPORT_KEY: &str = "report.json";

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// There was no answer in time.
    Timeout,
    /// There was nobody.
    Unreachable,
    /// The peer refused.
    Refused,
    /// The peer answered something else.
    Garbage,
    /// The peer does not know how.
    Unsupported,
}

impl FailureKind {
    /// As JSON and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Garbage => "garbage",
            Self::Unsupported => "unsupported",
        }
    }
}

impl From<&RpcError> for FailureKind {
    fn from(error: &RpcError) -> Self {
        match error {
            RpcError::Timeout(_) => Self::Timeout,
            RpcError::Unreachable(_) => Self::Unreachable,
            RpcError::Refused { .. } => Self::Refused,
            RpcError::Garbage(_) => Self::Garbage,
            RpcError::Unsupported(_) => Self::Unsupported,
        }
    }
}

/// What a worker tells of its peer.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerReport {
    /// The run that it is about.
    pub run: String,
    /// Which worker it is, from 0.
    pub worker: usize,
    /// The name of the peer.
    pub peer: String,
    /// Requests, failures included.
    pub requests: u64,
    /// Those that failed.
    pub failures: BTreeMap<FailureKind, u64>,
    /// For how long there was load.
    pub duration_milliseconds: u64,
    /// How long requests took that did not fail.
    pub latencies: Latencies,
}

/// What a peer did, in short.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerReport {
    /// The name of the peer.
    pub peer: String,
    /// Requests, failures included.
    pub requests: u64,
    /// Those that failed.
    pub failures: BTreeMap<FailureKind, u64>,
    /// For how long there was load.
    pub duration_milliseconds: u64,
    /// How long requests took, in milliseconds.
    pub latency_milliseconds: Percentiles,
}

impl PeerReport {
    /// How many failed, for whatever reason.
    pub fn failed(&self) -> u64 {
        self.failures.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Requests that did not fail.
    pub fn answered(&self) -> u64 {
        self.requests.saturating_sub(self.failed())
    }
}

/// What a run came to. Histograms of single peers are left out: a ConfigMap has to hold this for thousands of them.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The run that it is about.
    pub run: String,
    /// What users did.
    pub scenario: Scenario,
    /// How many there were for each peer.
    pub users: i32,
    /// When the load began.
    pub started_at: Timestamp,
    /// When the last worker had told, or was given up.
    pub finished_at: Timestamp,
    /// What each peer did, in the order of workers.
    pub peers: Vec<PeerReport>,
    /// Workers that never told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<usize>,
    /// Of all peers together.
    pub total: PeerReport,
    /// How long requests of all peers took.
    pub latencies: Latencies,
}

impl Report {
    /// Brings together what workers told.
    pub fn of(
        (run, scenario, users): (&str, Scenario, i32),
        (started_at, finished_at): (Timestamp, Timestamp),
        expected: usize,
        told: &BTreeMap<usize, WorkerReport>,
    ) -> Self {
        let mut latencies = Latencies::default();
        let mut total = PeerReport { peer: "total".into(), ..PeerReport::default() };
        let mut peers = Vec::new();
        for report in told.values() {
            latencies.merge(&report.latencies);
            total.requests = total.requests.saturating_add(report.requests);
            for (kind, count) in &report.failures {
                let sum = total.failures.entry(*kind).or_default();
                *sum = sum.saturating_add(*count);
            }
            total.duration_milliseconds = total.duration_milliseconds.max(report.duration_milliseconds);
            peers.push(PeerReport {
                peer: report.peer.clone(),
                requests: report.requests,
                failures: report.failures.clone(),
                duration_milliseconds: report.duration_milliseconds,
                latency_milliseconds: report.latencies.percentiles(),
            });
        }
        total.latency_milliseconds = latencies.percentiles();
        let lost = (0..expected).filter(|worker| !told.contains_key(worker)).collect();
        Self { run: run.into(), scenario, users, started_at, finished_at, peers, lost, total, latencies }
    }
}

/// How far a run is, as its manager tells.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The run that it is about.
    pub run: String,
    /// How far it is.
    pub stage: Stage,
    /// How many workers there shall be.
    pub expected: usize,
    /// How many have come.
    pub registered: usize,
    /// How many have told what they found.
    pub reported: usize,
    /// For how long there has been load. The clocks of others are not believed, but how fast they go is.
    pub elapsed_milliseconds: u64,
}

/// How far a manager is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Workers are awaited.
    Waiting,
    /// The load is there.
    Running,
    /// There is a report.
    Done,
}
