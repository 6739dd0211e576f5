//! Connections that follow from a seed.
//!
//! Whom a peer dials is decided by a number for each pair of names (rendezvous hashing), and not by places or by drawing one after the other. So when
//! a peer comes or goes, all choices among the others stay.

use std::collections::BTreeSet;

use super::{Pair, chance};

/// What numbers are for, so that no two choices depend on each other.
const RANK: u64 = 1;
const CHOICE: u64 = 2;
const REWIRED: u64 = 3;
const TARGET: u64 = 4;

/// Each dials `n` others. One of them has a lower rank than itself, except for the peer of the lowest rank: on this way everyone reaches that one, and
/// so everyone else.
pub(super) fn random(seed: i64, peers: &[&str], n: usize) -> Vec<Pair> {
    if n == 0 {
        return Vec::new();
    }
    let seed = chance::of_seed(seed);
    let names: Vec<u64> = peers.iter().map(|peer| chance::of_name(peer)).collect();
    let ranks: Vec<_> =
        names.iter().zip(peers).map(|(name, peer)| (chance::of([seed, RANK, *name]), *peer)).collect();
    let mut pairs = Vec::with_capacity(peers.len() * n);
    for from in 0..peers.len() {
        let liking = |to: usize| (chance::of([seed, CHOICE, names[from], names[to]]), peers[to]);
        let mut others: Vec<_> =
            (0..peers.len()).filter(|to| *to != from).map(|to| (liking(to), to)).collect();
        let lower = others.iter().filter(|(_, to)| ranks[*to] < ranks[from]).max().map(|(_, to)| *to);
        pairs.extend(lower.map(|to| (from, to)));
        let rest = n - usize::from(lower.is_some());
        others.retain(|(_, to)| Some(*to) != lower);
        if rest < others.len() {
            // Only the best are to be sorted.
            others.select_nth_unstable_by(rest, |one, other| other.cmp(one));
            others.truncate(rest);
        }
        others.sort_unstable_by(|one, other| other.cmp(one));
        pairs.extend(others.into_iter().map(|(_, to)| (from, to)));
    }
    pairs
}

/// Each dials the next `n`, but `percent` times in a hundred somebody who is further away than `n` on either side. The very next one is always dialled,
/// so that everyone can reach everyone. Where nobody is further away, the next ones are dialled.
pub(super) fn small_world(seed: i64, percent: i32, peers: &[&str], n: usize) -> Vec<Pair> {
    let seed = chance::of_seed(seed);
    let names: Vec<u64> = peers.iter().map(|peer| chance::of_name(peer)).collect();
    let percent = u64::try_from(percent).unwrap_or_default();
    let count = peers.len();
    let mut pairs = Vec::with_capacity(count * n);
    for from in 0..count {
        let mut chosen = BTreeSet::new();
        for further in 1..=n {
            let next = (from + further) % count;
            let rewired =
                further > 1 && chance::of([seed, REWIRED, names[from], names[next]]) % 100 < percent;
            let liking =
                |to: &usize| (chance::of([seed, TARGET, names[from], names[next], names[*to]]), peers[*to]);
            // Those between the next `n` and the last `n`.
            let far = (n + 1..count.saturating_sub(n)).map(|further| (from + further) % count);
            let target = rewired.then(|| far.filter(|to| !chosen.contains(to)).max_by_key(liking)).flatten();
            chosen.extend(target);
            pairs.push((from, target.unwrap_or(next)));
        }
    }
    pairs
}
