//! The largest network, with peers of Kubo's size: all that is written of it has to be taken by the server.

use std::collections::BTreeSet;

use mainstay::conditions::Conditions;
use serde_json::{Value, json};

use super::super::decide::{Decision, JobState, Situation, decide};
use super::super::observe::{Answer, Seen};
use super::super::reason::Unready;
use super::{asked, at, silent};
use crate::config::NetworkConfig;
use crate::graph;
use crate::kinds::{Network, NetworkSpec, NetworkStatus};
use crate::objects::{self, EDGES_CONFIG_MAP, Parts};
use crate::peers;
use crate::rpc::multiaddr::{Announced, PUBLISHED_BYTES_MAX, published};
use crate::rpc::{Identity, RpcError};
use crate::runner::bootstrap::Settings;

const PEERS: usize = 2000;
const EDGES: usize = 20_000;
const MEBIBYTE: usize = 1024 * 1024;
const VARIABLE_BYTES: usize = 128 * 1024;

/// An id as Kubo makes them.
fn id(ordinal: usize) -> String {
    format!("12D3KooW{ordinal:0>44}")
}

/// What Kubo announces: TCP, QUIC, WebTransport with two certificates, and WebRTC.
fn kubo(ordinal: usize) -> Identity {
    let ip = format!("/ip4/10.244.{}.{}", 100 + ordinal / 250, ordinal % 250);
    let hash = "uEiDDq4_xNyDorZBH3TlGazyJdOWSwvo4PUo5YHFMrvDE8g";
    let addresses = vec![
        format!("{ip}/tcp/4001"),
        format!("{ip}/udp/4001/quic-v1"),
        format!("{ip}/udp/4001/quic-v1/webtransport/certhash/{hash}/certhash/{hash}"),
        format!("{ip}/udp/4001/webrtc-direct/certhash/{hash}"),
    ];
    Identity { peer_id: id(ordinal), addresses }
}

fn seen(ordinal: usize, identity: &Identity, connections: Vec<String>) -> Seen {
    let announced = Announced { own: Vec::new(), others: true };
    let answer = Answer {
        asked: asked(ordinal),
        addresses: published(identity, &announced),
        peer_id: identity.peer_id.clone(),
        connections,
    };
    Seen { name: format!("peers-0-{ordinal}"), group: 0, answer: Ok(answer), is_fresh: true }
}

/// Each peer is connected to the ten after it.
fn spec() -> NetworkSpec {
    let edges: Vec<Value> = (0..EDGES)
        .map(|edge| {
            let (from, to) = (edge / 10, (edge / 10 + 1 + edge % 10) % PEERS);
            json!({"from": format!("peers-0-{from}"), "to": format!("peers-0-{to}")})
        })
        .collect();
    let bootstrap = json!({"method": "explicit", "edges": edges});
    serde_json::from_value(json!({"replicas": PEERS, "bootstrap": bootstrap})).unwrap()
}

fn decided(config: &NetworkConfig, seen: &[Seen]) -> Decision {
    decide(&Situation {
        name: "lab",
        config,
        created: at(0),
        now: at(1000),
        seen,
        job: JobState::Succeeded,
        conditions: &Conditions::new(),
        partitions: &[],
        rounds: 0,
    })
}

fn written(config: &NetworkConfig, decision: &Decision) -> Vec<Value> {
    let parts =
        Parts { secret: Some("secret"), peers: Some((&decision.peers, &decision.edges)), bootstrap: true };
    objects::all("lab", config, &parts)
}

fn check_sizes(spec: &NetworkSpec, config: &NetworkConfig, decision: &Decision) {
    for object in written(config, decision) {
        let bytes = object.to_string().len();
        assert!(bytes < MEBIBYTE, "{} has {bytes} bytes", object["metadata"]["name"]);
        let containers = object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
        for variable in containers.flat_map(|container| container["env"].as_array().into_iter().flatten()) {
            let bytes = variable["value"].as_str().unwrap_or_default().len();
            assert!(bytes < VARIABLE_BYTES, "{} has {bytes} bytes", variable["name"]);
        }
    }
    let mut network = Network::new("lab", spec.clone());
    network.status = Some(decision.status.clone());
    let bytes = json!(network).to_string().len();
    assert!(bytes < MEBIBYTE * 3 / 2, "the Network has {bytes} bytes");
}

#[test]
fn two_thousand_peers_of_kubos_size_can_be_written() {
    let spec = spec();
    let config = NetworkConfig::from(&spec);
    let connections = |peer: usize| (1..=10).map(|next| id((peer + next) % PEERS)).collect();
    let seen: Vec<Seen> = (0..PEERS).map(|peer| seen(peer, &kubo(peer), connections(peer))).collect();
    assert_eq!(seen[0].answer.as_ref().unwrap().addresses.len(), 4);
    let decision = decided(&config, &seen);
    check_sizes(&spec, &config, &decision);
    assert_eq!(decision.status.edges.as_ref().unwrap().missing, 0);

    // Everybody is listed, with the address that everybody can dial.
    assert_eq!(decision.peers.len(), PEERS);
    assert!(
        decision
            .peers
            .iter()
            .all(|peer| peer.p2p_addrs.len() == 1 && peer.p2p_addrs[0].contains("/tcp/4001/p2p/"))
    );
    let NetworkStatus { peers, peers_omitted, unready, .. } = &decision.status;
    assert_eq!(peers.len() + usize::try_from(*peers_omitted).unwrap(), PEERS);
    assert!(*peers_omitted > 0 && unready.is_empty());

    // All edges can be read again: those that are there, and those that the Job is to make.
    let objects = written(&config, &decision);
    let named = |name: &str| objects.iter().find(|object| object["metadata"]["name"] == name).unwrap();
    let edges = &named(EDGES_CONFIG_MAP)["data"];
    assert_eq!(
        (graph::read(edges["edges.json"].as_str().unwrap()).len(), &edges["omitted"]),
        (EDGES, &Value::Null)
    );
    let job = objects.last().unwrap();
    let file = job["spec"]["template"]["spec"]["volumes"][1]["configMap"]["name"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bootstrap")).unwrap();
    let text = named(file)["data"]["edges.json"].as_str().unwrap();
    std::fs::write(folder.path().join("bootstrap/edges.json"), text).unwrap();
    let environment = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
    let settings = Settings::read(|name| {
        let given = environment.iter().find(|variable| variable["name"] == name);
        let root = (name == "MAINSTAY_ROOT").then(|| folder.path().display().to_string());
        given.map(|variable| variable["value"].as_str().unwrap().to_owned()).or(root)
    });
    assert_eq!(settings.unwrap().bootstrap.edges, config.bootstrap.edges);
}

#[test]
fn connections_and_peers_that_have_no_room_are_counted() {
    let spec: NetworkSpec = serde_json::from_value(
        json!({"replicas": PEERS, "bootstrap": {"method": "kRegular", "degree": 100}}),
    )
    .unwrap();
    let config = NetworkConfig::from(&spec);
    let long = |peer: usize| {
        let peer_id = format!("{peer:x>200}");
        let own = format!("/ip4/10.0.0.1/udp/1/http-path/{}", "p".repeat(PUBLISHED_BYTES_MAX - 200 - 35));
        Identity { peer_id, addresses: vec![own] }
    };
    let all: Vec<String> = (0..PEERS).map(|peer| long(peer).peer_id).collect();
    let connections = |peer: usize| (1..=40).map(|next| all[(peer + next) % PEERS].clone()).collect();
    let seen: Vec<Seen> = (0..PEERS).map(|peer| seen(peer, &long(peer), connections(peer))).collect();
    let decision = decided(&config, &seen);
    check_sizes(&spec, &config, &decision);
    let left_out = PEERS - decision.peers.len();
    assert!(left_out > 0);
    let status = &decision.status;
    assert_eq!(usize::try_from(status.ready_replicas).unwrap(), PEERS - left_out);
    assert_eq!(status.unready.len() + usize::try_from(status.unready_omitted).unwrap(), left_out);
    assert_eq!(status.unready[0].reason, "NotListed");
    assert_eq!(decision.reason("Assembled").unwrap().as_str(), "PeersMissing");
    let objects = written(&config, &decision);
    let edges =
        &objects.iter().find(|object| object["metadata"]["name"] == EDGES_CONFIG_MAP).unwrap()["data"];
    let listed = graph::read(edges["edges.json"].as_str().unwrap()).len();
    let omitted: usize = edges["omitted"].as_str().unwrap().parse().unwrap();
    assert_eq!(listed + omitted, decision.edges.len());
}

#[test]
fn few_of_many_silent_peers_are_named() {
    let spec: NetworkSpec = serde_json::from_value(json!({"replicas": PEERS})).unwrap();
    let config = NetworkConfig::from(&spec);
    let why = |peer: usize| Unready::Rpc(RpcError::Garbage(format!("{peer}").repeat(500)));
    let seen: Vec<Seen> = (0..PEERS).map(|peer| silent(peer, why(peer))).collect();
    let decision = decided(&config, &seen);
    check_sizes(&spec, &config, &decision);
    assert_eq!((decision.status.unready.len(), decision.status.unready_omitted), (100, 1900));
    let names: BTreeSet<&str> = decision.status.unready.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names.len(), 100);
    assert_eq!(peers::write(&decision.peers), "[]");
}
