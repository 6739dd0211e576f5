//! Tests against a Kubernetes API in one call.
//!
//! ```no_run
//! # async fn test() {
//! use mainstay_testkit::for_each_cluster;
//!
//! for_each_cluster(async |cluster| {
//!     let client = cluster.client(); // a `kube::Client`
//!     let namespace = cluster.namespace(); // this test's own
//!     # let _ = (client, namespace);
//! })
//! .await;
//! # }
//! ```
//!
//! The same test runs on the embedded API server and on a real control plane (etcd, kube-apiserver,
//! kube-controller-manager as child processes on loopback), as `MAINSTAY_TEST_CLUSTER` says:
//!
//! | value | meaning |
//! |---|---|
//! | `embedded` | the API server inside the test process |
//! | `real` | a real control plane |
//! | `both` | first the one, then the other |
//! | unset | embedded, and real too where its binaries are there |
//!
//! Modules, in the order in which a test meets them: [`cluster`] (what a test asks for), [`operator`] (an operator under
//! test, stepped or running), [`simulation`] (an operator in a world where everything goes wrong, at every place),
//! [`eventually`](fn@eventually) (bounded waits), [`isolation`] (what keeps tests apart that share a cluster), [`embedded`] and
//! [`real`] (what answers), [`binaries`] (where the real one comes from), [`process`] (programs that end with the test).
//!
//! What is absent: this crate decides nothing about Kubernetes' behaviour, and it never sleeps for a
//! guessed time; every wait ends as soon as what is waited for is true. In simulation time costs nothing.

pub mod binaries;
pub mod cluster;
pub mod embedded;
mod eventually;
mod failure;
pub mod isolation;
pub mod operator;
pub mod process;
pub mod real;
pub mod simulation;

pub use cluster::{Cluster, ClusterKind, clusters, for_each_cluster, for_each_own_cluster};
pub use eventually::{eventually, eventually_within};
pub use operator::{OperatorTest, RunningOperator};
