//! What becomes of a pod, as a kubelet decides it. Pure.
//!
//! ```text
//! pod (spec, recorded status) ┐
//! what is seen of containers  ├─▶ containers ─▶ next (starts, stop) ─▶ status (containers, phase, conditions) ─▶ Decision
//! the time                    ┘
//! ```
//!
//! The recorded status is the only memory there is. From this follow two rules:
//! - What has ended is recorded before anything is done about it. A node that dies in between finds the end in the status.
//! - No container starts before the pod has its `startTime`.
//!
//! Each decision is one step; the write of its status leads to the next.

mod backoff;
mod conditions;
mod containers;
mod events;
mod next;
mod phase;
mod status;
#[cfg(test)]
mod tests;
mod time;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use self::containers::{Container, Standing};
pub(super) use self::events::events;
pub(super) use self::next::{Start, Stop, stopping};
pub(super) use self::time::{after, left};
use super::runtime::{CannotStart, Observed};

/// All that a decision rests on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'a> {
    /// The pod, with its recorded status.
    pub(super) pod: &'a Pod,
    /// What is seen of its containers, by name. One that is not here is absent.
    pub(super) seen: &'a BTreeMap<String, Observed>,
    /// Which of them could not be started just now.
    pub(super) refused: &'a BTreeMap<String, CannotStart>,
    /// Where it is.
    pub(super) addresses: &'a Addresses,
    /// The time.
    pub(super) now: Timestamp,
}

/// Where a pod is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addresses {
    /// Its own.
    pub(super) pod: String,
    /// Its node's.
    pub(super) host: String,
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    /// How the pod is.
    pub(super) status: PodStatus,
    /// Containers to be started now.
    pub(super) starts: Vec<Start>,
    /// All containers are to end.
    pub(super) stop: Option<Stop>,
    /// When to look again, if nothing happens before.
    pub(super) again: Option<Duration>,
    /// Nothing is left of the pod but the object, which can go.
    pub(super) over: bool,
}

/// What becomes of a pod.
pub(super) fn decide(situation: &Situation<'_>) -> Decision {
    let Situation { pod, now, .. } = *situation;
    let containers = containers::all(pod, situation.seen);
    let stop = stopping(pod, now);
    let runs = containers.iter().any(Container::is_running);
    let planned = if stop.is_some() { Vec::new() } else { next::plan_starts(pod, &containers, now) };
    let status = status::next_status(situation, &containers, &planned, stop.as_ref());
    let deadline = next::deadline(pod).filter(|_| stop.is_none());
    let waits = planned.iter().map(|start| start.due).chain(deadline).filter_map(|due| left(due, now));
    let grace_is_over = pod.metadata.deletion_grace_period_seconds == Some(0);
    Decision {
        again: waits.min(),
        starts: planned.iter().filter(|start| left(start.due, now).is_none()).cloned().collect(),
        over: pod.metadata.deletion_timestamp.is_some() && !runs && !grace_is_over,
        stop: stop.filter(|_| runs),
        status,
    }
}

/// The recorded phase, if it is one that no pod leaves.
fn ended_phase(pod: &Pod) -> Option<&str> {
    let phase = pod.status.as_ref()?.phase.as_deref()?;
    matches!(phase, "Succeeded" | "Failed").then_some(phase)
}

/// Whether a container runs again after it ended so.
fn runs_again(pod: &Pod, container: &Container<'_>) -> bool {
    match &container.standing {
        Standing::Ended(end) => container.restarts_after(pod, end.code()),
        _ => false,
    }
}
