//! One story for real peers and for the reference peer: connected as declared, killed, mended, kept apart. Where the two differ, the reference peer
//! is wrong.
//!
//! Real ones are those of `make kubo`, or the `ipfs` that `MAINSTAY_KUBO` names. They listen on loopback addresses of their own, and have nothing
//! that would have them talk to anybody else: no bootstrap nodes, no discovery, no routing, no telemetry.

mod node;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use expect_test::{Expect, expect};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mainstay_networks::kinds::Adapter;
use mainstay_networks::peers::{self, Peer};
use mainstay_networks::rpc::{Disturbance, Ending, Endpoint, HttpRpc, Rpc as _, RpcError, multiaddr};
use mainstay_networks::runner::bootstrap;
use mainstay_testkit::cluster::report_missing;

use node::{Make, Node};

/// Three peers, and what was found out about them.
struct Trio {
    nodes: Vec<Node>,
    peers: Vec<Peer>,
    directory: tempfile::TempDir,
    rpc: HttpRpc,
}

impl Trio {
    /// Starts them at addresses that nothing else in this file has, and asks who they are.
    async fn start(make: &Make, third: u8) -> Self {
        let (directory, rpc) = (tempfile::tempdir().unwrap(), HttpRpc::new());
        let (mut nodes, mut peers) = (Vec::new(), Vec::new());
        for place in 0..3_u8 {
            let name = format!("peers-0-{place}");
            let home = directory.path().join(&name);
            let mut node = Node::new(make, &name, [127, 0, third, place + 2].into(), home);
            node.start().await;
            let identity = rpc.identity(&endpoint(&node)).await.unwrap();
            peers.push(Peer {
                tag: "ipfs".into(),
                name,
                p2p_addrs: multiaddr::published(&identity, &multiaddr::Announced::only(node.ip)),
                peer_id: identity.peer_id,
                adapter: Adapter::Kubo,
                rpc_addr: node.url(),
                others: BTreeMap::new(),
            });
            nodes.push(node);
        }
        std::fs::create_dir(directory.path().join("network")).unwrap();
        std::fs::write(directory.path().join("network/peers.json"), peers::write(&peers)).unwrap();
        Self { nodes, peers, directory, rpc }
    }

    /// Runs the program, and compares its code and what it said.
    async fn bootstrap(&self, variables: &[(&str, &str)], code: u8, expected: Expect) {
        let root = self.directory.path().display().to_string();
        let environment = |name: &str| match name {
            "MAINSTAY_ROOT" => Some(root.clone()),
            _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
        };
        let said = Mutex::new(String::new());
        let ended = bootstrap::run(environment, &self.rpc, |text| said.lock().unwrap().push_str(text)).await;
        let said = said.into_inner().unwrap();
        // Reasons are worded by those who have them.
        let line = |line: &str| line.split(": answered").next().unwrap_or_default().to_owned();
        expected.assert_eq(&said.lines().map(line).collect::<Vec<_>>().join("\n"));
        assert_eq!(ended, code, "{said}");
    }

    /// Waits until each has so many connections.
    async fn await_connections(&self, expected: [usize; 3]) {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            let mut found = Vec::new();
            for node in &self.nodes {
                found.push(self.rpc.connections(&endpoint(node)).await.map(|ids| ids.len()));
            }
            if found == expected.map(Ok) {
                return;
            }
            assert!(Instant::now() < patience, "{found:?} instead of {expected:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn disturb(&self, place: usize, disturbance: Disturbance) -> Result<Ending, RpcError> {
        self.rpc.disturb(&endpoint(&self.nodes[place]), &disturbance).await
    }

    async fn refusal(&self, address: &str) -> String {
        let refused = self.rpc.connect(&endpoint(&self.nodes[0]), &[address.to_owned()]).await;
        assert!(matches!(refused, Err(RpcError::Refused { status: 500, .. })), "{refused:?}");
        refused.unwrap_err().to_string()
    }
}

fn endpoint(node: &Node) -> Endpoint {
    Endpoint { adapter: Adapter::Kubo, url: node.url(), timeout: Duration::from_secs(10) }
}

const FULL: [(&str, &str); 2] = [("BOOTSTRAP_METHOD", "full"), ("BOOTSTRAP_DEADLINE_SECONDS", "30")];

async fn peers_are_connected_killed_mended_and_kept_apart(make: &Make, third: u8) {
    let mut trio = Trio::start(make, third).await;
    peers_are_connected_as_declared(&trio).await;
    a_peer_that_was_killed_is_connected_again(&mut trio).await;
    a_peer_is_kept_apart_for_a_time(&trio).await;
    refusals_are_worded_alike(&trio).await;
    requests_are_answered_alike(&trio).await;
    blocks_are_found_at_others(&trio).await;
    let pause = trio.disturb(0, Disturbance::Pause(Duration::from_millis(100))).await;
    let expected = if make.is_real() { Err(RpcError::Unsupported("pause")) } else { Ok(Ending::ByItself) };
    assert_eq!(pause, expected);
}

async fn peers_are_connected_as_declared(trio: &Trio) {
    let edges = r#"[{"from": "peers-0-0", "to": "peers-0-1"}]"#;
    trio.bootstrap(
        &[("BOOTSTRAP_METHOD", "explicit"), ("BOOTSTRAP_EDGES", edges)],
        0,
        expect![[r#"
        3 peers, 1 connections declared (explicit)
          already there: 0
          dialled: 1
          failed: 0"#]],
    )
    .await;
    trio.await_connections([1, 1, 0]).await;
    trio.bootstrap(
        &[("BOOTSTRAP_METHOD", "ring"), ("BOOTSTRAP_N", "1")],
        0,
        expect![[r#"
        3 peers, 3 connections declared (ring)
          already there: 1
          dialled: 2
          failed: 0"#]],
    )
    .await;
    trio.await_connections([2, 2, 2]).await;
    trio.bootstrap(
        &FULL,
        0,
        expect![[r#"
        3 peers, 3 connections declared (full)
          already there: 3
          dialled: 0
          failed: 0"#]],
    )
    .await;
}

async fn a_peer_that_was_killed_is_connected_again(trio: &mut Trio) {
    // It comes back as the same, and without connections.
    trio.nodes[1].kill().await;
    let gone = trio.rpc.identity(&endpoint(&trio.nodes[1])).await;
    assert!(matches!(gone, Err(RpcError::Unreachable(_))), "{gone:?}");
    trio.nodes[1].start().await;
    assert_eq!(trio.rpc.identity(&endpoint(&trio.nodes[1])).await.unwrap().peer_id, trio.peers[1].peer_id);
    trio.await_connections([1, 0, 1]).await;
    trio.bootstrap(
        &FULL,
        0,
        expect![[r#"
        3 peers, 3 connections declared (full)
          already there: 1
          dialled: 2
          failed: 0"#]],
    )
    .await;
    trio.await_connections([2, 2, 2]).await;
}

/// The first, on both sides as the operator does it.
async fn a_peer_is_kept_apart_for_a_time(trio: &Trio) {
    let ips: Vec<_> = trio.nodes.iter().map(|node| node.ip).collect();
    let block = |ips: &[IpAddr]| Disturbance::Block { addresses: ips.into(), lasts: Duration::from_mins(1) };
    // Kubo's own filters know no time.
    let ending = if trio.nodes[0].make.is_real() { Ending::WhenUndone } else { Ending::ByItself };
    assert_eq!(trio.disturb(0, block(&ips[1..])).await, Ok(ending));
    trio.await_connections([0, 1, 1]).await;
    for place in [1, 2] {
        trio.disturb(place, block(&ips[..1])).await.unwrap();
    }
    let brief = [("BOOTSTRAP_METHOD", "full"), ("BOOTSTRAP_DEADLINE_SECONDS", "1")];
    trio.bootstrap(
        &brief,
        1,
        expect![[r#"
        3 peers, 3 connections declared (full)
          already there: 1
          dialled: 0
          failed: 2
            peers-0-1 > peers-0-0
            peers-0-2 > peers-0-0"#]],
    )
    .await;
    trio.disturb(0, Disturbance::Unblock(ips[1..].into())).await.unwrap();
    for place in [1, 2] {
        trio.disturb(place, Disturbance::Unblock(ips[..1].into())).await.unwrap();
    }
    trio.bootstrap(
        &FULL,
        0,
        expect![[r#"
        3 peers, 3 connections declared (full)
          already there: 1
          dialled: 2
          failed: 0"#]],
    )
    .await;
}

async fn refusals_are_worded_alike(trio: &Trio) {
    let [first, second, third] = [0, 1, 2].map(|place| &trio.peers[place]);
    trio.rpc.connect(&endpoint(&trio.nodes[0]), &second.p2p_addrs).await.unwrap();
    // Somebody else's id at the address of the second, for whom no connection is there yet.
    let stranger = "QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ";
    let told = trio.refusal(&second.p2p_addrs[0].replace(&second.peer_id, stranger)).await;
    let mismatch =
        format!("peer id mismatch: expected {stranger}, but remote key matches {}", second.peer_id);
    assert!(told.starts_with(&format!("answered 500: connect {stranger} failure: ")), "{told}");
    assert!(told.contains(&mismatch), "{told}");
    let told = trio.refusal(&first.p2p_addrs[0]).await;
    assert!(told.contains("dial to self attempted"), "{told}");
    assert!(third.p2p_addrs[0].starts_with("/ip4/127.0."), "{:?}", third.p2p_addrs);
}

/// Status and body of what a peer answers to a request without a body, or with this one.
async fn ask(node: &Node, method: &str, path: &str, body: Option<(&str, &str)>) -> String {
    let request = Request::builder().method(method).uri(format!("{}{path}", node.url()));
    let request = match body {
        Some((kind, body)) => request.header("content-type", kind).body(Full::new(body.to_owned().into())),
        None => request.body(Full::<Bytes>::default()),
    };
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    format!("{status} {}", String::from_utf8_lossy(&body)).trim_end().to_owned()
}

/// What programs send that know Kubo. Documents are compared with their fields in order.
async fn requests_are_answered_alike(trio: &Trio) {
    let mut told = Vec::new();
    for (method, path) in [
        ("GET", "id"),
        ("POST", "no/such/command"),
        ("POST", "swarm/connect"),
        ("POST", "swarm/connect?arg=nonsense"),
        ("POST", "swarm/connect?arg=/ip4/127.0.0.9/tcp/1"),
        ("POST", "swarm/disconnect?arg=/p2p/QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ"),
        ("POST", "swarm/filters"),
        ("POST", "swarm/filters/add?arg=/ip4/10.0.0.0/ipcidr/8&arg=/ip6/fd00::/ipcidr/8"),
        ("POST", "swarm/filters"),
        ("POST", "swarm/filters/rm?arg=/ip4/10.0.0.0/ipcidr/8"),
        ("POST", "swarm/filters/rm?arg=all"),
        ("POST", "swarm/filters/add?arg=10.0.0.1"),
        ("POST", "block/get"),
        ("POST", "block/put"),
    ] {
        let answer = ask(&trio.nodes[0], method, &format!("/api/v0/{path}"), None).await;
        let (status, body) = answer.split_once(' ').unwrap_or((&answer, ""));
        let document = serde_json::from_str::<serde_json::Value>(body).ok();
        let body = document.map_or_else(|| body.trim_end().to_owned(), |document| document.to_string());
        told.push(format!("{method} {path}\n  {status} {body}\n"));
    }
    expect![[r#"
        GET id
          405 405 - Method Not Allowed
        POST no/such/command
          404 404 page not found
        POST swarm/connect
          400 argument "address" is required
        POST swarm/connect?arg=nonsense
          500 {"Code":0,"Message":"failed to parse multiaddr \"nonsense\": must begin with /","Type":"error"}
        POST swarm/connect?arg=/ip4/127.0.0.9/tcp/1
          500 {"Code":0,"Message":"found no ipfs peers at /ip4/127.0.0.9/tcp/1","Type":"error"}
        POST swarm/disconnect?arg=/p2p/QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ
          200 {"Strings":["disconnect QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ failure: not connected"]}
        POST swarm/filters
          200 {"Strings":null}
        POST swarm/filters/add?arg=/ip4/10.0.0.0/ipcidr/8&arg=/ip6/fd00::/ipcidr/8
          200 {"Strings":["/ip4/10.0.0.0/ipcidr/8","/ip6/fd00::/ipcidr/8"]}
        POST swarm/filters
          200 {"Strings":["/ip4/10.0.0.0/ipcidr/8","/ip6/fd00::/ipcidr/8"]}
        POST swarm/filters/rm?arg=/ip4/10.0.0.0/ipcidr/8
          200 {"Strings":["/ip4/10.0.0.0/ipcidr/8"]}
        POST swarm/filters/rm?arg=all
          200 {"Strings":["/ip6/fd00::/ipcidr/8"]}
        POST swarm/filters/add?arg=10.0.0.1
          500 {"Code":0,"Message":"invalid multiaddr-filter format","Type":"error"}
        POST block/get
          400 argument "cid" is required
        POST block/put
          400 file argument 'data' is required
    "#]]
    .assert_eq(&told.concat());
}

async fn blocks_are_found_at_others(trio: &Trio) {
    let file = "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhello world\r\n--x--\r\n";
    let form = Some(("multipart/form-data; boundary=x", file));
    expect![[r#"200 {"Key":"bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e","Size":11}"#]]
        .assert_eq(&ask(&trio.nodes[0], "POST", "/api/v0/block/put", form).await);
    let path = "/api/v0/block/get?arg=bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e";
    for node in &trio.nodes {
        assert_eq!(ask(node, "POST", path, None).await, "200 hello world");
    }
    let stat = path.replace("/get", "/stat");
    expect![[r#"200 {"Key":"bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e","Size":11}"#]]
        .assert_eq(&ask(&trio.nodes[2], "POST", &stat, None).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reference_peers_are_connected_killed_mended_and_kept_apart() {
    peers_are_connected_killed_mended_and_kept_apart(&Make::Reference, 71).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_peers_are_connected_killed_mended_and_kept_apart() {
    match node::find_kubo() {
        Ok(program) => peers_are_connected_killed_mended_and_kept_apart(&Make::Kubo(program), 72).await,
        Err(missing) => report_missing("networks of real peers", &missing),
    }
}
