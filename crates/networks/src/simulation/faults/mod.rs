//! What goes wrong when, and to whom. Pure.
//!
//! ```text
//! recorded ─▶ steps ─▶ (somebody carries them out) ─▶ outcomes ─▶ advance ─▶ recorded
//! ```
//!
//! Only what is recorded is carried out, and whoever crashes in between carries it out again. That is harmless, for each step says what shall be
//! so: this very pod is gone, these addresses are kept out, the pause ends at that time. So every fault happens at least once, and no peer
//! is killed twice for one round.

mod advance;
mod choose;
mod partition;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::kinds::{FaultAction, FaultPhase, FaultSpec, FaultStatus};
use crate::peers::Peer;
use crate::rpc::Disturbance;
use crate::time::later;

pub use advance::advance;
pub use partition::{blocked_addresses, is_parted, mend, partitions, record_addresses};

const DURATION_SECONDS: i32 = 10;
const LATENCY_MILLISECONDS: i32 = 100;
const EVERY_SECONDS: i32 = 5;
/// How long a peer that does not answer is waited for at the end of a partition.
const MEND_PATIENCE: Duration = Duration::from_secs(30);
/// When a step that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How often a partition is made anew, for peers that have been started since.
const RENEW: Duration = Duration::from_secs(5);

/// What faults depend on besides what was declared and recorded.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// What time it is.
    pub now: Timestamp,
    /// When the load began.
    pub began_at: Timestamp,
    /// When all faults are over at the latest.
    pub ends_at: Timestamp,
    /// What chance is made from.
    pub seed: i64,
    /// The names of the peers that the run is about.
    pub names: &'a [String],
    /// The peers that answer.
    pub peers: &'a [Peer],
    /// The uids of peers' pods that are there and not being deleted, by name.
    pub pods: &'a BTreeMap<String, String>,
    /// The addresses that are recorded: peers are told to keep out no others.
    pub blocked: &'a BTreeSet<IpAddr>,
}

/// Something to do, for the fault at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Delete a pod, if it still is this one.
    Delete {
        /// The place of the fault.
        fault: usize,
        /// The pod's name.
        pod: String,
        /// Which of that name.
        uid: String,
    },
    /// Have a peer suffer something.
    Disturb {
        /// The place of the fault.
        fault: usize,
        /// The peer's name.
        peer: String,
        /// What.
        disturbance: Disturbance,
    },
}

impl Step {
    /// The place of the fault that it is for.
    pub fn fault(&self) -> usize {
        match self {
            Self::Delete { fault, .. } | Self::Disturb { fault, .. } => *fault,
        }
    }

    /// Whom it happens to.
    pub fn peer(&self) -> &str {
        match self {
            Self::Delete { pod, .. } => pod,
            Self::Disturb { peer, .. } => peer,
        }
    }
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is so.
    Done,
    /// It is so, and stays so until it is undone: the peer does not end it by itself.
    DoneWithoutEnd,
    /// The peer does not know how.
    Unsupported,
    /// It is to be tried again.
    Failed(String),
}

/// What is to be done now, from what is recorded.
pub fn steps(specs: &[FaultSpec], recorded: &[FaultStatus], view: View<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (fault, status) in recorded.iter().enumerate() {
        if status.phase != FaultPhase::Active {
            continue;
        }
        let spec = specs.get(fault).filter(|spec| spec.action == status.action);
        let end = end(spec, status, view);
        let left = Duration::try_from(end.duration_since(view.now)).unwrap_or_default();
        match status.action {
            FaultAction::Kill | FaultAction::Churn if !left.is_zero() || spec.is_some_and(is_kill) => {
                steps.extend(status.pods.iter().map(|pod| Step::Delete {
                    fault,
                    pod: pod.name.clone(),
                    uid: pod.uid.clone(),
                }));
            }
            FaultAction::Kill | FaultAction::Churn => {}
            FaultAction::Partition if left.is_zero() => {
                steps.extend(partition::mending(fault, view.blocked, view.peers));
            }
            FaultAction::Partition => {
                steps.extend(partition::parting(fault, status, view.blocked, left, view.peers));
            }
            FaultAction::Pause | FaultAction::Latency => {
                if let Some(spec) = spec.filter(|_| !left.is_zero()) {
                    steps.extend(disturbing(fault, spec, status, left, view.peers));
                }
            }
        }
    }
    steps
}

fn is_kill(spec: &FaultSpec) -> bool {
    spec.action == FaultAction::Kill
}

fn disturbing(
    fault: usize,
    spec: &FaultSpec,
    status: &FaultStatus,
    left: Duration,
    peers: &[Peer],
) -> Vec<Step> {
    let late = u64::try_from(spec.latency_milliseconds.unwrap_or(LATENCY_MILLISECONDS)).unwrap_or_default();
    let disturbance = if spec.action == FaultAction::Pause {
        Disturbance::Pause(left)
    } else {
        Disturbance::Latency { late: Duration::from_millis(late), lasts: left }
    };
    let told: BTreeSet<&String> = status.told.iter().collect();
    let there: BTreeSet<&String> = peers.iter().map(|peer| &peer.name).collect();
    let wanted = status.peers.iter().filter(|name| !told.contains(name));
    wanted
        .filter(|name| there.contains(name))
        .map(|name| Step::Disturb { fault, peer: name.clone(), disturbance: disturbance.clone() })
        .collect()
}

/// When a fault that has begun is over.
fn end(spec: Option<&FaultSpec>, status: &FaultStatus, view: View<'_>) -> Timestamp {
    let lasts = spec.map_or(0, |spec| spec.duration_seconds.unwrap_or(DURATION_SECONDS));
    let began = status.started_at.as_ref().map_or(view.now, |at| at.0);
    later(began, seconds(lasts)).min(view.ends_at)
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// What steps come to. Lists of addresses are long and shared by many peers, so each is compared once.
struct Tried<'a> {
    steps: BTreeSet<(usize, &'a str, StepKind)>,
    lists: BTreeSet<(usize, &'a [IpAddr])>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StepKind {
    Delete,
    Block,
    Unblock,
    Other,
}

impl<'a> Tried<'a> {
    fn of(steps: &'a [Step]) -> Self {
        let mut tried = Self { steps: BTreeSet::new(), lists: BTreeSet::new() };
        let mut known = BTreeSet::new();
        for step in steps {
            let (kind, list) = match step {
                Step::Delete { .. } => (StepKind::Delete, None),
                Step::Disturb { disturbance: Disturbance::Block { addresses, .. }, .. } => {
                    (StepKind::Block, Some(addresses))
                }
                Step::Disturb { disturbance: Disturbance::Unblock(addresses), .. } => {
                    (StepKind::Unblock, Some(addresses))
                }
                Step::Disturb { .. } => (StepKind::Other, None),
            };
            tried.steps.insert((step.fault(), step.peer(), kind));
            if let Some(list) = list.filter(|list| known.insert((step.fault(), Arc::as_ptr(list).addr()))) {
                tried.lists.insert((step.fault(), list));
            }
        }
        tried
    }

    fn is_among(&self, others: &Self) -> bool {
        self.steps.is_subset(&others.steps) && self.lists.is_subset(&others.lists)
    }
}

/// When the next look is due, after these steps were tried.
pub fn wake_at(
    specs: &[FaultSpec],
    recorded: &[FaultStatus],
    view: View<'_>,
    tried: &[Step],
) -> Option<Timestamp> {
    let mut times = Vec::new();
    if !Tried::of(&steps(specs, recorded, view)).is_among(&Tried::of(tried)) {
        times.push(view.now);
    }
    for (spec, status) in specs.iter().zip(recorded) {
        match status.phase {
            FaultPhase::Waiting => {
                times.push(later(view.began_at, seconds(spec.at_seconds)).min(view.ends_at));
            }
            FaultPhase::Active => {
                let again =
                    if is_parted(status) && end(Some(spec), status, view) > view.now { RENEW } else { RETRY };
                times
                    .extend((!status.pods.is_empty() || is_parted(status)).then_some(later(view.now, again)));
                times.push(end(Some(spec), status, view).max(later(view.now, RETRY / 10)));
                if status.action == FaultAction::Churn && status.pods.is_empty() {
                    let began = status.started_at.as_ref().map_or(view.now, |at| at.0);
                    let every = seconds(spec.every_seconds.unwrap_or(EVERY_SECONDS).max(1));
                    times.push(later(began, every.saturating_mul(u32::try_from(status.rounds).unwrap_or(1))));
                }
                let untold = status.peers.len() > status.told.len();
                let told = matches!(status.action, FaultAction::Pause | FaultAction::Latency);
                times.extend((told && untold).then_some(later(view.now, RETRY)));
            }
            FaultPhase::Over | FaultPhase::Unsupported => {}
        }
    }
    times.into_iter().min()
}
