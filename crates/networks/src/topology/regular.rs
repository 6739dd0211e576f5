//! Each peer is connected to exactly `n` others.
//!
//! That can be if `n` is less than the number of peers and one of the two is even. Otherwise one peer has one connection more. Everyone is connected to the
//! next `n / 2` and the last `n / 2` in order, and with an odd `n` also to a partner who is further away. With `n` of 2 or more, everyone can reach everyone.
//!
//! When a peer leaves, others keep their neighbours in order and get at most `n / 2` more. Partners are found by names and not by places, so that few of
//! them change: about as many as the number of peers has binary digits. Only in a network with less than ten times as many peers as a peer has
//! neighbours on one side, each has the one opposite to it, and all of these may change.

use std::cmp::Reverse;

use super::{Pair, chance};

/// See the module.
pub(super) fn regular(peers: &[&str], n: usize) -> Vec<Pair> {
    let (count, side) = (peers.len(), n / 2);
    let mut pairs = super::near::ring(count, side);
    if n % 2 == 1 {
        let partners = if count < 10 * (side + 1) { opposite(count) } else { Partners::found(peers, side) };
        pairs.extend(partners);
    }
    pairs
}

/// Everyone and whoever is opposite. With an odd number of peers one of them has two.
fn opposite(count: usize) -> Vec<Pair> {
    let half = count / 2;
    (half..count).map(|from| (from, from - half)).collect()
}

/// Pairs of peers that are further than `side` apart.
struct Partners {
    count: usize,
    side: usize,
    pairs: Vec<Pair>,
}

impl Partners {
    fn found(peers: &[&str], side: usize) -> Vec<Pair> {
        let mut partners = Self { count: peers.len(), side, pairs: Vec::new() };
        let mut ranked: Vec<_> =
            peers.iter().enumerate().map(|(place, peer)| (chance::of_name(peer), *peer, place)).collect();
        ranked.sort_unstable();
        let ranked: Vec<_> = ranked.into_iter().map(|(number, _, place)| (number, place)).collect();
        let mut alone = partners.match_within(&ranked, Some(1 << 63));
        while let [one, other, ..] = alone[..] {
            alone.drain(..2);
            partners.squeeze_in(one, other);
        }
        if let Some(&last) = alone.first() {
            // The number of peers is odd.
            let others = ranked.iter().filter(|(_, place)| !partners.is_near(last, *place));
            let second = others.max_by_key(|(number, place)| (number.rotate_left(32), Reverse(*place)));
            partners.pairs.extend(second.map(|(_, place)| (last, *place)));
        }
        partners.pairs
    }

    fn is_near(&self, one: usize, other: usize) -> bool {
        let apart = one.abs_diff(other);
        apart.min(self.count - apart) <= self.side
    }

    /// Matches peers whose numbers begin alike before others, and gives those who are left. They are in the order of their numbers. A peer that is gone
    /// changes nothing but on the way from its own place in this tree up to the root.
    fn match_within(&mut self, ranked: &[(u64, usize)], bit: Option<u64>) -> Vec<usize> {
        let (Some(bit), true) = (bit, ranked.len() > 1) else {
            return ranked.iter().map(|(_, place)| *place).collect();
        };
        let (zero, one) = ranked.split_at(ranked.partition_point(|(number, _)| number & bit == 0));
        let lower = (bit > 1).then_some(bit >> 1);
        let mut left = self.match_within(zero, lower);
        for place in self.match_within(one, lower) {
            match left.iter().position(|other| !self.is_near(place, *other)) {
                Some(found) => self.pairs.push((place, left.remove(found))),
                None => left.push(place),
            }
        }
        left
    }

    /// Matches two who are near each other, by taking apart a pair who are near to neither. There is one: at most `4 * side` pairs have somebody near, and
    /// there are more than `4 * side` pairs among `10 * (side + 1)` peers of whom at most `side + 1`, all near each other, are left.
    fn squeeze_in(&mut self, one: usize, other: usize) {
        let is_far = |place: usize| !self.is_near(place, one) && !self.is_near(place, other);
        if let Some(pair) = self.pairs.iter().position(|(from, to)| is_far(*from) && is_far(*to)) {
            let (from, to) = self.pairs[pair];
            self.pairs[pair] = (one, from);
            self.pairs.push((other, to));
        }
    }
}
