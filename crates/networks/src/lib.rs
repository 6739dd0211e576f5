//! Networks of peers: assembled, connected as declared, kept so, put under load and judged.
//!
//! A protocol engineer declares a [`Network`](kinds::Network) of so many peers. The operator runs them, finds which really answer, publishes those as
//! `peers.json`, connects them as declared and mends what comes apart. A [`Simulation`](kinds::Simulation) puts load and faults on it, and
//! ends with a verdict.
//!
//! ```text
//! Network ─▶ config ─▶ objects: namespace, Services, StatefulSets, ConfigMaps, Secrets, Jobs
//!                        │
//!              pods ─▶ network/observe: rpc asks each ─▶ peers.json ─▶ runner bootstrap
//!                        │
//!                        └─▶ network/decide (pure): topology beside graph ─▶ dials, status
//!
//! Simulation ─▶ simulation/decide (pure) ─▶ manager and workers (runner simulate) ─▶ report ─▶ criteria (pure) ─▶ verdict
//!                        └─▶ faults (pure) ─▶ pods deleted, peers disturbed
//! ```

pub mod check;
pub mod config;
pub mod graph;
pub mod kinds;
pub mod peers;
pub mod picture;
pub mod rpc;
pub mod runner;
pub mod share;
pub mod topology;

/// The operator's name in the cluster.
pub const NAME: &str = "networks";
