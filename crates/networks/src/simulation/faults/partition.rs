//! Partitions: who keeps out whom, for how long, and how that ends.
//!
//! A peer that knows how ends a partition by itself: each request to keep addresses out has a time, and is repeated before that is over. So a request
//! that arrives after the end, of an operator that no longer is the leader, does not last.
//!
//! All peers on one side of a partition keep out the same addresses, and share one list of them: the work grows with the number of peers, not with its square.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{RENEW, Step};
use crate::kinds::{FaultAction, FaultPhase, FaultStatus, Simulation, SimulationStatus};
use crate::peers::Peer;
use crate::rpc::Disturbance;

/// How long a peer keeps others out unless it is told again. Two of three requests may be lost.
const LASTS: Duration = RENEW.saturating_mul(3);

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

/// What is to be done for all partitions to be over, whatever was declared.
pub fn mend(recorded: &SimulationStatus, peers: &[Peer]) -> Vec<Step> {
    let blocked = blocked_addresses(recorded);
    let faults = recorded.faults.iter().enumerate().filter(|(_, status)| is_parted(status));
    faults.flat_map(|(fault, _)| mending(fault, &blocked, peers)).collect()
}

/// The addresses that peers may have been told to keep out.
pub fn blocked_addresses(recorded: &SimulationStatus) -> BTreeSet<IpAddr> {
    // Operators of former versions recorded them with each fault.
    let with_faults =
        recorded.faults.iter().filter(|fault| is_parted(fault)).flat_map(|fault| &fault.addresses);
    recorded.blocked_addresses.iter().chain(with_faults).filter_map(|address| address.parse().ok()).collect()
}

/// Records the addresses that peers may be told to keep out from now on, before anybody is told. None if there is no partition.
pub fn record_addresses(status: &mut SimulationStatus, before: &SimulationStatus, peers: &[Peer]) {
    let mut all = BTreeSet::new();
    if status.faults.iter().any(is_parted) {
        all = blocked_addresses(before);
        all.extend(peers.iter().flat_map(addresses));
    }
    status.blocked_addresses = all.iter().map(ToString::to_string).collect();
    status.faults.iter_mut().for_each(|fault| fault.addresses.clear());
}

/// Lets everybody in again.
pub(super) fn mending(fault: usize, blocked: &BTreeSet<IpAddr>, peers: &[Peer]) -> Vec<Step> {
    if blocked.is_empty() {
        return Vec::new();
    }
    let all: Arc<[IpAddr]> = blocked.iter().copied().collect();
    let unblock = |peer: &Peer| Step::Disturb {
        fault,
        peer: peer.name.clone(),
        disturbance: Disturbance::Unblock(Arc::clone(&all)),
    };
    peers.iter().map(unblock).collect()
}

/// Keeps both sides apart for as long as is left, or until it is renewed.
pub(super) fn parting(
    fault: usize,
    status: &FaultStatus,
    blocked: &BTreeSet<IpAddr>,
    left: Duration,
    peers: &[Peer],
) -> Vec<Step> {
    let side: BTreeSet<&str> = status.peers.iter().map(String::as_str).collect();
    let located = peers.iter().map(|peer| (peer, side.contains(peer.name.as_str()), addresses(peer)));
    let located: Vec<(&Peer, bool, Vec<IpAddr>)> = located.collect();
    let list = |of_side: bool| -> BTreeSet<IpAddr> {
        let own = located.iter().filter(|(_, on_side, _)| *on_side == of_side);
        own.flat_map(|(_, _, own)| own).copied().filter(|address| blocked.contains(address)).collect()
    };
    let lists = [list(false), list(true)];
    let shared: [Arc<[IpAddr]>; 2] = [0, 1].map(|of_side| lists[of_side].iter().copied().collect());
    let lasts = left.min(LASTS);
    let step = |(peer, on_side, own): &(&Peer, bool, Vec<IpAddr>)| {
        let others = usize::from(!*on_side);
        let mut block = Arc::clone(&shared[others]);
        // Who shares an address with the other side would keep out itself.
        if own.iter().any(|address| lists[others].contains(address)) {
            block = block.iter().copied().filter(|address| !own.contains(address)).collect();
        }
        let is_any = !block.is_empty();
        let disturbance = Disturbance::Block { addresses: block, lasts };
        is_any.then(|| Step::Disturb { fault, peer: peer.name.clone(), disturbance })
    };
    located.iter().filter_map(step).collect()
}

/// Where a peer is, as others see it.
fn addresses(peer: &Peer) -> Vec<IpAddr> {
    #[cfg(test)]
    READ.with(|read| read.set(read.get() + 1));
    let parts = |address: &String| {
        let mut words = address.split('/');
        words.by_ref().find(|word| matches!(*word, "ip4" | "ip6"))?;
        words.next()?.parse().ok()
    };
    peer.p2p_addrs.iter().filter_map(parts).collect()
}

#[cfg(test)]
thread_local! {
    /// How many times the addresses of a peer were read.
    pub(super) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
