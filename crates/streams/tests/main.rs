//! The system `streams` from outside.
//!
//! One binary, one module for each suite:
//!
//! - `simulation`: the operator under faults
//! - `suite`: whole clusters, embedded and real

mod simulation;
mod suite;
