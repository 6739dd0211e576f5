//! What runs containers, as a node sees it.
//!
//! A runtime knows containers, not pods: it starts one attempt at a time, says what became of it, and stops it. What follows from
//! that for a pod (phase, restarts, back-off) is decided elsewhere, in one place for all runtimes.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use mainstay::{Key, Kind, Operator};

/// Which pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What is known of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// Nothing: it was never started here.
    Absent,
    /// It runs.
    Running {
        /// Which attempt this is; the first is 0. As `restartCount`.
        attempt: u32,
        /// Since when.
        since: Timestamp,
        /// Whether its startup probe has succeeded, if it has one.
        started: bool,
        /// Whether its readiness probe succeeds, if it has one.
        ready: bool,
    },
    /// Its last attempt is over.
    Exited {
        /// Which attempt it was.
        attempt: u32,
        /// The exit code; 128 and the signal's number if a signal ended it.
        code: i32,
        /// From when.
        since: Timestamp,
        /// Until when.
        until: Timestamp,
        /// Why, if it was not its own doing: a liveness probe that failed.
        message: Option<String>,
        /// It ended because the node did: the node was shut down, or was killed while it ran.
        by_node: bool,
    },
}

/// A container to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Of which pod.
    pub pod: PodId,
    /// The pod.
    pub object: Pod,
    /// Which of its containers.
    pub container: String,
    /// Which attempt this is.
    pub attempt: u32,
    /// The pod's address.
    pub address: String,
}

/// Why a container cannot be started, in the words that a waiting container's status has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct CannotStart {
    /// One word: `CreateContainerConfigError`, `RunContainerError`, …
    pub reason: String,
    /// What is wrong, and with which field.
    pub message: String,
}

/// Runs containers.
pub trait Runtime: Send + Sync + 'static {
    /// Whether containers of this image are this runtime's.
    fn runs(&self, image: &str) -> bool;

    /// The address of a pod: the same for as long as the pod is there.
    fn address(&self, pod: &PodId) -> String;

    /// What is known of a container.
    fn observe(&self, pod: &PodId, container: &str) -> Observed;

    /// Starts an attempt. Returns when the process is there, or with the reason why it cannot be.
    fn start(&self, launch: Launch) -> BoxFuture<'_, Result<(), CannotStart>>;

    /// Asks all containers of a pod to end, and ends those that have not after `grace`. Returns at once.
    fn stop(&self, pod: &PodId, grace: Duration);

    /// Forgets a pod that is gone, with its files.
    fn forget(&self, pod: &PodId);
}

/// Has the node look at a pod at once: a process has ended, a probe has another result.
pub fn wake(node: &Operator, pod: &PodId) {
    node.reconcile_now(&Kind::of::<Pod>(), &Key::namespaced(&pod.namespace, &pod.name));
}
