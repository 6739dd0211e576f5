//! The local cluster from outside.
//!
//! One binary, one module for each suite:
//!
//! - `bounds`: workloads that ask for too much
//! - `cluster`: all of it in one call
//! - `growth`: work grows with the number of pods
//! - `node`: the node with a stand-in for a runtime
//! - `parity`: controllers beside kube-controller-manager
//! - `processes`: pods as processes
//! - `simulation`: every controller under faults
//! - `virtual_time`: days of a `CronJob`

mod bounds;
mod cluster;
mod growth;
mod node;
mod parity;
mod processes;
mod simulation;
mod virtual_time;
