use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Mutex;

use expect_test::{Expect, expect};
use futures::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::config::BootstrapConfig;
use crate::graph::Edge;
use crate::kinds::Adapter;
use crate::rpc::multiaddr::Multiaddr;
use crate::rpc::{Disturbance, Ending, Identity};

/// Peers in memory, called `p0`, `p1`…, with ids `id0`, `id1`… and RPCs `http://0`, `http://1`….
#[derive(Default)]
struct World {
    edges: Mutex<Edges>,
    /// How often each dial was asked for.
    dials: Mutex<BTreeMap<(String, String), u32>>,
    /// Who is dialling.
    dialling: Mutex<BTreeSet<String>>,
    /// Peers whose RPC never answers.
    hung: BTreeSet<String>,
    /// Peers whom a dial never reaches.
    lost: BTreeSet<String>,
    /// Dials fail so often before they succeed.
    failures: u32,
    /// Dials succeed and nothing comes of it.
    liar: bool,
}

impl World {
    fn name(peer: &Endpoint) -> String {
        peer.url.replace("http://", "p")
    }

    async fn answer(&self, peer: &Endpoint) -> Result<String, RpcError> {
        let name = Self::name(peer);
        tokio::time::sleep(Duration::from_millis(1)).await;
        if self.hung.contains(&name) {
            tokio::time::sleep(peer.timeout).await;
            return Err(RpcError::Timeout(peer.timeout));
        }
        Ok(name)
    }
}

impl Rpc for World {
    fn identity<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        unreachable!("who is who is in peers.json")
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        async move {
            let name = self.answer(peer).await?;
            let edges = self.edges.lock().unwrap();
            let ends = edges.iter().map(Edge::ends);
            let others = ends.filter_map(|(one, other)| match name.as_str() {
                it if it == one => Some(other),
                it if it == other => Some(one),
                _ => None,
            });
            Ok(others.map(|other| other.replace('p', "id")).chain(["stranger".to_owned()]).collect())
        }
        .boxed()
    }

    fn connect<'a>(
        &'a self,
        peer: &'a Endpoint,
        addresses: &'a [String],
    ) -> BoxFuture<'a, Result<(), RpcError>> {
        async move {
            let from = Self::name(peer);
            assert!(self.dialling.lock().unwrap().insert(from.clone()), "{from} dials two at once");
            let answer = self.answer(peer).await;
            self.dialling.lock().unwrap().remove(&from);
            answer?;
            let address: Multiaddr = addresses[0].parse().unwrap();
            let to = address.peer_id().unwrap().replace("id", "p");
            if self.lost.contains(&to) {
                tokio::time::sleep(peer.timeout).await;
                return Err(RpcError::Timeout(peer.timeout));
            }
            let dialled = {
                let mut dials = self.dials.lock().unwrap();
                let dialled = dials.entry((from.clone(), to.clone())).or_default();
                *dialled += 1;
                *dialled
            };
            if dialled <= self.failures {
                return Err(RpcError::Refused { status: 500, message: "connection refused".into() });
            }
            if !self.liar {
                self.edges.lock().unwrap().insert(Edge::new(&from, &to).unwrap());
            }
            Ok(())
        }
        .boxed()
    }

    fn disturb<'a>(&'a self, _: &'a Endpoint, _: &'a Disturbance) -> BoxFuture<'a, Result<Ending, RpcError>> {
        unreachable!("nobody is disturbed")
    }
}

fn peers(count: usize) -> Vec<Peer> {
    let peer = |place: usize| Peer {
        tag: "ipfs".into(),
        name: format!("p{place}"),
        peer_id: format!("id{place}"),
        adapter: Adapter::Kubo,
        rpc_addr: format!("http://{place}"),
        p2p_addrs: vec![format!("/ip4/{}/tcp/4001", IpAddr::from([127, 0, 0, 2]))],
        others: BTreeMap::new(),
    };
    (0..count).map(peer).collect()
}

fn dials(pairs: &[(usize, usize)]) -> Vec<Dial> {
    pairs.iter().map(|(from, to)| Dial { from: format!("p{from}"), to: format!("p{to}") }).collect()
}

async fn told(world: &World, count: usize, pairs: &[(usize, usize)]) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    let outcome = connect(&peers(count), &dials(pairs), world, Duration::from_secs(1), deadline).await;
    assert!(Instant::now() <= deadline + Duration::from_secs(2), "much too late");
    let settings = Settings::read(|_| None).unwrap();
    outcome.render(&settings, count)
}

#[tokio::test(start_paused = true)]
async fn only_what_is_missing_is_dialled() {
    let world = World::default();
    world.edges.lock().unwrap().insert(Edge::new("p1", "p0").unwrap());
    expect![[r#"
        3 peers, 3 connections declared (ring)
          already there: 1
          dialled: 2
          failed: 0"#]]
    .assert_eq(&told(&world, 3, &[(0, 1), (0, 2), (1, 2)]).await);
    let dialled: Vec<_> = world.dials.lock().unwrap().keys().cloned().collect();
    assert_eq!(dialled, [("p0".into(), "p2".into()), ("p1".into(), "p2".into())]);
    // A second run finds nothing to do.
    expect![[r#"
        3 peers, 3 connections declared (ring)
          already there: 3
          dialled: 0
          failed: 0"#]]
    .assert_eq(&told(&world, 3, &[(0, 1), (0, 2), (1, 2)]).await);
    assert_eq!(world.dials.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again() {
    let world = World { failures: 4, ..World::default() };
    expect![[r#"
        2 peers, 1 connections declared (ring)
          already there: 0
          dialled: 1
          failed: 0"#]]
    .assert_eq(&told(&world, 2, &[(0, 1)]).await);
}

#[tokio::test(start_paused = true)]
async fn what_keeps_failing_is_told_with_the_reason() {
    let world = World { failures: u32::MAX, ..World::default() };
    expect![[r#"
        2 peers, 1 connections declared (ring)
          already there: 0
          dialled: 0
          failed: 1
            p0 > p1: answered 500: connection refused"#]]
    .assert_eq(&told(&world, 2, &[(0, 1)]).await);
    let dialled = world.dials.lock().unwrap().values().sum::<u32>();
    assert!((5..10).contains(&dialled), "{dialled} dials in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_is_said_to_have_succeeded_is_checked() {
    let world = World { liar: true, ..World::default() };
    expect![[r#"
        2 peers, 1 connections declared (ring)
          already there: 0
          dialled: 0
          failed: 1
            p0 > p1: p0 says that it is connected, but neither end has the connection"#]]
    .assert_eq(&told(&world, 2, &[(0, 1)]).await);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_costs_only_its_own_connections() {
    let world = World { hung: BTreeSet::from(["p1".into()]), ..World::default() };
    expect![[r#"
        4 peers, 5 connections declared (ring)
          already there: 0
          dialled: 3
          failed: 2
            p1 > p2: no answer within 1000 ms
            p1 > p3: no answer within 1000 ms
          p1 does not tell its connections: no answer within 1000 ms"#]]
    .assert_eq(&told(&world, 4, &[(0, 1), (1, 2), (1, 3), (2, 3), (3, 0)]).await);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_nobody_reaches_keeps_others_from_nothing() {
    let world = World { lost: BTreeSet::from(["p1".into()]), ..World::default() };
    expect![[r#"
        3 peers, 2 connections declared (ring)
          already there: 0
          dialled: 1
          failed: 1
            p0 > p1: no answer within 1000 ms"#]]
    .assert_eq(&told(&world, 3, &[(0, 1), (0, 2)]).await);
}

#[tokio::test(start_paused = true)]
async fn nothing_declared_is_nothing_to_do() {
    for count in [0, 1, 2] {
        assert!(told(&World::default(), count, &[]).await.contains("0 connections declared"));
    }
}

proptest! {
    #[test]
    fn whatever_was_there_everything_declared_is_there_afterwards(
        count in 2_usize..8,
        declared in proptest::collection::vec((0_usize..8, 0_usize..8), 0..20),
        there in proptest::collection::vec((0_usize..8, 0_usize..8), 0..20),
        failures in 0_u32..3,
    ) {
        let within = |pairs: &[(usize, usize)]| -> Vec<(usize, usize)> {
            pairs.iter().map(|(one, other)| (one % count, other % count)).filter(|(one, other)| one != other).collect()
        };
        let (declared, there) = (within(&declared), within(&there));
        let edges = |pairs: &[(usize, usize)]| -> Edges {
            dials(pairs).iter().filter_map(Dial::edge).collect()
        };
        let world = World { edges: Mutex::new(edges(&there)), failures, ..World::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let outcome = runtime.block_on(async {
            let deadline = Instant::now() + Duration::from_mins(1);
            connect(&peers(count), &dials(&declared), &world, Duration::from_secs(1), deadline).await
        });
        prop_assert!(outcome.is_complete());
        let (wanted, there) = (edges(&declared), edges(&there));
        prop_assert_eq!(&outcome.already, &wanted.intersection(&there).cloned().collect::<Edges>());
        prop_assert_eq!(&outcome.made, &wanted.difference(&there).cloned().collect::<Edges>());
        prop_assert_eq!(&*world.edges.lock().unwrap(), &wanted.union(&there).cloned().collect::<Edges>());
    }
}

async fn check_run(variables: &[(&str, &str)], peers: Option<&str>, code: u8, expected: Expect) {
    let directory = tempfile::tempdir().unwrap();
    if let Some(peers) = peers {
        std::fs::create_dir(directory.path().join("network")).unwrap();
        std::fs::write(directory.path().join("network/peers.json"), peers).unwrap();
    }
    let root = directory.path().display().to_string();
    let environment = |name: &str| {
        let given =
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned());
        if name == "MAINSTAY_ROOT" { Some(root.clone()) } else { given }
    };
    let said = Mutex::new(String::new());
    let ended = run(environment, &World::default(), |text| said.lock().unwrap().push_str(text)).await;
    expected.assert_eq(&said.lock().unwrap().replace(&root, "ROOT"));
    assert_eq!(ended, code);
}

#[tokio::test(start_paused = true)]
async fn what_it_cannot_begin_with_is_told_with_its_place() {
    let bad = |name, value| [(name, value)];
    check_run(&[], None, 2, expect!["error: cannot connect peers: cannot read ROOT/network/peers.json: No such file or directory (os error 2)"]).await;
    check_run(&[], Some(r#"[{"ipfs": {"peerId": 7}}]"#), 2, expect!["error: cannot connect peers: ROOT/network/peers.json: cannot read peers.json at [0].ipfs.peerId: invalid type: integer `7`, expected a string at line 1 column 22"]).await;
    let twice = peers::write(&[peers(1), peers(1)].concat());
    check_run(
        &[],
        Some(&twice),
        2,
        expect![
            "error: cannot connect peers: ROOT/network/peers.json: [1].ipfs.name is that of [0] too: `p0`"
        ],
    )
    .await;
    check_run(&bad("BOOTSTRAP_METHOD", "line"), Some("[]"), 2, expect!["error: cannot connect peers: BOOTSTRAP_METHOD: `line` is not one of ring, random, sentinel, full, star, kRegular, smallWorld, explicit"]).await;
    check_run(
        &bad("BOOTSTRAP_N", "many"),
        Some("[]"),
        2,
        expect!["error: cannot connect peers: BOOTSTRAP_N: `many` is not a number"],
    )
    .await;
    check_run(
        &bad("BOOTSTRAP_DEADLINE_SECONDS", "-1"),
        Some("[]"),
        2,
        expect!["error: cannot connect peers: BOOTSTRAP_DEADLINE_SECONDS: `-1` is not a number of seconds"],
    )
    .await;
    check_run(&bad("BOOTSTRAP_EDGES", r#"[{"from": 1}]"#), Some("[]"), 2, expect!["error: cannot connect peers: BOOTSTRAP_EDGES at [0].from: invalid type: integer `1`, expected a string at line 1 column 11"]).await;
    check_run(
        &bad("BOOTSTRAP_METHOD", "smallWorld"),
        Some("[]"),
        0,
        expect![[r#"
        0 peers, 0 connections declared (smallWorld)
          already there: 0
          dialled: 0
          failed: 0"#]],
    )
    .await;
}

#[test]
fn variables_are_read_and_the_rest_is_the_default() {
    let none = Settings::read(|_| None).unwrap();
    assert_eq!(
        (none.bootstrap.clone(), none.peers_path.to_str()),
        (BootstrapConfig::default(), Some("/network/peers.json"))
    );
    let all = Settings::read(|name| {
        let value = match name {
            "BOOTSTRAP_METHOD" => "kRegular",
            "BOOTSTRAP_N" => "4",
            "BOOTSTRAP_SEED" => "-5",
            "BOOTSTRAP_REWIRE_PERCENT" => "20",
            "BOOTSTRAP_PEERS_PATH" => "/a/b.json",
            "BOOTSTRAP_DEADLINE_SECONDS" => "7",
            "BOOTSTRAP_TIMEOUT_MILLISECONDS" => "8",
            _ => return None,
        };
        Some(value.to_owned())
    })
    .unwrap();
    let bootstrap = &all.bootstrap;
    assert_eq!(all.method(), "kRegular");
    assert_eq!((bootstrap.degree, bootstrap.seed, bootstrap.rewire_percent), (4, -5, 20));
    assert_eq!((all.deadline, all.timeout), (Duration::from_secs(7), Duration::from_millis(8)));
    assert_eq!(all.peers_path.to_str(), Some("/a/b.json"));
}
