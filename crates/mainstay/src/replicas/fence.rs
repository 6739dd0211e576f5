//! The fence: what is asked before work begins and before each write.
//!
//! It guarantees that a write which is permitted and keeps to its timeout ends before any other replica can be permitted
//! one for the same parent, provided that the [`Turn`] that permitted it is kept until then. The lease of a shard counts from just *before* its last renewal was sent; others count from
//! when they saw it. So the fence closes by itself, without a word from anyone, before the lease can be lost.
//! It cannot call back a request that the network delivers after its timeout; the safety margin is for that.
//!
//! Asking costs a few atomic loads and a look at the clocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::decide::Waiting;
use super::ledger::{Drain, Ledger};
use super::moment::Moment;
use super::shard::{Identity, Shard};
use super::work::Work;
use crate::clock::{Clock, later};

/// Which shards this replica may write for, and until when. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fence(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: Option<Identity>,
    clock: Arc<dyn Clock>,
    origin: Instant,
    gates: Box<[Gate]>,
    standing: watch::Sender<Standing>,
    idle: Notify,
}

/// One shard's part of the fence.
#[derive(Debug, Default)]
struct Gate {
    /// Nanoseconds after the origin until which it is open: zero is closed, the maximum is for ever.
    until: AtomicU64,
    /// The same by the wall clock, in microseconds.
    wall_until: AtomicI64,
    tenure: AtomicU64,
    work: Work,
}

/// How a replica stands among the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// The shards it writes for, each with the number of its tenure. A shard that was lost and won again between two looks
    /// has another number: its parents must be looked at again.
    pub held: BTreeMap<Shard, u64>,
    /// How many replicas share the shards, as far as is known.
    pub members: usize,
    /// Why it holds nothing, or less than its share.
    pub waiting: Option<Waiting>,
}

/// Why a replica may not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// Its lease is another replica's, or has not been renewed in time.
    #[error("this replica doesn't hold the lease of shard {0}")]
    NotHeld(Shard),
    /// It is about to hand the shard to another replica.
    #[error("this replica is handing over shard {0}")]
    Draining(Shard),
    /// It holds the lease, but not for as long as the write may take. It may be renewed in a moment.
    #[error("the lease of shard {0} may run out before the write is done")]
    TooLate(Shard),
    /// The work began before the shard was lost and won again.
    #[error("shard {0} was lost and won again since this work began")]
    Superseded(Shard),
}

/// The permission for one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    deadline: Instant,
}

impl Permit {
    /// When the write must have ended, or been given up.
    pub fn deadline(self) -> Instant {
        self.deadline
    }
}

/// Work on one parent that has begun. While it is there, the parent's shard is not handed over.
#[derive(Debug)]
pub struct Turn {
    fence: Fence,
    shard: Shard,
    tenure: u64,
}

impl Fence {
    /// A fence that is always open, for an operator without replicas.
    pub(super) fn unguarded(clock: Arc<dyn Clock>) -> Self {
        let fence = Self::new(None, 1, clock);
        let gate = &fence.0.gates[0];
        gate.tenure.store(1, SeqCst);
        gate.wall_until.store(i64::MAX, SeqCst);
        gate.until.store(u64::MAX, SeqCst);
        let held = [(Shard::new(0), 1)].into();
        fence.0.standing.send_replace(Standing { held, members: 1, waiting: None });
        fence
    }

    pub(super) fn closed(identity: Identity, shards: u32, clock: Arc<dyn Clock>) -> Self {
        Self::new(Some(identity), shards, clock)
    }

    fn new(identity: Option<Identity>, shards: u32, clock: Arc<dyn Clock>) -> Self {
        let gates = (0..shards).map(|_| Gate::default()).collect();
        let standing = watch::Sender::new(Standing::default());
        let (origin, idle) = (Instant::now(), Notify::new());
        Self(Arc::new(Inner { identity, clock, origin, gates, standing, idle }))
    }

    /// This replica's name in its leases, if it has any.
    pub fn identity(&self) -> Option<&Identity> {
        self.0.identity.as_ref()
    }

    /// The shard of a parent.
    pub fn shard_of(&self, uid: &str) -> Shard {
        Shard::of(uid, self.shards())
    }

    /// The number of shards.
    pub fn shards(&self) -> u32 {
        // There are as many gates as shards, which are counted in a `u32`.
        u32::try_from(self.0.gates.len()).unwrap_or(u32::MAX)
    }

    /// Whether this replica may begin work on a parent now.
    pub fn is_mine(&self, uid: &str) -> bool {
        self.check(self.shard_of(uid), self.now(), Duration::ZERO).is_ok()
    }

    /// Begins work on a parent. The shard isn't handed over until the [`Turn`] is dropped.
    pub fn begin(&self, uid: &str) -> Result<Turn, Lost> {
        let shard = self.shard_of(uid);
        let Some(gate) = self.gate(shard) else { return Err(Lost::NotHeld(shard)) };
        let tenure = gate.tenure.load(SeqCst);
        let may_begin = gate.work.begin();
        let turn = Turn { fence: self.clone(), shard, tenure };
        if !may_begin {
            return Err(Lost::Draining(shard));
        }
        self.check(shard, self.now(), Duration::ZERO)?;
        Ok(turn)
    }

    /// Permits a write, but doesn't keep the shard from being handed over: only a [`Turn`] does.
    pub(super) fn permit(&self, shard: Shard, timeout: Duration) -> Result<Permit, Lost> {
        self.check(shard, self.now(), timeout)
    }

    /// How this replica stands, now and whenever it changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.0.standing.subscribe()
    }

    fn now(&self) -> Moment {
        Moment::now(&*self.0.clock)
    }

    fn gate(&self, shard: Shard) -> Option<&Gate> {
        self.0.gates.get(shard.index() as usize)
    }

    fn check(&self, shard: Shard, now: Moment, timeout: Duration) -> Result<Permit, Lost> {
        let gate = self.gate(shard).ok_or(Lost::NotHeld(shard))?;
        let until = gate.until.load(SeqCst);
        let permit = Permit { deadline: later(now.at, timeout) };
        if until == u64::MAX {
            return Ok(permit);
        }
        let end = now.plus(timeout);
        let open_for = |moment: Moment| {
            nanos_between(self.0.origin, moment.at) < until
                && moment.wall.as_microsecond() < gate.wall_until.load(SeqCst)
        };
        match (open_for(now), open_for(end)) {
            (true, true) => Ok(permit),
            (true, false) => Err(Lost::TooLate(shard)),
            (false, _) => Err(Lost::NotHeld(shard)),
        }
    }

    /// Shows what the ledger says, at every gate.
    pub(super) fn reflect(&self, ledger: &Ledger) {
        for (index, gate) in (0..).zip(&self.0.gates) {
            let own = ledger.own.get(&Shard::new(index));
            gate.work.drain(own.is_some_and(|own| own.drain != Drain::No));
            let own = own.filter(|own| own.open);
            let Some((own, deadline)) = own.and_then(|own| Some((own, ledger.deadline(own)?))) else {
                gate.until.store(0, SeqCst);
                continue;
            };
            // A turn of an earlier tenure that sees the new deadline must also see the new tenure.
            gate.tenure.store(own.tenure, SeqCst);
            gate.wall_until.store(deadline.wall.as_microsecond(), SeqCst);
            gate.until.store(nanos_between(self.0.origin, deadline.at), SeqCst);
        }
    }

    /// Tells everyone how this replica stands, if that has changed.
    pub(super) fn tell(&self, standing: Standing) {
        self.0.standing.send_if_modified(|told| {
            let changed = *told != standing;
            *told = standing;
            changed
        });
    }

    /// Whether no work runs for a shard.
    pub(super) fn is_idle(&self, shard: Shard) -> bool {
        self.gate(shard).is_none_or(|gate| gate.work.is_idle())
    }

    /// Waits until the last work of a shard that is being drained has ended. May also return for nothing.
    pub(super) async fn drained(&self) {
        self.0.idle.notified().await;
    }
}

impl Turn {
    /// The shard of the parent.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// Permits a write that ends within `timeout`, if no other replica can be permitted one before that.
    pub fn permit(&self, timeout: Duration) -> Result<Permit, Lost> {
        let permit = self.fence.permit(self.shard, timeout)?;
        let tenure = self.fence.gate(self.shard).map(|gate| gate.tenure.load(SeqCst));
        if tenure == Some(self.tenure) { Ok(permit) } else { Err(Lost::Superseded(self.shard)) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(gate) = self.fence.gate(self.shard) else { return };
        if gate.work.end() {
            self.fence.0.idle.notify_one();
        }
    }
}

fn nanos_between(from: Instant, to: Instant) -> u64 {
    // One less than the maximum, which means for ever.
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX).min(u64::MAX - 1)
}
