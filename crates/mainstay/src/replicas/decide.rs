//! What to do about the leases. Pure: everything follows from the ledger and the time.
//!
//! Safety doesn't rest on these decisions but on three things that each of them respects: a lease is taken only if it
//! is free, released or expired as seen from here; every write carries the version it was decided on, so of two takers
//! one wins; and a shard is opened only by a list that began after its lease was written. The last makes a change
//! of the number of shards safe, where different leases cover the same parents: of two replicas that both write
//! first and look then, at least one sees the other.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::balance;
use super::ledger::{Drain, Ledger, Own};
use super::record::Role;
use super::shard::{Identity, Shard};
use crate::clock::later;

/// Leases of replicas that are gone for good are deleted after so many of their durations.
const SWEPT_AFTER: u32 = 10;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Say that this replica is alive and takes shards.
    KeepMember,
    /// Say that it takes none any more.
    RemoveMember,
    /// Renew the lease of a shard that this replica holds.
    Renew(Shard),
    /// Take the lease of a shard that nobody holds.
    Acquire(Shard),
    /// Begin to write for a shard.
    Open(Shard),
    /// Begin no more work for a shard.
    Drain(Shard),
    /// Give the lease of a shard back.
    Release(Shard),
    /// Delete a lease that nobody uses.
    Sweep(String),
}

/// Why a replica holds nothing, or less than its share.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// Another replica holds the only shard; this one stands by.
    Holder(Identity),
    /// There are more replicas than shards; this one stands by.
    Spare,
    /// Its share is still held by others, which will give it up or lose it.
    Share,
    /// A replica that divides the parents into another number of shards holds leases.
    Layout {
        /// That number.
        shards: u32,
        /// That replica.
        holder: Identity,
    },
}

/// What to do now, and when to look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) steps: Vec<Step>,
    pub(super) waiting: Option<Waiting>,
    /// How many replicas share the shards.
    pub(super) members: usize,
    /// When to look again, about.
    pub(super) pause: Duration,
    /// When to look again at the latest, because something expires then.
    pub(super) latest: Option<Instant>,
    /// All is given up; the replica can stop.
    pub(super) finished: bool,
}

/// What can be decided without looking at the leases again: what is to be renewed, and when stopping what is to be given
/// up.
pub(super) fn due(ledger: &Ledger, now: Instant) -> Vec<Step> {
    // A little early, because nobody wakes on time.
    let is_due = |renewed: Instant| now >= later(renewed, ledger.terms.renew / 4 * 3);
    let stopping = ledger.stopping.is_some();
    let mut steps = if stopping { stop(ledger) } else { Vec::new() };
    if has_members(ledger) && !stopping && ledger.member_at.is_none_or(is_due) {
        steps.push(Step::KeepMember);
    }
    // A lease that no work needs any more is given back, and if that fails it may as well run out.
    let needed = ledger.own.iter().filter(|(_, own)| own.drain != Drain::Done);
    let old = needed.filter(|(_, own)| own.renewed.is_none_or(|renewed| is_due(renewed.at)));
    steps.extend(old.map(|(shard, _)| Step::Renew(*shard)));
    steps
}

/// Everything to do, once a list has just been observed.
pub(super) fn decide(ledger: &Ledger, now: Instant) -> Decision {
    let mut steps = due(ledger, now);
    let other = other_layout(ledger, now);
    let held = held(ledger, now);
    let quotas = balance::quotas(&held, ledger.names.count);
    let mut waiting = None;
    if ledger.stopping.is_none() {
        let mine = own_count(ledger);
        let quota = quotas.get(&ledger.me).copied().unwrap_or(0);
        steps.extend(settle(ledger, mine.saturating_sub(quota), other.is_some()));
        waiting = other.or_else(|| why_less(ledger, mine, quota, now));
        if !matches!(waiting, Some(Waiting::Layout { .. })) {
            steps.extend(acquire(ledger, &held, &quotas, now));
        }
    }
    steps.extend(sweep(ledger, now));
    let finished = ledger.stopping.is_some() && ledger.own.is_empty() && steps.is_empty();
    let pause = pause(ledger, waiting.is_some(), now);
    Decision { steps, waiting, members: held.len(), pause, latest: next_expiry(ledger, now), finished }
}

/// With one shard there is nothing to share, so nobody needs to know who else would take it.
fn has_members(ledger: &Ledger) -> bool {
    ledger.names.count > 1
}

fn own_count(ledger: &Ledger) -> u32 {
    u32::try_from(ledger.own.len()).unwrap_or(u32::MAX)
}

/// Whether a replica that stops and cannot reach the server has nothing left to give up: all of it has run out.
pub(super) fn has_run_out(ledger: &Ledger, now: Instant) -> bool {
    let over = |since: Instant| now >= later(since, ledger.terms.duration);
    let mut own = ledger.own.values().filter_map(|own| own.renewed);
    ledger.stopping.is_some() && own.all(|renewed| over(renewed.at)) && ledger.member_at.is_none_or(over)
}

/// A replica that divides the parents otherwise and may be writing.
fn other_layout(ledger: &Ledger, now: Instant) -> Option<Waiting> {
    let shards = ledger.leases.values().filter(|seen| seen.role == Role::Shard);
    let mut others = shards.filter(|seen| seen.layout != ledger.names.count);
    others.find_map(|seen| {
        let holder = seen.live_holder(now)?.clone();
        Some(Waiting::Layout { shards: seen.layout, holder })
    })
}

/// Everyone who takes part in sharing, with the number of shards they hold. A replica that stops takes no part, though
/// it may still hold some.
fn held(ledger: &Ledger, now: Instant) -> BTreeMap<Identity, u32> {
    let mut held = BTreeMap::new();
    let same = |layout| layout == ledger.names.count;
    for seen in ledger.leases.values().filter(|seen| same(seen.layout)) {
        let Some(holder) = seen.live_holder(now).filter(|holder| **holder != ledger.me) else { continue };
        if seen.role == Role::Member || !has_members(ledger) {
            held.entry(holder.clone()).or_insert(0);
        }
    }
    if ledger.stopping.is_none() {
        held.insert(ledger.me.clone(), own_count(ledger));
    }
    for shard in ledger.names.shards() {
        let holder =
            ledger.shard(shard).filter(|seen| same(seen.layout)).and_then(|seen| seen.live_holder(now));
        if let Some(count) =
            holder.filter(|holder| **holder != ledger.me).and_then(|holder| held.get_mut(holder))
        {
            *count += 1;
        }
    }
    held
}

/// What becomes of the shards this replica holds, of which it has `surplus` too many.
fn settle(ledger: &Ledger, surplus: u32, other_layout: bool) -> Vec<Step> {
    let mut own: Vec<_> = ledger.own.iter().collect();
    // Those are given up first for which the least would have to stop, and then those that prefer others.
    own.sort_by_key(|(shard, own)| (own.open, own.drain == Drain::No, ledger.me.affinity(**shard)));
    let mut steps = Vec::new();
    for (place, (shard, own)) in own.into_iter().enumerate() {
        let step = if place < surplus as usize || (other_layout && !own.open) {
            give_up(*shard, own)
        } else {
            let closed = !own.open || own.drain != Drain::No;
            (closed && own.renewed.is_some()).then_some(Step::Open(*shard))
        };
        steps.extend(step);
    }
    steps
}

/// Also a shard that is closed is drained first: if only the wall clock closed it, a write may still be under way.
fn give_up(shard: Shard, own: &Own) -> Option<Step> {
    match own.drain {
        Drain::No => Some(Step::Drain(shard)),
        Drain::Running => None,
        Drain::Done => Some(Step::Release(shard)),
    }
}

fn stop(ledger: &Ledger) -> Vec<Step> {
    let member = ledger.member_at.map(|_| Step::RemoveMember);
    let own = ledger.own.iter().filter_map(|(shard, own)| give_up(*shard, own));
    member.into_iter().chain(own).collect()
}

/// The free shards that this replica takes.
fn acquire(
    ledger: &Ledger,
    held: &BTreeMap<Identity, u32>,
    quotas: &BTreeMap<Identity, u32>,
    now: Instant,
) -> Vec<Step> {
    let lacking = quotas.iter().map(|(identity, quota)| {
        (identity.clone(), quota.saturating_sub(held.get(identity).copied().unwrap_or(0)))
    });
    let free = ledger.names.shards().filter(|shard| {
        // If it was deleted under its holder, the holder itself needn't wait.
        let holder = ledger.shard(*shard).and_then(|seen| seen.live_holder(now));
        !ledger.own.contains_key(shard) && holder.is_none_or(|holder| *holder == ledger.me)
    });
    let assigned = balance::assign(free, lacking.collect());
    let mine = assigned.into_iter().filter(|(_, to)| *to == ledger.me);
    mine.map(|(shard, _)| Step::Acquire(shard)).collect()
}

fn why_less(ledger: &Ledger, mine: u32, quota: u32, now: Instant) -> Option<Waiting> {
    if mine == 0 && quota == 0 {
        let first = ledger.names.shards().next().filter(|_| !has_members(ledger));
        let holder = first.and_then(|shard| ledger.shard(shard)?.live_holder(now));
        return Some(holder.map_or(Waiting::Spare, |holder| Waiting::Holder(holder.clone())));
    }
    (mine < quota).then_some(Waiting::Share)
}

/// The holder of the first shard deletes what dead replicas have left.
fn sweep(ledger: &Ledger, now: Instant) -> Vec<Step> {
    if ledger.stopping.is_some() || !ledger.own.get(&Shard::new(0)).is_some_and(|own| own.open) {
        return Vec::new();
    }
    let used: Vec<String> = ledger.names.shards().map(|shard| ledger.names.shard(shard)).collect();
    let dead = ledger.leases.iter().filter(|(name, seen)| {
        !seen.is_live(now)
            && now >= later(seen.changed_at, ledger.terms.duration.saturating_mul(SWEPT_AFTER))
            && !used.contains(name)
    });
    dead.map(|(name, _)| Step::Sweep(name.clone())).collect()
}

fn pause(ledger: &Ledger, waiting: bool, now: Instant) -> Duration {
    let unsettled = ledger.own.values().any(|own| !own.open || own.drain != Drain::No);
    let quick = waiting || unsettled || ledger.stopping.is_some();
    let usual = if quick { ledger.terms.retry } else { ledger.terms.renew };
    let renewals =
        ledger.own.values().filter_map(|own| own.renewed).map(|renewed| renewed.at).chain(ledger.member_at);
    // What is overdue has just failed and is tried again like everything that failed.
    let next =
        renewals.map(|renewed| later(renewed, ledger.terms.renew).saturating_duration_since(now)).min();
    match next {
        Some(next) if next.is_zero() => usual.min(ledger.terms.retry),
        Some(next) => usual.min(next),
        None => usual,
    }
}

/// When the next lease of another replica runs out, if it isn't renewed.
fn next_expiry(ledger: &Ledger, now: Instant) -> Option<Instant> {
    let others =
        ledger.leases.values().filter(|seen| seen.live_holder(now).is_some_and(|it| *it != ledger.me));
    others.map(super::ledger::Seen::expires_at).min()
}
