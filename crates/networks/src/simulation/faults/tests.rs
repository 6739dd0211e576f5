use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::choose::choose;
use super::*;
use crate::kinds::{Adapter, SimulationStatus};

/// Peers whose pods come back two seconds after they were deleted, with another uid and another address.
struct World {
    now: Timestamp,
    names: Vec<String>,
    /// Uid number, and since when it is there.
    pods: BTreeMap<String, (usize, Timestamp)>,
    /// Until when each peer keeps out which addresses.
    blocked: BTreeMap<String, BTreeMap<IpAddr, Timestamp>>,
    killed: Vec<String>,
    unsupported: bool,
    log: String,
}

impl World {
    fn new(peers: usize) -> Self {
        let names: Vec<String> = (0..peers).map(|place| format!("peers-0-{place}")).collect();
        let now = Timestamp::UNIX_EPOCH;
        let pods = names.iter().map(|name| (name.clone(), (0, now))).collect();
        let (blocked, killed, log) = Default::default();
        Self { now, names, pods, blocked, killed, unsupported: false, log }
    }

    fn address(&self, name: &str) -> IpAddr {
        let place = self.names.iter().position(|known| known == name).unwrap();
        IpAddr::from([10, 0, u8::try_from(self.pods[name].0 % 250).unwrap(), u8::try_from(place).unwrap()])
    }

    fn is_there(&self, name: &str) -> bool {
        self.pods[name].1 <= self.now
    }

    fn peers(&self) -> Vec<Peer> {
        let there = self.names.iter().filter(|name| self.is_there(name));
        there
            .map(|name| Peer {
                tag: "ipfs".into(),
                name: name.clone(),
                peer_id: format!("id-{name}"),
                adapter: Adapter::Kubo,
                rpc_addr: format!("http://{}:5001", self.address(name)),
                p2p_addrs: vec![format!("/ip4/{}/tcp/4001/p2p/id-{name}", self.address(name))],
                others: BTreeMap::new(),
            })
            .collect()
    }

    fn carry_out(&mut self, step: &Step) -> Outcome {
        let at = self.now.as_second();
        match step {
            Step::Delete { pod, uid, .. } => {
                let (number, _) = self.pods[pod];
                if format!("{pod}#{number}") == *uid && self.is_there(pod) {
                    self.killed.push(uid.clone());
                    self.pods.insert(pod.clone(), (number + 1, self.now + Duration::from_secs(2)));
                    self.blocked.remove(pod);
                    writeln!(self.log, "{at:>3} deletes {uid}").unwrap();
                }
                Outcome::Done
            }
            Step::Disturb { .. } if self.unsupported => Outcome::Unsupported,
            Step::Disturb { peer, .. } if !self.is_there(peer) => Outcome::Failed("nobody there".into()),
            Step::Disturb { peer, disturbance, .. } => {
                let blocked = self.blocked.entry(peer.clone()).or_default();
                let before = blocked.clone();
                match disturbance {
                    Disturbance::Block { addresses, lasts } => {
                        assert!(*lasts <= Duration::from_secs(15), "{lasts:?}");
                        blocked.extend(addresses.iter().map(|address| (*address, self.now + *lasts)));
                    }
                    Disturbance::Unblock(addresses) => {
                        blocked.retain(|address, _| !addresses.contains(address));
                    }
                    other => writeln!(self.log, "{at:>3} {peer} suffers {other:?}").unwrap(),
                }
                if !blocked.keys().eq(before.keys()) {
                    let blocked: Vec<String> = blocked.keys().map(ToString::to_string).collect();
                    writeln!(self.log, "{at:>3} {peer} keeps out [{}]", blocked.join(" ")).unwrap();
                }
                Outcome::Done
            }
        }
    }

    /// Peers let in again whom they kept out for long enough.
    fn expire(&mut self) {
        let now = self.now;
        for (peer, blocked) in &mut self.blocked {
            let before = blocked.len();
            blocked.retain(|_, until| *until > now);
            if blocked.len() != before {
                writeln!(self.log, "{:>3} {peer} lets others in again by itself", now.as_second()).unwrap();
            }
        }
    }

    /// Does what is due until nothing is. `crashes` says in which look all is forgotten that was not recorded.
    fn run(
        &mut self,
        specs: &[FaultSpec],
        seconds: i64,
        crashes: impl Fn(usize) -> bool,
    ) -> Vec<FaultStatus> {
        let (began_at, ends_at) = (self.now, self.now + Duration::from_secs(seconds.unsigned_abs()));
        let mut status = SimulationStatus::default();
        for look in 0..10_000 {
            self.expire();
            let peers = self.peers();
            let live = self.names.iter().filter(|name| self.is_there(name));
            let pods = live.map(|name| (name.clone(), format!("{name}#{}", self.pods[name].0))).collect();
            let names = self.names.clone();
            let now = self.now;
            let (names, peers, pods) = (names.as_slice(), peers.as_slice(), &pods);
            let recorded = blocked_addresses(&status);
            let view = |blocked| View { now, began_at, ends_at, seed: 7, names, peers, pods, blocked };
            let due = steps(specs, &status.faults, view(&recorded));
            let outcomes: Vec<(Step, Outcome)> =
                due.iter().map(|step| (step.clone(), self.carry_out(step))).collect();
            if crashes(look) {
                self.now += Duration::from_secs(1);
                continue;
            }
            let before = status.clone();
            status.faults = advance(specs, &status.faults, view(&recorded), &outcomes);
            record_addresses(&mut status, &before, peers);
            let recorded = blocked_addresses(&status);
            let Some(at) = wake_at(specs, &status.faults, view(&recorded), &due) else {
                assert_eq!(status.blocked_addresses, [""; 0]);
                return status.faults;
            };
            self.now = at.max(self.now + Duration::from_millis(1));
        }
        panic!("it never ends: {status:?}");
    }
}

fn fault(spec: serde_json::Value) -> FaultSpec {
    serde_json::from_value(spec).unwrap()
}

fn check(peers: usize, specs: serde_json::Value, expect: &Expect) {
    check_in(&mut World::new(peers), specs, expect);
}

fn check_in(world: &mut World, specs: serde_json::Value, expect: &Expect) {
    let specs: Vec<FaultSpec> = serde_json::from_value(specs).unwrap();
    let recorded = world.run(&specs, 60, |_| false);
    let mut told = world.log.clone();
    for status in &recorded {
        let (action, phase, rounds) = (status.action, status.phase, status.rounds);
        writeln!(told, "{action:?} {phase:?} rounds={rounds} {}", status.message).unwrap();
    }
    expect.assert_eq(&told);
}

#[test]
fn a_kill_deletes_the_pods_that_were_chosen() {
    check(
        4,
        json!([{"atSeconds": 5, "action": "kill", "count": 2}]),
        &expect![[r#"
          5 deletes peers-0-0#0
          5 deletes peers-0-3#0
        Kill Over rounds=1 
    "#]],
    );
}

#[test]
fn churn_kills_in_rounds_until_it_is_over() {
    check(
        3,
        json!([{"atSeconds": 2, "action": "churn", "everySeconds": 4, "durationSeconds": 10}]),
        &expect![[r#"
          2 deletes peers-0-0#0
          6 deletes peers-0-0#1
         10 deletes peers-0-2#0
        Churn Over rounds=3 
    "#]],
    );
}

#[test]
fn a_partition_keeps_both_sides_apart_and_is_mended() {
    check(
        3,
        json!([{"atSeconds": 1, "action": "partition", "peers": ["peers-0-1"], "durationSeconds": 20}]),
        &expect![[r#"
              1 peers-0-0 keeps out [10.0.0.1]
              1 peers-0-1 keeps out [10.0.0.0 10.0.0.2]
              1 peers-0-2 keeps out [10.0.0.1]
             21 peers-0-0 lets others in again by itself
             21 peers-0-1 lets others in again by itself
             21 peers-0-2 lets others in again by itself
            Partition Over rounds=0 
        "#]],
    );
}

#[test]
fn whoever_restarts_in_a_partition_is_kept_apart_again() {
    let specs = json!([
        {"atSeconds": 1, "action": "partition", "peers": ["peers-0-1"], "durationSeconds": 20},
        {"atSeconds": 3, "action": "kill", "peers": ["peers-0-1"]},
    ]);
    check(
        2,
        specs,
        &expect![[r#"
              1 peers-0-0 keeps out [10.0.0.1]
              1 peers-0-1 keeps out [10.0.0.0]
              3 deletes peers-0-1#0
              8 peers-0-1 keeps out [10.0.0.0]
              8 peers-0-0 keeps out [10.0.0.1 10.0.1.1]
             18 peers-0-0 lets others in again by itself
             21 peers-0-0 lets others in again by itself
             21 peers-0-1 lets others in again by itself
            Partition Over rounds=0 
            Kill Over rounds=1 
        "#]],
    );
}

#[test]
fn pause_and_latency_are_told_once() {
    let specs = json!([
        {"atSeconds": 1, "action": "pause", "durationSeconds": 3},
        {"atSeconds": 1, "action": "latency", "latencyMilliseconds": 250},
    ]);
    check(
        2,
        specs,
        &expect![[r#"
          1 peers-0-0 suffers Pause(2.999s)
          1 peers-0-0 suffers Latency { late: 250ms, lasts: 9.999s }
        Pause Over rounds=0 
        Latency Over rounds=0 
    "#]],
    );
}

#[test]
fn what_peers_cannot_do_is_told() {
    let mut world = World::new(7);
    world.unsupported = true;
    let specs = json!([
        {"atSeconds": 1, "action": "pause", "count": 7},
        {"atSeconds": 1, "action": "partition"},
        {"atSeconds": 90, "action": "kill"},
        {"atSeconds": 1, "action": "kill", "peers": ["nobody"]},
    ]);
    check_in(
        &mut world,
        specs,
        &expect![[r#"
        Pause Unsupported rounds=0 peers-0-0, peers-0-1, peers-0-2, peers-0-3, peers-0-4 and 2 more: does not know how
        Partition Unsupported rounds=0 peers-0-0, peers-0-1, peers-0-2, peers-0-3, peers-0-4 and 2 more: does not know how
        Kill Over rounds=0 the load was over before its time came
        Kill Over rounds=1 there is no peer that it could happen to
    "#]],
    );
}

#[test]
fn a_partition_has_somebody_on_either_side() {
    let names: Vec<String> = (0..3).map(|place| place.to_string()).collect();
    let spec = fault(json!({"atSeconds": 0, "action": "partition", "count": 9}));
    assert_eq!(choose(&spec, 0, 1, 0, &names).len(), 2);
    assert!(choose(&spec, 0, 1, 0, &names[..1]).is_empty());
}

/// The work for one look at a partition that cuts a network in half: how many times addresses of a peer are read, and how many lists of addresses there are.
fn work_of_a_partition(peers: usize) -> (usize, usize) {
    let names: Vec<String> = (0..peers).map(|place| format!("peers-0-{place}")).collect();
    let listed: Vec<Peer> = names
        .iter()
        .enumerate()
        .map(|(place, name)| Peer {
            tag: "ipfs".into(),
            name: name.clone(),
            peer_id: format!("id-{name}"),
            adapter: Adapter::Kubo,
            rpc_addr: String::new(),
            p2p_addrs: vec![format!("/ip4/10.0.{}.{}/tcp/4001", place / 250, place % 250)],
            others: BTreeMap::new(),
        })
        .collect();
    let specs = [fault(json!({"atSeconds": 0, "action": "partition", "count": peers / 2}))];
    let (now, pods) = (Timestamp::UNIX_EPOCH, BTreeMap::new());
    let ends_at = later(now, Duration::from_mins(1));
    let mut status = SimulationStatus::default();
    let none = BTreeSet::new();
    let view = |blocked| View {
        now,
        began_at: now,
        ends_at,
        seed: 0,
        names: &names,
        peers: &listed,
        pods: &pods,
        blocked,
    };
    status.faults = advance(&specs, &[], view(&none), &[]);
    record_addresses(&mut status, &SimulationStatus::default(), &listed);
    let blocked = blocked_addresses(&status);
    partition::READ.with(|read| read.set(0));
    let due = steps(&specs, &status.faults, view(&blocked));
    let outcomes: Vec<(Step, Outcome)> = due.iter().map(|step| (step.clone(), Outcome::Done)).collect();
    status.faults = advance(&specs, &status.faults, view(&blocked), &outcomes);
    let before = status.clone();
    record_addresses(&mut status, &before, &listed);
    assert!(wake_at(&specs, &status.faults, view(&blocked), &due).unwrap() > now, "all was done");
    assert_eq!(due.len(), peers);
    let lists = due.iter().filter_map(|step| match step {
        Step::Disturb { disturbance: Disturbance::Block { addresses, .. }, .. } => {
            Some(Arc::as_ptr(addresses).addr())
        }
        _ => None,
    });
    (partition::READ.with(std::cell::Cell::get), lists.collect::<BTreeSet<usize>>().len())
}

#[test]
fn the_work_of_a_partition_grows_with_its_peers_only() {
    for peers in [100, 400, 1600] {
        assert_eq!(work_of_a_partition(peers), (3 * peers, 2), "{peers} peers");
    }
}

#[test]
fn a_peer_that_nobody_tells_of_the_end_lets_others_in_by_itself() {
    let mut world = World::new(2);
    // The operator dies while the partition lasts, and comes back when it is long over.
    let specs = [fault(json!({"atSeconds": 1, "action": "partition", "durationSeconds": 30}))];
    world.run(&specs, 60, |look| (4..60).contains(&look));
    let by_itself = world.log.lines().filter(|line| line.ends_with("by itself")).count();
    assert_eq!(by_itself, 2, "{}", world.log);
}

fn any_fault() -> impl Strategy<Value = FaultSpec> {
    let actions = ["kill", "pause", "latency", "partition", "churn"];
    let or_most = |range: std::ops::Range<i32>| prop_oneof![9 => range, 1 => Just(i32::MAX)];
    (or_most(0..70), 0..5_usize, or_most(1..30), or_most(1..5), or_most(1..6)).prop_map(move |(at, action, lasts, count, every)| {
        fault(json!({
            "atSeconds": at, "action": actions[action], "durationSeconds": lasts, "count": count, "everySeconds": every,
        }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_crashes_nobody_is_killed_twice_for_a_round_and_nobody_kept_out_at_the_end(
        specs in proptest::collection::vec(any_fault(), 1..5),
        crashes in proptest::collection::btree_set(0..60_usize, 0..20),
    ) {
        let mut world = World::new(5);
        let recorded = world.run(&specs, 60, |look| crashes.contains(&look));
        let mut once = world.killed.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), world.killed.len());
        prop_assert!(recorded.iter().all(|status| status.phase == FaultPhase::Over), "{:?}", recorded);
        for (spec, status) in specs.iter().zip(&recorded) {
            let most = if spec.action == FaultAction::Churn { 31 } else { 1 };
            prop_assert!(status.rounds <= most);
        }
        let kills = |status: &FaultStatus, spec: &FaultSpec| i64::from(status.rounds) * i64::from(spec.count.unwrap_or(1));
        let kills: i64 = recorded.iter().zip(&specs).map(|(status, spec)| kills(status, spec)).sum();
        prop_assert!(world.killed.len() <= usize::try_from(kills).unwrap(), "{:?} {:?}", world.killed, recorded);
        prop_assert!(world.blocked.values().all(BTreeMap::is_empty), "{:?}", world.blocked);
    }

    #[test]
    fn the_same_seed_chooses_the_same_peers(
        seed in prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)],
        count in prop_oneof![1..9, Just(i32::MAX)],
        round in prop_oneof![0..9, Just(i32::MAX)],
    ) {
        let names: Vec<String> = (0..8).map(|place| format!("peers-0-{place}")).collect();
        let spec = fault(json!({"atSeconds": 0, "action": "kill", "count": count}));
        let chosen = choose(&spec, 1, round, seed, &names);
        prop_assert_eq!(chosen.len(), usize::try_from(count).unwrap().min(8));
        prop_assert!(chosen.is_sorted());
        prop_assert_eq!(&chosen, &choose(&spec, 1, round, seed, &names));
    }
}
