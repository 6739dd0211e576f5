//! Pictures of a network: who is connected, who should be, and who is not there. Pure.

mod dot;
mod layout;
mod svg;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::graph::{Dial, Edges, compare, components};
use crate::kinds::UnreadyPeer;

/// A network, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawing {
    network: String,
    counts: Counts,
    peers: Vec<DrawnPeer>,
    edges: Vec<DrawnEdge>,
}

/// How much there is of everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Counts {
    peers: usize,
    ready: usize,
    present: usize,
    missing: usize,
    surplus: usize,
    /// Islands of peers that answer.
    components: usize,
}

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct DrawnPeer {
    name: String,
    group: String,
    ready: bool,
    /// Why it does not answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct DrawnEdge {
    from: String,
    to: String,
    state: EdgeState,
}

/// Whether a connection is declared, and whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum EdgeState {
    /// There, and not declared.
    Surplus,
    /// Declared, and there.
    Present,
    /// Declared, and not there.
    Missing,
}

impl Drawing {
    /// A drawing of the network. `peers` are those that answer, in the order of `peers.json`. Connections with others than those that are named here are
    /// left out.
    pub fn new(
        network: &str,
        peers: &[String],
        unready: &[UnreadyPeer],
        declared: &[Dial],
        observed: &Edges,
    ) -> Self {
        let drawn = in_order(peers, unready);
        let known: BTreeMap<&str, usize> =
            drawn.iter().enumerate().map(|(place, peer)| (peer.name.as_str(), place)).collect();
        let compared = compare(declared, observed);
        let edge = |from: &str, to: &str, state| {
            let both = known.contains_key(from) && known.contains_key(to);
            both.then(|| DrawnEdge { from: from.into(), to: to.into(), state })
        };
        let surplus = compared.surplus.iter().filter_map(|surplus| {
            let (from, to) = surplus.ends();
            edge(from, to, EdgeState::Surplus)
        });
        let is_there = |dial: &&Dial| dial.edge().is_some_and(|edge| observed.contains(&edge));
        let mut present: Vec<&Dial> = declared.iter().filter(is_there).collect();
        let mut seen = Edges::new();
        present.retain(|dial| dial.edge().is_some_and(|edge| seen.insert(edge)));
        let present = present.into_iter().filter_map(|dial| edge(&dial.from, &dial.to, EdgeState::Present));
        let missing =
            compared.missing.iter().filter_map(|dial| edge(&dial.from, &dial.to, EdgeState::Missing));
        // What is drawn last is on top.
        let edges: Vec<DrawnEdge> = surplus.chain(present).chain(missing).collect();
        let count = |state| edges.iter().filter(|edge| edge.state == state).count();
        let counts = Counts {
            peers: drawn.len(),
            ready: drawn.iter().filter(|peer| peer.ready).count(),
            present: count(EdgeState::Present),
            missing: count(EdgeState::Missing),
            surplus: count(EdgeState::Surplus),
            components: components(peers, observed),
        };
        Self { network: network.into(), counts, peers: drawn, edges }
    }

    /// As JSON: `{network, counts, peers: [{name, group, ready, reason}], edges: [{from, to, state}]}`.
    pub fn json(&self) -> String {
        // Strings, numbers and lists of them always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// As an image in SVG.
    pub fn svg(&self) -> String {
        svg::render(self)
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        dot::render(self)
    }

    /// All in a sentence.
    fn summary(&self) -> String {
        let Counts { peers, ready, present, missing, surplus, components } = self.counts;
        let islands = if components == 1 { "1 island".into() } else { format!("{components} islands") };
        format!(
            "{ready} of {peers} peers answer; of the declared connections {present} are there and {missing} are missing; \
             {surplus} are not declared; {islands}"
        )
    }

    /// The names of groups with their first peer's place and how many they are.
    fn groups(&self) -> Vec<(&str, usize, usize)> {
        let mut groups: Vec<(&str, usize, usize)> = Vec::new();
        for (place, peer) in self.peers.iter().enumerate() {
            match groups.last_mut() {
                Some((group, _, count)) if *group == peer.group => *count += 1,
                _ => groups.push((&peer.group, place, 1)),
            }
        }
        groups
    }
}

/// All peers: groups in the order in which they are first named, and peers by their ordinals.
fn in_order(peers: &[String], unready: &[UnreadyPeer]) -> Vec<DrawnPeer> {
    let ready = peers.iter().map(|name| (name, true, ""));
    let unready = unready.iter().map(|peer| (&peer.name, false, peer.reason.as_str()));
    let mut groups = BTreeMap::new();
    let mut all = BTreeMap::new();
    for (name, ready, reason) in ready.chain(unready) {
        let (group, ordinal) = parted(name);
        let next = groups.len();
        let place = *groups.entry(group).or_insert(next);
        let peer = DrawnPeer { name: name.clone(), group: group.into(), ready, reason: reason.into() };
        all.entry((place, ordinal, name)).or_insert(peer);
    }
    all.into_values().collect()
}

/// The group and the ordinal that a pod's name consists of.
fn parted(name: &str) -> (&str, u64) {
    let parts = name.rsplit_once('-').and_then(|(group, ordinal)| Some((group, ordinal.parse().ok()?)));
    parts.unwrap_or((name, 0))
}
