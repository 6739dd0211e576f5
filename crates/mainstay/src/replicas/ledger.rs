//! What one replica knows of its operator's leases: what it has seen of all of them, and which it holds itself.
//!
//! Plain data. Expiry is judged by how long ago this replica *saw* a lease change, measured by its own monotonic clock:
//! the holder sent that change earlier, so it expects to lose the lease earlier than anyone here takes it. The times
//! that stand in leases are never compared, so clocks may be wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use super::moment::Moment;
use super::options::Terms;
use super::record::{self, Names, Role};
use super::shard::{Identity, Shard};
use crate::clock::later;

/// A lease as it was last seen.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) lease: Lease,
    pub(super) role: Role,
    /// Into how many shards its holder divides the parents.
    pub(super) layout: u32,
    pub(super) holder: Option<Identity>,
    duration: Duration,
    /// When this replica learnt of its present version.
    pub(super) changed_at: Instant,
    /// Someone deleted it while it was held. Its holder may still be writing until it would have expired.
    pub(super) gone: bool,
}

impl Seen {
    fn of(lease: Lease, lasts: Duration, now: Instant) -> Self {
        Self {
            role: record::role(&lease),
            layout: record::layout(&lease),
            holder: record::holder(&lease),
            duration: record::duration(&lease).unwrap_or(lasts),
            changed_at: now,
            gone: false,
            lease,
        }
    }

    /// When anyone may take it, unless it is seen to change before.
    pub(super) fn expires_at(&self) -> Instant {
        later(self.changed_at, self.duration)
    }

    /// Whether its holder may still act on it.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        self.holder.is_some() && now < self.expires_at()
    }

    pub(super) fn live_holder(&self, now: Instant) -> Option<&Identity> {
        self.holder.as_ref().filter(|_| self.is_live(now))
    }
}

/// How far a shard that is to be given up has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drain {
    /// It is not to be given up.
    No,
    /// No new work begins; some still runs.
    Running,
    /// No work runs.
    Done,
}

/// A shard whose lease this replica holds.
#[derive(Debug, Clone)]
pub(super) struct Own {
    /// Just before the last successful renewal was sent: nobody saw it earlier than that. None if the record says that
    /// this replica holds it, but the answer to the request that took it was lost.
    pub(super) renewed: Option<Moment>,
    /// Whether it is certain that no other replica may write for its parents. A lease that was just taken, or was
    /// renewed too late, is not open until a list that began after it showed no holder with another number of shards.
    pub(super) open: bool,
    pub(super) drain: Drain,
    /// Counts the times it was opened. Work that began in an earlier tenure may not write in a later one.
    pub(super) tenure: u64,
}

/// What one replica knows.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) me: Identity,
    pub(super) names: Names,
    pub(super) terms: Terms,
    pub(super) leases: BTreeMap<String, Seen>,
    pub(super) own: BTreeMap<Shard, Own>,
    /// When the member lease was last renewed.
    pub(super) member_at: Option<Instant>,
    /// Since when everything is to be given up.
    pub(super) stopping: Option<Instant>,
    tenures: u64,
}

impl Ledger {
    pub(super) fn new(me: Identity, names: Names, terms: Terms) -> Self {
        let (leases, own) = (BTreeMap::new(), BTreeMap::new());
        Self { me, names, terms, leases, own, member_at: None, stopping: None, tenures: 0 }
    }

    /// The lease of a shard, as last seen.
    pub(super) fn shard(&self, shard: Shard) -> Option<&Seen> {
        self.leases.get(&self.names.shard(shard))
    }

    /// When this replica stops to write for a shard, if it isn't renewed.
    pub(super) fn deadline(&self, own: &Own) -> Option<Moment> {
        Some(own.renewed?.plus(self.terms.duration.saturating_sub(self.terms.margin)))
    }

    /// Takes note of all leases, as a list that has just arrived shows them.
    pub(super) fn observe_all(&mut self, leases: Vec<Lease>, now: Instant) {
        let mut before = std::mem::take(&mut self.leases);
        for lease in leases {
            let Some(name) = lease.metadata.name.clone() else { continue };
            let seen = self.compare(before.remove(&name), lease, now);
            self.leases.insert(name, seen);
        }
        for (name, mut seen) in before {
            if seen.role == Role::Shard && seen.is_live(now) {
                seen.gone = true;
                self.leases.insert(name, seen);
            }
        }
        self.settle_own();
    }

    /// Takes note of one lease, as an answer that has just arrived shows it.
    pub(super) fn observe(&mut self, lease: Lease, now: Instant) {
        let Some(name) = lease.metadata.name.clone() else { return };
        let before = self.leases.remove(&name);
        let seen = self.compare(before, lease, now);
        self.leases.insert(name, seen);
        self.settle_own();
    }

    fn compare(&self, before: Option<Seen>, mut lease: Lease, now: Instant) -> Seen {
        // Without them the server leaves them as they are.
        lease.metadata.managed_fields = None;
        match before {
            // Any new version counts as a change: at worst an expired lease is waited for longer.
            Some(before)
                if before.lease.metadata.resource_version == lease.metadata.resource_version
                    && before.lease.metadata.uid == lease.metadata.uid =>
            {
                Seen { gone: false, ..before }
            }
            _ => Seen::of(lease, self.terms.duration, now),
        }
    }

    /// Forgets the shards whose lease is seen to be another's, or deleted, and adds those whose lease is seen to be
    /// this replica's.
    fn settle_own(&mut self) {
        for shard in self.names.shards() {
            let seen = self.leases.get(&self.names.shard(shard)).filter(|seen| !seen.gone);
            if seen.is_some_and(|seen| seen.holder.as_ref() == Some(&self.me)) {
                self.own.entry(shard).or_insert(Own {
                    renewed: None,
                    open: false,
                    drain: Drain::No,
                    tenure: 0,
                });
            } else {
                self.own.remove(&shard);
            }
        }
    }

    /// A lease was taken or renewed by a request that was sent at `sent`.
    pub(super) fn renewed(&mut self, shard: Shard, lease: Lease, sent: Moment, now: Moment) {
        self.observe(lease, now.at);
        let Some(own) = self.own.get(&shard) else { return };
        // If the deadline passed before the answer came, work was turned away, and another replica may have seen the lease
        // expired: that is as good as a new one.
        let lapsed = self.deadline(own).is_none_or(|deadline| deadline.passed(now));
        let own = Own { renewed: Some(sent), open: own.open && !lapsed, ..own.clone() };
        self.own.insert(shard, own);
    }

    /// The member lease was renewed by a request that was sent at `sent`.
    pub(super) fn kept_member(&mut self, lease: Lease, sent: Moment, now: Moment) {
        self.member_at = Some(sent.at);
        self.observe(lease, now.at);
    }

    /// The member lease was deleted.
    pub(super) fn removed_member(&mut self) {
        self.member_at = None;
        self.leases.remove(&self.names.member(&self.me));
    }

    /// Opens a shard: from here on it may be written for, until its deadline.
    pub(super) fn open(&mut self, shard: Shard) {
        if let Some(own) = self.own.get_mut(&shard) {
            self.tenures += 1;
            *own = Own { open: true, drain: Drain::No, tenure: self.tenures, ..own.clone() };
        }
    }

    /// Says how far the draining of a shard has come.
    pub(super) fn drain(&mut self, shard: Shard, drain: Drain) {
        if let Some(own) = self.own.get_mut(&shard) {
            own.drain = drain;
        }
    }

    /// Closes a shard, before the request that releases its lease is sent.
    pub(super) fn close(&mut self, shard: Shard) {
        if let Some(own) = self.own.get_mut(&shard) {
            own.open = false;
        }
    }
}
