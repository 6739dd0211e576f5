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
mod fetch;
pub mod graph;
pub mod kinds;
mod metrics;
pub mod network;
pub mod objects;
pub mod peers;
pub mod picture;
pub mod rpc;
pub mod runner;
pub mod share;
pub mod simulation;
pub mod sizes;
mod time;
pub mod topology;

use std::sync::Arc;
use std::time::Duration;

use mainstay::OperatorBuilder;
use mainstay::stability::LoopSettings;

use crate::metrics::NetworkMetrics;
use crate::rpc::{HttpRpc, Rpc};
use crate::simulation::{HttpManagers, ManagerClient, Means};

/// The operator's name in the cluster.
pub const NAME: &str = "networks";

/// All that the operator consists of. Peers and managers are asked over HTTP.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    configure_with(operator, Arc::new(HttpRpc::new()), Arc::new(HttpManagers::default()))
}

/// The same with peers and managers asked by these.
pub fn configure_with(
    operator: OperatorBuilder,
    rpc: Arc<dyn Rpc>,
    managers: Arc<dyn ManagerClient>,
) -> OperatorBuilder {
    let metrics = NetworkMetrics::default();
    let served = metrics.clone();
    let means = Means { client: operator.client(), rpc: Arc::clone(&rpc), managers };
    operator
        // Peers come up one after the other, and come and go: their list is written each time. What is written more often than this
        // is not for that.
        .loops(LoopSettings { writes_max: 100, window: Duration::from_mins(1), ..LoopSettings::default() })
        .metrics(move |all| served.register(all))
        .controller(network::controller(rpc, metrics))
        .controller(network::monitors())
        .controller(simulation::controller(means))
}
