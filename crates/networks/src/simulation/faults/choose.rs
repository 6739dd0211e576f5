//! Whom a fault happens to.

use std::collections::BTreeSet;

use crate::kinds::{FaultAction, FaultSpec};

/// The peers that a fault happens to in a round, in the order of `names`: those that it names, or as many as it says, by the seed. The same
/// arguments choose the same peers, everywhere and always.
pub(super) fn choose(spec: &FaultSpec, fault: usize, round: i32, seed: i64, names: &[String]) -> Vec<String> {
    if let Some(named) = &spec.peers {
        let named: BTreeSet<&String> = named.iter().collect();
        return names.iter().filter(|name| named.contains(name)).cloned().collect();
    }
    let wanted = usize::try_from(spec.count.unwrap_or(1)).unwrap_or(1);
    // A side with everyone on it parts nobody.
    let most =
        if spec.action == FaultAction::Partition { names.len().saturating_sub(1) } else { names.len() };
    let mut ranked: Vec<(u64, usize)> =
        names.iter().enumerate().map(|(place, name)| (rank(seed, fault, round, name), place)).collect();
    ranked.sort_unstable();
    let mut chosen: Vec<usize> = ranked.into_iter().take(wanted.min(most)).map(|(_, place)| place).collect();
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|place| names.get(place).cloned()).collect()
}

fn rank(seed: i64, fault: usize, round: i32, name: &str) -> u64 {
    let start = mix(seed.cast_unsigned() ^ mix(fault as u64) ^ mix(u64::from(round.cast_unsigned()) << 32));
    name.bytes().fold(start, |state, byte| mix(state ^ u64::from(byte)))
}

/// The finaliser of `SplitMix64`: every bit of the result depends on every bit given.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}
