//! `peers.json`: the peers that answer, for whoever wants to use the network.
//!
//! An array with one object for each peer. It has one key, the peer's tag, and under it what is known of the peer:
//!
//! ```json
//! [{"ipfs": {"name": "peers-0-0", "peerId": "12D3…", "ipfsRpcAddr": "http://10.0.0.1:5001", "p2pAddrs": ["/ip4/10.0.0.1/tcp/4001/p2p/12D3…"]}}]
//! ```
//!
//! The address of an RPC is under `ipfsRpcAddr` if it is Kubo's, and under `rpcAddr` if it is plain JSON. Further ports are under their names:
//! `ceramicAddr`, `flightAddr`. A file without names, as others make it, is read too; peers are then called by their ids.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::kinds::Adapter;
use crate::rpc::multiaddr::preferred;
use crate::sizes::in_json;

/// The key of the ConfigMap that the array is under.
pub const PEERS_KEY: &str = "peers.json";

/// A peer that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// What it is to those who use it.
    pub tag: String,
    /// What it is called: the name of its pod.
    pub name: String,
    /// Who it is to other peers.
    pub peer_id: String,
    /// What its RPC speaks.
    pub adapter: Adapter,
    /// Where that is: `http://10.0.0.1:5001`.
    pub rpc_addr: String,
    /// Where other peers reach it, as multiaddresses.
    pub p2p_addrs: Vec<String>,
    /// Its further ports, by field: `flightAddr`.
    pub others: BTreeMap<String, String>,
}

/// What is under the tag.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    peer_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ipfs_rpc_addr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rpc_addr: Option<String>,
    #[serde(default)]
    p2p_addrs: Vec<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let address = Some(self.rpc_addr.clone());
        let (ipfs_rpc_addr, rpc_addr) = match self.adapter {
            Adapter::Kubo => (address, None),
            Adapter::Json => (None, address),
        };
        let others = self.others.iter().map(|(field, address)| (field.clone(), address.clone().into()));
        let told = Told {
            name: self.name.clone(),
            peer_id: self.peer_id.clone(),
            ipfs_rpc_addr,
            rpc_addr,
            p2p_addrs: self.p2p_addrs.clone(),
            others: others.collect(),
        };
        serializer.collect_map([(&self.tag, told)])
    }
}

impl<'de> Deserialize<'de> for Peer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tagged = BTreeMap::<String, Told>::deserialize(deserializer)?;
        let (Some((tag, told)), true) = (tagged.pop_first(), tagged.is_empty()) else {
            return Err(D::Error::custom("a peer is an object with one key, its tag"));
        };
        let (adapter, rpc_addr) = match (told.ipfs_rpc_addr, told.rpc_addr) {
            (Some(address), _) => (Adapter::Kubo, address),
            (None, Some(address)) => (Adapter::Json, address),
            (None, None) => return Err(D::Error::missing_field("ipfsRpcAddr")),
        };
        let text = |(field, value): (String, Value)| Some((field, value.as_str()?.to_owned()));
        Ok(Self {
            tag,
            name: if told.name.is_empty() { told.peer_id.clone() } else { told.name },
            peer_id: told.peer_id,
            adapter,
            rpc_addr,
            p2p_addrs: told.p2p_addrs,
            others: told.others.into_iter().filter_map(text).collect(),
        })
    }
}

impl JsonSchema for Peer {
    fn schema_name() -> Cow<'static, str> {
        "Peer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A peer that answers: one key, its tag, and under it what is known of it.",
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}

/// Why `peers.json` cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {PEERS_KEY} at {path}")]
pub struct CannotRead {
    /// Where: `[2].ipfs.peerId`.
    pub path: String,
    source: serde_json::Error,
}

/// Reads the array.
///
/// # Errors
/// If it is not one, or a peer in it cannot be read: with its place.
pub fn read(text: &str) -> Result<Vec<Peer>, CannotRead> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| CannotRead { path: error.path().to_string(), source: error.into_inner() })?;
    json.end().map_err(|source| CannotRead { path: ".".into(), source })?;
    Ok(read)
}

/// Peers as far as there is room for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Those that fit, in their order.
    pub peers: Vec<Peer>,
    /// Number of those that do not.
    pub omitted: usize,
}

/// Fits peers into so many bytes of a ConfigMap. If there is no room for all addresses, each peer keeps one; if there is no room even then, the last
/// peers are left out.
pub fn fit(peers: &[Peer], bytes_max: usize) -> Listed {
    if peers.iter().map(bytes).sum::<usize>() <= bytes_max {
        return Listed { peers: peers.to_vec(), omitted: 0 };
    }
    let mut room = bytes_max;
    let mut listed = Vec::new();
    for peer in peers {
        let p2p_addrs = preferred(&peer.p2p_addrs).cloned().into_iter().collect();
        let short = Peer { p2p_addrs, ..peer.clone() };
        let Some(left) = room.checked_sub(bytes(&short)) else { break };
        room = left;
        listed.push(short);
    }
    Listed { omitted: peers.len() - listed.len(), peers: listed }
}

/// Bytes of a peer's line in a ConfigMap, with what is between lines.
fn bytes(peer: &Peer) -> usize {
    serde_json::to_string(peer).map_or(0, |line| in_json(&line) + in_json(BETWEEN))
}

/// What is between two lines of the array.
const BETWEEN: &str = ",\n ";

/// Writes the array, one line for each peer, so that differences can be read.
pub fn write(peers: &[Peer]) -> String {
    // Strings and lists of strings always serialise.
    let lines: Vec<String> = peers.iter().filter_map(|peer| serde_json::to_string(peer).ok()).collect();
    if lines.is_empty() { "[]".into() } else { format!("[{}]", lines.join(BETWEEN)) }
}
