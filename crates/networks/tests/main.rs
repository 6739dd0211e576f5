//! The system `networks` from outside.
//!
//! One binary, one module for each suite:
//!
//! - `kubo`: the runner on real Kubo nodes
//! - `simulation`: the operators under faults
//! - `suite`: whole clusters, embedded and real

mod kubo;
mod simulation;
mod suite;
