//! What peers themselves say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Connections as their ends see them: peer, its other end, and that end's address with its port. Another connection of the same two has
/// another port at one of its ends.
pub(crate) type Connections = BTreeSet<(String, String, String)>;

/// All connections of the peers that a network lists.
pub(crate) async fn connections(network: &Value) -> Connections {
    let listed = network["status"]["peers"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named: BTreeMap<String, String> =
        listed.iter().map(|peer| (text(&peer["ipfs"]["peerId"]), text(&peer["ipfs"]["name"]))).collect();
    let mut all = Connections::new();
    for peer in listed {
        let told = ask(&text(&peer["ipfs"]["ipfsRpcAddr"]), "/api/v0/swarm/peers").await;
        for other in told["Peers"].as_array().into_iter().flatten() {
            let name = named.get(&text(&other["Peer"])).cloned().unwrap_or_default();
            all.insert((text(&peer["ipfs"]["name"]), name, text(&other["Addr"])));
        }
    }
    all
}

/// Those that a peer has no part in.
pub(crate) fn without(connections: &Connections, peer: &str) -> Connections {
    connections.iter().filter(|(one, other, _)| one != peer && other != peer).cloned().collect()
}

/// Those that it has a part in.
pub(crate) fn of(connections: &Connections, peer: &str) -> Connections {
    connections.difference(&without(connections, peer)).cloned().collect()
}

/// What a peer answers.
async fn ask(url: &str, path: &str) -> Value {
    let host = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("POST {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{url}{path}: {answer}");
    serde_json::from_str(body).unwrap()
}
