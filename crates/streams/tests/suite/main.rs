//! The operator in whole clusters: embedded with our controllers, and real with kube-controller-manager. Pods are simulated in both.
//!
//! A cluster costs seconds to start, so the stories of a file share one and go on side by side. Each has a kind of its own, or streams of
//! its own.

#![expect(clippy::needless_pass_by_value, reason = "specs are written where they are used")]
#![expect(clippy::large_futures, reason = "stories that are told at once are one future")]

mod backfills;
mod changes;
mod classes;
mod ends;
mod fixtures;
mod lives;
mod wrong;
