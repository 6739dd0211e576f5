//! Connections between peers: those that are declared beside those that are there. Pure.

use std::collections::BTreeSet;

/// A connection that is declared: who dials, and who is dialled, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dial {
    /// Who dials.
    pub from: String,
    /// Who is dialled.
    pub to: String,
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
