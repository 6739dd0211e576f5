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
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use crate::kinds::{FaultAction, FaultPhase, FaultSpec, FaultStatus, Simulation};
use crate::peers::Peer;
use crate::rpc::Disturbance;
use crate::time::later;

pub use advance::advance;

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
            FaultAction::Partition if left.is_zero() => steps.extend(mending(fault, status, view.peers)),
            FaultAction::Partition => steps.extend(parting(fault, status, view.peers)),
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

/// What is to be done for all partitions to be over, whatever was declared.
pub fn mend(recorded: &[FaultStatus], peers: &[Peer]) -> Vec<Step> {
    let faults = recorded.iter().enumerate().filter(|(_, status)| is_parted(status));
    faults.flat_map(|(fault, status)| mending(fault, status, peers)).collect()
}

/// Whether peers may be keeping each other out for a fault.
pub fn is_parted(status: &FaultStatus) -> bool {
    status.action == FaultAction::Partition && status.phase == FaultPhase::Active
}

/// The smaller sides of the partitions that there are at present: nobody should connect peers across.
pub fn partitions(simulations: &[Simulation]) -> Vec<Vec<String>> {
    let statuses = simulations.iter().filter_map(|simulation| simulation.status.as_ref());
    let faults = statuses.flat_map(|status| status.faults.iter());
    faults.filter(|fault| is_parted(fault)).map(|fault| fault.peers.clone()).collect()
}

fn mending(fault: usize, status: &FaultStatus, peers: &[Peer]) -> Vec<Step> {
    let addresses: Vec<IpAddr> = status.addresses.iter().filter_map(|address| address.parse().ok()).collect();
    let all = peers.iter().filter(|_| !addresses.is_empty());
    all.map(|peer| Step::Disturb {
        fault,
        peer: peer.name.clone(),
        disturbance: Disturbance::Unblock(addresses.clone()),
    })
    .collect()
}

fn parting(fault: usize, status: &FaultStatus, peers: &[Peer]) -> Vec<Step> {
    let on_side = |peer: &Peer| status.peers.contains(&peer.name);
    let step = |peer: &Peer| {
        let others = peers.iter().filter(|other| on_side(other) != on_side(peer));
        let block: BTreeSet<IpAddr> = others
            .flat_map(addresses)
            .filter(|address| status.addresses.contains(&address.to_string()))
            .collect();
        // Who shares an address with the other side would keep out itself.
        let block: Vec<IpAddr> =
            block.into_iter().filter(|address| !addresses(peer).contains(address)).collect();
        let disturbance = Disturbance::Block(block.clone());
        (!block.is_empty()).then(|| Step::Disturb { fault, peer: peer.name.clone(), disturbance })
    };
    peers.iter().filter_map(step).collect()
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
    let wanted = status.peers.iter().filter(|name| !status.told.contains(name));
    wanted
        .filter(|name| peers.iter().any(|peer| peer.name == **name))
        .map(|name| Step::Disturb { fault, peer: name.clone(), disturbance: disturbance.clone() })
        .collect()
}

/// Where a peer is, as others see it.
fn addresses(peer: &Peer) -> Vec<IpAddr> {
    let parts = |address: &String| {
        let words: Vec<&str> = address.split('/').collect();
        words.windows(2).filter(|pair| matches!(pair[0], "ip4" | "ip6")).find_map(|pair| pair[1].parse().ok())
    };
    peer.p2p_addrs.iter().filter_map(parts).collect()
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

/// When the next look is due, after these steps were tried.
pub fn wake_at(
    specs: &[FaultSpec],
    recorded: &[FaultStatus],
    view: View<'_>,
    tried: &[Step],
) -> Option<Timestamp> {
    let next = steps(specs, recorded, view);
    let mut times = Vec::new();
    if next.iter().any(|step| !tried.contains(step)) {
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
