//! What users write and read: [`Network`] and [`Simulation`].

mod network;
mod simulation;
mod status;

pub use network::*;
pub use simulation::*;
pub use status::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

/// Labels and annotations of what the operator makes.
pub mod labels {
    /// On everything: the name of the network.
    pub const NETWORK: &str = "mainstay.dev/network";
    /// On what belongs to a group of peers, pods included: the group's name.
    pub const GROUP: &str = "mainstay.dev/peer-group";
    /// On what belongs to a simulation: its name.
    pub const SIMULATION: &str = "mainstay.dev/simulation";
    /// On Jobs and pods: what they are there for. See [`role`].
    pub const ROLE: &str = "mainstay.dev/role";

    /// An annotation of what belongs to one run of a simulation: which one.
    pub const RUN: &str = "mainstay.dev/simulation-run";

    /// Values of [`ROLE`].
    pub mod role {
        /// A peer.
        pub const PEER: &str = "peer";
        /// The Job that connects peers.
        pub const BOOTSTRAP: &str = "bootstrap";
        /// What collects the results of a simulation.
        pub const MANAGER: &str = "manager";
        /// What puts load on one peer.
        pub const WORKER: &str = "worker";
    }
}

/// The definitions of all kinds.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Network::crd(), Simulation::crd()]
}
