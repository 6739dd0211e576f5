//! Connections that follow from the order of peers alone.

use super::Pair;

/// Each dials the next `n`.
pub(super) fn ring(peers: usize, n: usize) -> Vec<Pair> {
    (0..peers).flat_map(|from| (1..=n).map(move |further| (from, (from + further) % peers))).collect()
}

/// Each dials the first `n`, as far as they come before it. The first ones are connected with each other this way, and whoever comes last dials,
/// so that those who have been there before are left alone.
pub(super) fn sentinel(peers: usize, n: usize) -> Vec<Pair> {
    (0..peers).flat_map(|from| (0..from.min(n)).map(move |to| (from, to))).collect()
}
