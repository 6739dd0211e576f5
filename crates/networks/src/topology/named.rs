//! Edges for a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Pair;
use crate::kinds::EdgeSpec;

/// Edges as a file holds them: each name once, and two places for each edge. Ten times as many fit into a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct NamedEdges {
    peers: Vec<String>,
    edges: Vec<Pair>,
}

impl NamedEdges {
    /// These edges.
    pub fn of(edges: &[EdgeSpec]) -> Self {
        let mut places = BTreeMap::new();
        let mut peers = Vec::new();
        let mut place = |name: &str| {
            *places.entry(name.to_owned()).or_insert_with(|| {
                peers.push(name.to_owned());
                peers.len() - 1
            })
        };
        let edges = edges.iter().map(|edge| (place(&edge.from), place(&edge.to))).collect();
        Self { peers, edges }
    }

    /// The edges by name. None if one has a place that no peer has.
    pub fn named(&self) -> Option<Vec<EdgeSpec>> {
        let name = |place: usize| self.peers.get(place).cloned();
        self.edges.iter().map(|&(from, to)| Some(EdgeSpec { from: name(from)?, to: name(to)? })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_read_as_they_were_written() {
        let edge = |from: &str, to: &str| EdgeSpec { from: from.into(), to: to.into() };
        let edges = [edge("b", "a"), edge("a", "c"), edge("b", "c"), edge("b", "a")];
        let named = NamedEdges::of(&edges);
        assert_eq!(
            serde_json::to_string(&named).unwrap(),
            r#"{"peers":["b","a","c"],"edges":[[0,1],[1,2],[0,2],[0,1]]}"#
        );
        assert_eq!(named.named().unwrap(), edges);
        assert_eq!(NamedEdges { peers: Vec::new(), edges: vec![(0, 1)] }.named(), None);
    }
}
