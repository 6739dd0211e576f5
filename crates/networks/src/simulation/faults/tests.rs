use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::choose::choose;
use super::*;
use crate::kinds::Adapter;

/// Peers whose pods come back two seconds after they were deleted, with another uid and another address.
struct World {
    now: Timestamp,
    names: Vec<String>,
    /// Uid number, and since when it is there.
    pods: BTreeMap<String, (usize, Timestamp)>,
    blocked: BTreeMap<String, BTreeSet<IpAddr>>,
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
                    Disturbance::Block(addresses) => blocked.extend(addresses),
                    Disturbance::Unblock(addresses) => blocked.retain(|address| !addresses.contains(address)),
                    other => writeln!(self.log, "{at:>3} {peer} suffers {other:?}").unwrap(),
                }
                if *blocked != before {
                    let blocked: Vec<String> = blocked.iter().map(ToString::to_string).collect();
                    writeln!(self.log, "{at:>3} {peer} keeps out [{}]", blocked.join(" ")).unwrap();
                }
                Outcome::Done
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
        let mut recorded = Vec::new();
        for look in 0..10_000 {
            let peers = self.peers();
            let live = self.names.iter().filter(|name| self.is_there(name));
            let pods = live.map(|name| (name.clone(), format!("{name}#{}", self.pods[name].0))).collect();
            let names = self.names.clone();
            let now = self.now;
            let view = View { now, began_at, ends_at, seed: 7, names: &names, peers: &peers, pods: &pods };
            let due = steps(specs, &recorded, view);
            let outcomes: Vec<(Step, Outcome)> =
                due.iter().map(|step| (step.clone(), self.carry_out(step))).collect();
            if crashes(look) {
                self.now += Duration::from_secs(1);
                continue;
            }
            recorded = advance(specs, &recorded, view, &outcomes);
            match wake_at(specs, &recorded, view, &due) {
                Some(at) => self.now = at.max(self.now + Duration::from_millis(1)),
                None => return recorded,
            }
        }
        panic!("it never ends: {recorded:?}");
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
         21 peers-0-0 keeps out []
         21 peers-0-1 keeps out []
         21 peers-0-2 keeps out []
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
         21 peers-0-0 keeps out []
         21 peers-0-1 keeps out []
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
        prop_assert!(world.blocked.values().all(BTreeSet::is_empty), "{:?}", world.blocked);
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
