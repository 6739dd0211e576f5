//! `Simulation`: load and faults for a network, and a verdict.
//!
//! ```text
//! Simulation, Network, peers.json, Jobs ─▶ observe ─▶ decide (pure): phase, faults, samples ─▶ Jobs, status
//!                                             │
//!                                             ├─▶ execute: pods are deleted, peers disturbed, as faults (pure) says
//!                                             └─▶ manager: how far it is, what it reports ─▶ criteria (pure) ─▶ verdict
//! ```

pub mod criteria;
pub mod decide;
mod execute;
pub mod faults;
mod handler;
mod manager;
pub mod objects;
mod observe;
mod reason;
pub mod report;

pub use faults::partitions;
pub use handler::{Means, controller};
pub use manager::{HttpManagers, ManagerClient, ManagerPlace};
pub use reason::Reason;
