//! The operator in whole clusters: embedded with our controllers, and real with kube-controller-manager. Pods are simulated in both.
//!
//! A cluster costs seconds to start, so the stories of a file share one and go on side by side. Each has a kind of its own, or streams of
//! its own.

mod backfills;
mod changes;
mod classes;
mod ends;
mod fixtures;
mod lives;
mod narrow;
mod roles;
mod rollouts;
mod wrong;
