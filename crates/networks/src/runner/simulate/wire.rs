//! What workers say to their manager, besides reports.

use serde::{Deserialize, Serialize};

/// A worker is there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// The run that it is there for.
    pub run: String,
    /// Which worker it is, from 0.
    pub worker: usize,
    /// The name of its peer.
    pub peer: String,
}

/// A block that a worker has put into its peer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// Which worker.
    pub worker: usize,
    /// Which of its blocks; what is in it follows from this.
    pub number: u64,
    /// What it can be asked for by.
    pub key: String,
}
