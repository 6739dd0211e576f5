//! A Kubernetes cluster on one machine, around any API server.
//!
//! ```text
//! controllers   Deployment ─▶ ReplicaSet ─▶ Pod     StatefulSet, DaemonSet, Job ─▶ Pod     CronJob ─▶ Job
//!               Service ─▶ Endpoints, EndpointSlice     claim ─▶ volume
//! scheduler     Pod ─▶ the node that it fits on
//! node          Pod ─▶ local processes, or a simulation of them ─▶ status, logs
//! ```
//!
//! Each of the three is an operator written with `mainstay`, and knows only the API: they run as well against a real
//! kube-apiserver. Every decision is a pure function of what is in the cluster; the effects beyond it (processes, files) are behind
//! [`node`]'s runtimes.

pub mod cluster;
pub mod controllers;
mod fit;
pub mod node;
pub mod scheduler;
pub mod stand_in;
mod time;
