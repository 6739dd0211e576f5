mod api;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use expect_test::{Expect, expect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::kinds::Adapter;
use crate::rpc::{Disturbance, Ending, Endpoint, HttpRpc, Rpc as _, RpcError};

/// A peer of the network of these tests, at this address of this machine.
async fn peer(name: &str, ip: &str) -> Running {
    let origin = Origin::Named(NetworkSecret("secret".into()), name.into());
    let settings = Settings { origin, ip: Some(ip.parse().unwrap()), rpc_port: 0, p2p_port: 0 };
    Running::start(&settings).await.unwrap()
}

fn endpoint(peer: &Running) -> Endpoint {
    Endpoint { adapter: Adapter::Kubo, url: peer.url(), timeout: Duration::from_secs(10) }
}

fn addresses(peer: &Running) -> Vec<String> {
    swarm::listening(peer.p2p, &peer.peer_id)
}

async fn connect(from: &Running, to: &Running) -> Result<(), RpcError> {
    HttpRpc::new().connect(&endpoint(from), &addresses(to)).await
}

async fn connections(peer: &Running) -> Vec<String> {
    HttpRpc::new().connections(&endpoint(peer)).await.unwrap()
}

async fn disturb(peer: &Running, disturbance: Disturbance) -> Ending {
    HttpRpc::new().disturb(&endpoint(peer), &disturbance).await.unwrap()
}

/// Waits until a peer has these connections.
async fn await_connections(peer: &Running, expected: &[&Running]) {
    let mut expected: Vec<&str> = expected.iter().map(|peer| peer.peer_id.as_str()).collect();
    expected.sort_unstable();
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        let found = connections(peer).await;
        if found == expected {
            return;
        }
        assert!(Instant::now() < patience, "{} has {found:?} instead of {expected:?}", peer.peer_id);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn both_ends_see_a_connection_as_soon_as_it_is_made_and_when_it_ends() {
    for (one, other) in [("127.0.1.1", "127.0.1.2"), ("::1", "::1")] {
        let (a, b) = (peer("a", one).await, peer("b", other).await);
        assert_eq!(connections(&a).await, [""; 0]);
        for _ in 0..2 {
            connect(&a, &b).await.unwrap();
            connect(&b, &a).await.unwrap();
        }
        assert_eq!(
            (connections(&a).await, connections(&b).await),
            (vec![b.peer_id.clone()], vec![a.peer_id.clone()])
        );
        b.stop().await;
        await_connections(&a, &[]).await;
    }
}

#[tokio::test]
async fn a_peer_is_the_same_after_a_restart_and_is_let_in_again() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    connect(&a, &b).await.unwrap();
    let id = b.peer_id.clone();
    drop(b);
    let b = peer("b", "127.0.1.2").await;
    assert_eq!(b.peer_id, id);
    connect(&b, &a).await.unwrap();
    await_connections(&a, &[&b]).await;
    await_connections(&b, &[&a]).await;
}

#[tokio::test]
async fn dials_of_both_at_once_end_in_one_connection() {
    for _ in 0..30 {
        let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
        let (one, other, third) = tokio::join!(connect(&a, &b), connect(&b, &a), connect(&a, &b));
        assert_eq!((one, other, third), (Ok(()), Ok(()), Ok(())));
        // Whichever was given up is gone, and the one that is kept stays.
        for _ in 0..3 {
            await_connections(&a, &[&b]).await;
            await_connections(&b, &[&a]).await;
        }
    }
}

#[tokio::test]
async fn what_cannot_be_dialled_is_told_as_kubo_words_it() {
    async fn check(from: &Running, address: &str, expected: Expect) {
        let told = HttpRpc::new().connect(&endpoint(from), &[address.to_owned()]).await.unwrap_err();
        expected.assert_eq(&told.to_string());
    }
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    let port = b.p2p.port();
    let wrong = format!("/ip4/127.0.1.2/tcp/{port}/p2p/QmOther");
    let told = HttpRpc::new().connect(&endpoint(&a), &[wrong]).await.unwrap_err().to_string();
    expect!["answered 500: connect QmOther failure: failed to dial: failed to dial QmOther: all dials failed * [/ip4/127.0.1.2/tcp/PORT] failed to negotiate security protocol: peer id mismatch: expected QmOther, but"]
        .assert_eq(told.replace(&port.to_string(), "PORT").split(" remote").next().unwrap());
    assert_eq!(connections(&b).await, [""; 0]);
    let own = format!("/ip4/127.0.1.1/tcp/1/p2p/{}", a.peer_id);
    check(&a, &own, expect!["answered 500: connect QmQfJ9LWWZPbuyQLpkYUTnkdUrN7jqvYaxsikqadGwpMzz failure: dial to self attempted"]).await;
    check(
        &a,
        "/ip4/127.0.1.2/tcp/4001",
        expect!["answered 500: found no ipfs peers at /ip4/127.0.1.2/tcp/4001"],
    )
    .await;
    check(&a, "/ip4/127.0.1.2/udp/4001/quic-v1/p2p/Qm1", expect!["answered 500: connect Qm1 failure: failed to dial: failed to dial Qm1: all dials failed * [/ip4/127.0.1.2/udp/4001/quic-v1] no transport for protocol"]).await;
}

#[tokio::test]
async fn a_peer_that_is_kept_apart_has_no_connections_until_it_is_not() {
    let (a, b, c) =
        (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await, peer("c", "127.0.1.3").await);
    connect(&a, &b).await.unwrap();
    connect(&c, &a).await.unwrap();
    let others: Arc<[IpAddr]> = [b.p2p.ip()].into();
    let lasts = Duration::from_mins(1);
    let ending = disturb(&a, Disturbance::Block { addresses: Arc::clone(&others), lasts }).await;
    assert_eq!(ending, Ending::ByItself);
    await_connections(&a, &[&c]).await;
    await_connections(&b, &[]).await;
    // Neither way.
    for (from, to) in [(&a, &b), (&b, &a)] {
        assert!(matches!(connect(from, to).await, Err(RpcError::Refused { status: 500, .. })));
    }
    disturb(&a, Disturbance::Unblock(others)).await;
    connect(&b, &a).await.unwrap();
    await_connections(&a, &[&b, &c]).await;
}

#[tokio::test]
async fn a_peer_ends_a_partition_by_itself() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    let (addresses, lasts) = ([b.p2p.ip()].into(), Duration::from_millis(1));
    disturb(&a, Disturbance::Block { addresses, lasts }).await;
    let mut connected = connect(&b, &a).await;
    while connected.is_err() {
        connected = connect(&b, &a).await;
    }
    await_connections(&a, &[&b]).await;
}

#[tokio::test]
async fn thousands_can_be_kept_out_at_once() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    let many = (0..4000_u16).map(|number| {
        let [high, low] = number.to_be_bytes();
        IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low])
    });
    let addresses: Arc<[IpAddr]> = many.chain([b.p2p.ip()]).collect();
    let lasts = Duration::from_mins(1);
    disturb(&a, Disturbance::Block { addresses: Arc::clone(&addresses), lasts }).await;
    assert!(connect(&b, &a).await.is_err());
    disturb(&a, Disturbance::Unblock(addresses)).await;
    connect(&b, &a).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_pauses_answers_nothing_until_it_goes_on() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    connect(&a, &b).await.unwrap();
    disturb(&a, Disturbance::Pause(Duration::from_mins(1))).await;
    let short = Endpoint { timeout: Duration::from_millis(300), ..endpoint(&a) };
    assert!(matches!(HttpRpc::new().identity(&short).await, Err(RpcError::Timeout(_))));
    assert_eq!(connections(&b).await, [a.peer_id.as_str()]);
    disturb(&a, Disturbance::Pause(Duration::ZERO)).await;
    await_connections(&a, &[&b]).await;
}

#[tokio::test]
async fn a_peer_that_pauses_for_long_is_given_up_by_others() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    connect(&a, &b).await.unwrap();
    disturb(&a, Disturbance::Pause(Duration::from_mins(1))).await;
    await_connections(&b, &[]).await;
    disturb(&a, Disturbance::Pause(Duration::ZERO)).await;
    await_connections(&a, &[]).await;
    connect(&b, &a).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_is_late_is_late_with_everything() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    connect(&a, &b).await.unwrap();
    let (late, lasts) = (Duration::from_millis(200), Duration::from_mins(1));
    disturb(&a, Disturbance::Latency { late, lasts }).await;
    let started = Instant::now();
    assert_eq!(connections(&a).await, [b.peer_id.as_str()]);
    assert!(started.elapsed() >= late);
    // And it stays connected.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(connections(&b).await, [a.peer_id.as_str()]);
}

#[tokio::test]
async fn what_is_no_peer_is_sent_away() {
    let a = peer("a", "127.0.1.1").await;
    for said in ["GET / HTTP/1.1\r\n\r\n", "{\"say\": \"ping\"}\n", "\n", "{\"say\": \"hello\"}\n"] {
        let mut stream = TcpStream::connect(a.p2p).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert_eq!(answer, "", "to {said}");
    }
    assert_eq!(connections(&a).await, [""; 0]);
}

#[tokio::test]
async fn the_environment_is_read_or_refused() {
    async fn check(variables: &[(&str, &str)], code: u8, expected: Expect) {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let said = std::sync::Mutex::new(String::new());
        let ended = run(get, |text| said.lock().unwrap().push_str(text), std::future::ready(())).await;
        let said = said.into_inner().unwrap();
        expected.assert_eq(&without_ports(&said));
        assert_eq!(ended, code);
    }
    /// Without the ports, which are any.
    fn without_ports(said: &str) -> String {
        let after_colon = |part: &str| {
            let rest = part.trim_start_matches(|character: char| character.is_ascii_digit());
            if rest.len() < part.len() { format!("PORT{rest}") } else { part.to_owned() }
        };
        said.split(':').map(after_colon).collect::<Vec<_>>().join(":")
    }
    let ports = [("RPC_PORT", "0"), ("P2P_PORT", "0")];
    let named = [("NETWORK_SECRET", "s"), ("POD_NAME", "peers-0-0"), ("POD_IP", "127.0.1.9")];
    check(&[named.as_slice(), &ports].concat(), 0, expect!["peer Qma3U1a8sKYR8WwVgbVCYypahaWtD7HtxZ7ermNHuFnWN2 is at 127.0.1.9:PORT, its RPC at http://127.0.1.9:PORT"]).await;
    check(&[("RPC_PORT", "high")], 2, expect!["error: cannot run a peer: RPC_PORT: `high` is not a port"])
        .await;
    check(&[("P2P_PORT", "70000")], 2, expect!["error: cannot run a peer: P2P_PORT: `70000` is not a port"])
        .await;
    check(
        &[("POD_IP", "localhost")],
        2,
        expect!["error: cannot run a peer: POD_IP: `localhost` is not an IP address"],
    )
    .await;
    check(
        &[("NETWORK_SECRET", "s")],
        2,
        expect![
            "error: cannot run a peer: POD_NAME is not set: who a peer is follows from it and NETWORK_SECRET"
        ],
    )
    .await;
    let taken = tokio::net::TcpListener::bind("127.0.1.9:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    check(
        &[("POD_IP", "127.0.1.9"), ("P2P_PORT", &port)],
        1,
        expect![
            "error: cannot run a peer: cannot listen on 127.0.1.9:PORT: Address already in use (os error 98)"
        ],
    )
    .await;
    let settings =
        Settings::read(|name| (name == "NETWORK_SECRET" || name == "POD_NAME").then(|| name.to_lowercase()));
    let printed = format!("{:?}", settings.unwrap());
    assert!(printed.contains("pod_name") && !printed.contains("network_secret"), "{printed}");
}
