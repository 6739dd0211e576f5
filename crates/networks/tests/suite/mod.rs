//! The operator in whole clusters: embedded with our controllers, and real with kube-controller-manager. Pods are simulated in both, and what
//! they would answer is in memory.
//!
//! A cluster costs seconds to start, so the stories of a file share one. Each has a network of its own.

mod crowd;
mod edits;
mod fixtures;
mod lives;
mod monitors;
mod wrong;
