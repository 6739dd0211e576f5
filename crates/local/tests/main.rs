//! The local cluster from outside.
//!
//! One binary, one module for each suite:
//!
//! - `cluster`: all of it in one call
//! - `node`: the node with a stand-in for a runtime
//! - `parity`: controllers beside kube-controller-manager
//! - `processes`: pods as processes
//! - `simulation`: every controller under faults
//! - `virtual_time`: days of a `CronJob`

mod cluster;
mod node;
mod parity;
mod processes;
mod simulation;
mod virtual_time;
