//! Which peers shall be connected, from nothing but their names and what was declared. Pure.
//!
//! | method | who is connected | if a peer leaves, others |
//! |---|---|---|
//! | `ring` | each dials the next `degree` in order, the last ones the first again | keep all, and get at most `degree` more |
//! | `random` | each dials `degree` others; all can always reach each other | keep all, and those that dialled it dial one more each |
//! | `sentinel` | everyone dials the first `degree` | keep all; only if it was one of the first, everyone dials the next one |
//! | `full` | everyone dials all before it | keep all, and get no more |
//! | `star` | everyone dials the first | keep all; only if it was the first, everyone dials the second |
//! | `kRegular` | each is connected to exactly `degree` others, if that can be | change a few |
//! | `smallWorld` | as `ring`, with some connections going far | dial as before, unless they dialled it or were among its `degree` next on either side |
//! | `explicit` | as the edges say that have both ends here | keep all, and get no more |
//!
//! A peer that joins is one that leaves, seen backwards. Where `degree` is larger than there are others, it is as many as there are others.

mod chance;
mod far;
mod named;
mod near;
mod regular;
#[cfg(test)]
mod tests;

pub use named::NamedEdges;

use std::collections::{BTreeMap, BTreeSet};

use crate::config::BootstrapConfig;
use crate::graph::Dial;
use crate::kinds::{EdgeSpec, Method};

/// Who dials and who is dialled, by their places.
type Pair = (usize, usize);

/// The connections that are declared among these peers, each once, with the one who dials. `peers` are names, in the order of `peers.json`.
///
/// Nobody is connected to itself; no pair is there twice, in whichever direction. The same peers and config give the same connections, in every
/// version of this program. Nothing is declared where bootstrap is not enabled.
pub fn declared(config: &BootstrapConfig, peers: &[String]) -> Vec<Dial> {
    if !config.enabled {
        return Vec::new();
    }
    let mut known = BTreeSet::new();
    let peers: Vec<&str> = peers.iter().map(String::as_str).filter(|peer| known.insert(*peer)).collect();
    let mut seen = BTreeSet::new();
    let once = |&(from, to): &Pair| from != to && seen.insert((from.min(to), from.max(to)));
    let dial = |(from, to): Pair| Dial { from: peers[from].to_owned(), to: peers[to].to_owned() };
    pairs(config, &peers).into_iter().filter(once).map(dial).collect()
}

/// Who dials whom by the method. A pair may be there in both directions.
fn pairs(config: &BootstrapConfig, peers: &[&str]) -> Vec<Pair> {
    let n = usize::try_from(config.degree).unwrap_or_default().min(peers.len().saturating_sub(1));
    match config.method {
        Method::Ring => near::ring(peers.len(), n),
        Method::Random => far::random(config.seed, peers, n),
        Method::Sentinel => near::sentinel(peers.len(), n),
        Method::Full => near::sentinel(peers.len(), peers.len()),
        Method::Star => near::sentinel(peers.len(), 1),
        Method::KRegular => regular::regular(peers, n),
        Method::SmallWorld => far::small_world(config.seed, config.rewire_percent, peers, n),
        Method::Explicit => explicit(&config.edges, peers),
    }
}

/// The edges that have both ends here.
fn explicit(edges: &[EdgeSpec], peers: &[&str]) -> Vec<Pair> {
    let places: BTreeMap<&str, usize> =
        peers.iter().enumerate().map(|(place, peer)| (*peer, place)).collect();
    let find = |edge: &EdgeSpec| Some((*places.get(edge.from.as_str())?, *places.get(edge.to.as_str())?));
    edges.iter().filter_map(find).collect()
}
