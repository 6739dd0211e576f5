//! Connections between peers: those that are declared beside those that are there. Pure.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::json;

use crate::kinds::EdgesStatus;
use crate::peers::Peer;
use crate::sizes::{CONFIG_MAP_BYTES_MAX, in_json};

/// How many of the missing connections a status names.
const EXAMPLES: usize = 5;

/// A connection that is declared: who dials, and who is dialled, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dial {
    /// Who dials.
    pub from: String,
    /// Who is dialled.
    pub to: String,
}

impl Dial {
    /// The connection that it makes. None with oneself.
    pub fn edge(&self) -> Option<Edge> {
        Edge::new(&self.from, &self.to)
    }
}

impl fmt::Display for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.from, self.to)
    }
}

/// Two peers that are connected; the lesser name comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge(String, String);

impl Edge {
    /// The connection of two peers, in whichever order. None with oneself.
    pub fn new(one: &str, other: &str) -> Option<Self> {
        let (lesser, greater) = if one < other { (one, other) } else { (other, one) };
        (one != other).then(|| Self(lesser.into(), greater.into()))
    }

    /// Both of them.
    pub fn ends(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

/// The edges that there are.
pub type Edges = BTreeSet<Edge>;

/// Peers that are kept apart from all others while a partition lasts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut(BTreeSet<String>);

impl Cut {
    /// The cut around these peers, which are one side of it.
    pub fn around<S: Into<String>>(peers: impl IntoIterator<Item = S>) -> Self {
        Self(peers.into_iter().map(Into::into).collect())
    }

    /// Whether two peers are on different sides.
    pub fn separates(&self, one: &str, other: &str) -> bool {
        self.0.contains(one) != self.0.contains(other)
    }
}

/// What is declared beside what is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// How many connections are declared.
    pub desired: usize,
    /// How many there are, declared or not.
    pub observed: usize,
    /// The declared ones that are not there, and that nothing stands in the way of.
    pub missing: Vec<Dial>,
    /// The declared ones that are not there because a partition keeps their ends apart.
    pub severed: Vec<Dial>,
    /// Those that are there and not declared.
    pub surplus: Vec<Edge>,
}

impl Comparison {
    /// How it is told in a network's status, where what is severed is missing as well.
    pub fn status(&self) -> EdgesStatus {
        let missing = self.missing.len() + self.severed.len();
        let first = self.missing.iter().chain(&self.severed).take(EXAMPLES);
        EdgesStatus {
            desired: counted(self.desired),
            observed: counted(self.observed),
            missing: counted(missing),
            severed: counted(self.severed.len()),
            examples: first.map(ToString::to_string).collect(),
        }
    }

    /// Sets those of the missing connections apart that cross one of these cuts.
    #[must_use]
    pub fn severed(mut self, cuts: &[Cut]) -> Self {
        let crosses = |dial: &Dial| cuts.iter().any(|cut| cut.separates(&dial.from, &dial.to));
        let (severed, missing) = std::mem::take(&mut self.missing).into_iter().partition(crosses);
        self.missing = missing;
        self.severed.extend::<Vec<Dial>>(severed);
        self
    }
}

/// A number for a status, where no count comes near the limit.
fn counted(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Compares what is declared with what is there. Missing connections keep the order in which they are declared.
pub fn compare(declared: &[Dial], observed: &Edges) -> Comparison {
    let mut wanted = Edges::new();
    let mut missing = Vec::new();
    for dial in declared {
        let Some(edge) = dial.edge() else { continue };
        let there = observed.contains(&edge);
        if wanted.insert(edge) && !there {
            missing.push(dial.clone());
        }
    }
    Comparison {
        desired: wanted.len(),
        observed: observed.len(),
        missing,
        severed: Vec::new(),
        surplus: observed.difference(&wanted).cloned().collect(),
    }
}

/// The connections that there are among these peers, of what some of them tell: who it is, by name, and the ids it is connected to. One end is
/// enough; strangers count for nothing.
pub fn observed<'a>(peers: &[Peer], told: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Edges {
    let names: BTreeMap<&str, &str> =
        peers.iter().map(|peer| (peer.peer_id.as_str(), peer.name.as_str())).collect();
    let names = &names;
    let edges = |(name, ids): (&'a str, &'a [String])| {
        let others = ids.iter().filter_map(|id| names.get(id.as_str()));
        others.filter_map(move |other| Edge::new(name, other))
    };
    told.into_iter().flat_map(edges).collect()
}

/// How many islands these peers are: 1 if all can reach each other, 0 if there are none.
pub fn components(peers: &[String], edges: &Edges) -> usize {
    islands(peers, edges).len()
}

/// Peers that can reach each other, together: the largest island first, and of equal ones the one with the first peer. Within an island peers
/// keep their order. Connections with peers that are not among these count for nothing.
pub fn islands(peers: &[String], edges: &Edges) -> Vec<Vec<String>> {
    let mut places = BTreeMap::new();
    for (place, peer) in peers.iter().enumerate() {
        places.entry(peer.as_str()).or_insert(place);
    }
    let mut roots: Vec<usize> = (0..peers.len()).collect();
    for (one, other) in edges.iter().map(Edge::ends) {
        if let (Some(&one), Some(&other)) = (places.get(one), places.get(other)) {
            let (one, other) = (root(&mut roots, one), root(&mut roots, other));
            // The root of an island is its first peer.
            roots[one.max(other)] = one.min(other);
        }
    }
    let mut found = BTreeMap::<usize, Vec<String>>::new();
    for (place, peer) in peers.iter().enumerate().filter(|(place, peer)| places[peer.as_str()] == *place) {
        found.entry(root(&mut roots, place)).or_default().push(peer.clone());
    }
    let mut islands: Vec<Vec<String>> = found.into_values().collect();
    islands.sort_by_key(|island| std::cmp::Reverse(island.len()));
    islands
}

/// The root of a peer's island. Halves the way to it for those who ask later.
fn root(roots: &mut [usize], mut place: usize) -> usize {
    while roots[place] != place {
        roots[place] = roots[roots[place]];
        place = roots[place];
    }
    place
}

/// The key of a ConfigMap that connections are under: an array of pairs of names.
pub const EDGES_KEY: &str = "edges.json";
/// The key beside it with the number of connections that there was no room for. Absent if there was.
pub const OMITTED_KEY: &str = "omitted";
/// What is between two lines of the array.
const BETWEEN: &str = ",\n ";

/// Writes connections for [`EDGES_KEY`], one line each, so that differences can be read: as many as fit into a ConfigMap. Also gives the number of those
/// that do not.
pub fn write(edges: &Edges) -> (String, usize) {
    let mut room = CONFIG_MAP_BYTES_MAX;
    let mut lines = Vec::new();
    for edge in edges {
        let line = json!([edge.0, edge.1]).to_string();
        let Some(left) = room.checked_sub(in_json(&line) + in_json(BETWEEN)) else { break };
        room = left;
        lines.push(line);
    }
    (format!("[{}]", lines.join(BETWEEN)), edges.len() - lines.len())
}

/// Reads what [`write()`] has written. What is no connection is left out.
pub fn read(text: &str) -> Edges {
    let pairs: Vec<(String, String)> = serde_json::from_str(text).unwrap_or_default();
    pairs.iter().filter_map(|(one, other)| Edge::new(one, other)).collect()
}
