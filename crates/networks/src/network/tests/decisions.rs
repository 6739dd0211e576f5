//! What is decided, from what is seen.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use mainstay::conditions::{Conditions, State};
use proptest::prelude::*;
use serde_json::json;

use super::super::decide::{Decision, JobState, Situation, decide, expiration};
use super::super::observe::Seen;
use super::super::reason::Unready;
use super::super::tell::{ASSEMBLED, READY};
use super::{answering, at, config, silent};
use crate::config::NetworkConfig;
use crate::graph::{Cut, Dial, Edge};
use crate::rpc::RpcError;

const NOW: i64 = 1000;

fn decided(config: &NetworkConfig, seen: &[Seen], job: JobState, assembling_since: Option<i64>) -> Decision {
    decided_among(config, seen, job, assembling_since, &[])
}

fn decided_among(
    config: &NetworkConfig,
    seen: &[Seen],
    job: JobState,
    assembling_since: Option<i64>,
    partitions: &[Cut],
) -> Decision {
    let mut conditions = Conditions::new();
    if let Some(since) = assembling_since {
        conditions.set(ASSEMBLED, State::False, "PeersMissing", "", None, at(since)).unwrap();
    }
    let (conditions, rounds) = (&conditions, 0);
    let (created, now) = (at(0), at(NOW));
    decide(&Situation { name: "lab", config, created, now, seen, job, conditions, partitions, rounds })
}

fn shown(decision: &Decision) -> String {
    let mut text = String::new();
    let peers: Vec<&str> = decision.peers.iter().map(|peer| peer.name.as_str()).collect();
    writeln!(text, "peers {peers:?}, Job {}, again in {:?}", decision.bootstrap, decision.wake).unwrap();
    for dial in &decision.dials {
        writeln!(text, "dial {dial}").unwrap();
    }
    for told in &decision.told {
        writeln!(text, "{} {} {}: {}", told.condition, told.state, told.reason.as_str(), told.message)
            .unwrap();
    }
    text
}

fn check(decision: &Decision, expect: &Expect) {
    expect.assert_eq(&shown(decision));
}

fn refused() -> Unready {
    Unready::Rpc(RpcError::Unreachable("refused".into()))
}

#[test]
fn peers_that_come_up_are_waited_for() {
    let seen = [answering(0, &[]), silent(1, Unready::PodPending(String::new())), silent(2, refused())];
    check(
        &decided(&config(&json!({})), &seen, JobState::Absent, Some(NOW - 5)),
        &expect![[r#"
        peers ["peers-0-0"], Job false, again in 2s
        Assembled False PeersMissing: 1 of 3 peers answer (peers-0-1: PodPending, peers-0-2: RpcUnreachable)
        Bootstrapped False WaitingForPeers: peers are connected once all answer, or two at least after a while
        Connected True NothingDeclared: no connections are declared among those that answer
        Ready False PeersMissing: 1 of 3 peers answer (peers-0-1: PodPending, peers-0-2: RpcUnreachable)
    "#]],
    );
}

#[test]
fn once_all_answer_the_job_is_made() {
    let seen = [answering(0, &[]), answering(1, &[]), answering(2, &[])];
    check(
        &decided(&config(&json!({})), &seen, JobState::Absent, Some(NOW - 5)),
        &expect![[r#"
        peers ["peers-0-0", "peers-0-1", "peers-0-2"], Job true, again in 10s
        Assembled True AllAnswer: 3 of 3 peers answer
        Bootstrapped False JobRunning: the Job is made
        Connected False EdgesMissing: 3 of 3 declared connections are missing: peers-0-1 > peers-0-0, peers-0-2 > peers-0-0, peers-0-2 > peers-0-1; there are 3 islands
        Ready False JobRunning: the Job is made
    "#]],
    );
}

#[test]
fn after_a_while_two_are_connected_without_the_third() {
    let seen = [answering(0, &[]), answering(1, &[]), silent(2, refused())];
    let config = config(&json!({}));
    assert!(!decided(&config, &seen, JobState::Absent, Some(NOW - 59)).bootstrap);
    assert!(decided(&config, &seen, JobState::Absent, Some(NOW - 60)).bootstrap);
    let alone = [answering(0, &[]), silent(1, refused()), silent(2, refused())];
    assert!(!decided(&config, &alone, JobState::Absent, Some(NOW - 60)).bootstrap);
}

#[test]
fn while_the_job_runs_nothing_is_dialled() {
    let seen = [answering(0, &[]), answering(1, &[]), answering(2, &[])];
    let decision = decided(&config(&json!({})), &seen, JobState::Running, None);
    assert!(decision.bootstrap && decision.dials.is_empty());
}

#[test]
fn what_the_job_left_is_dialled_and_only_that() {
    // One end is enough: 2 does not know yet that 0 has dialled it.
    let seen = [answering(0, &[2]), answering(1, &[]), answering(2, &[])];
    check(
        &decided(&config(&json!({})), &seen, JobState::Failed, None),
        &expect![[r#"
        peers ["peers-0-0", "peers-0-1", "peers-0-2"], Job true, again in 1s
        dial peers-0-1 > peers-0-0
        dial peers-0-2 > peers-0-1
        Assembled True AllAnswer: 3 of 3 peers answer
        Bootstrapped False JobFailed: the Job has failed; connections that are missing are dialled by the operator
        Connected False EdgesMissing: 2 of 3 declared connections are missing: peers-0-1 > peers-0-0, peers-0-2 > peers-0-1; there are 2 islands
        Ready False EdgesMissing: 2 of 3 declared connections are missing: peers-0-1 > peers-0-0, peers-0-2 > peers-0-1; there are 2 islands
    "#]],
    );
}

#[test]
fn a_network_that_is_as_declared_is_ready() {
    let seen = [answering(0, &[1, 2]), answering(1, &[2]), answering(2, &[])];
    check(
        &decided(&config(&json!({})), &seen, JobState::Succeeded, None),
        &expect![[r#"
        peers ["peers-0-0", "peers-0-1", "peers-0-2"], Job true, again in 10s
        Assembled True AllAnswer: 3 of 3 peers answer
        Bootstrapped True JobSucceeded: peers have been connected
        Connected True AllConnected: all 3 declared connections are there
        Ready True Ready: 3 of 3 peers answer; all 3 declared connections are there
    "#]],
    );
}

#[test]
fn nobody_dials_across_a_partition() {
    let seen = [answering(0, &[]), answering(1, &[2]), answering(2, &[1])];
    let cut = [Cut::around(["peers-0-0"])];
    check(
        &decided_among(&config(&json!({})), &seen, JobState::Succeeded, None, &cut),
        &expect![[r#"
        peers ["peers-0-0", "peers-0-1", "peers-0-2"], Job true, again in 10s
        Assembled True AllAnswer: 3 of 3 peers answer
        Bootstrapped True JobSucceeded: peers have been connected
        Connected False EdgesSevered: 2 of 3 declared connections are missing: peers-0-1 > peers-0-0, peers-0-2 > peers-0-0; there are 2 islands; a simulation keeps them apart
        Ready False EdgesSevered: 2 of 3 declared connections are missing: peers-0-1 > peers-0-0, peers-0-2 > peers-0-0; there are 2 islands; a simulation keeps them apart
    "#]],
    );
}

#[test]
fn nothing_is_dialled_where_nothing_is_declared_or_repaired() {
    let seen = [answering(0, &[]), answering(1, &[]), answering(2, &[])];
    let never = config(&json!({"topology": {"repair": "never"}}));
    let decision = decided(&never, &seen, JobState::Succeeded, None);
    assert!(decision.dials.is_empty() && decision.status.edges.unwrap().missing == 3);
    let disabled = config(&json!({"bootstrap": {"enabled": false}}));
    check(
        &decided(&disabled, &seen, JobState::Absent, None),
        &expect![[r#"
        peers ["peers-0-0", "peers-0-1", "peers-0-2"], Job false, again in 10s
        Assembled True AllAnswer: 3 of 3 peers answer
        Bootstrapped Unknown Disabled: spec.bootstrap.enabled is false: nothing is declared about connections
        Connected Unknown Disabled: spec.bootstrap.enabled is false: nothing is declared about connections
        Ready True Ready: 3 of 3 peers answer; spec.bootstrap.enabled is false: nothing is declared about connections
    "#]],
    );
}

#[test]
fn only_what_two_ends_asked_in_this_look_miss_is_dialled() {
    let dials = |dials: &[Dial]| dials.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut seen = [answering(0, &[]), answering(1, &[]), answering(2, &[])];
    seen[0].is_fresh = false;
    let decision = decided(&config(&json!({})), &seen, JobState::Succeeded, None);
    assert_eq!(dials(&decision.dials), ["peers-0-2 > peers-0-1"]);
    assert_eq!(dials(&decision.doubtful), ["peers-0-1 > peers-0-0", "peers-0-2 > peers-0-0"]);
    assert_eq!(decision.wake.as_secs(), 1);
    // All of it is still reported as missing.
    assert_eq!(decision.status.edges.unwrap().missing, 3);
}

#[test]
fn two_who_say_they_are_the_same_are_both_left_out() {
    let mut seen = [answering(0, &[]), answering(1, &[]), answering(2, &[])];
    seen[1].answer.as_mut().unwrap().peer_id = "id-0".into();
    let decision = decided(&config(&json!({})), &seen, JobState::Absent, None);
    let told: Vec<String> = decision
        .status
        .unready
        .iter()
        .map(|peer| format!("{} {}: {}", peer.name, peer.reason, peer.message))
        .collect();
    assert_eq!(decision.peers.len(), 1);
    assert_eq!(told[0], "peers-0-0 DuplicateId: it says that it is id-0, and so does peers-0-1");
}

#[test]
fn what_peers_say_is_cut_short_in_the_status() {
    let mut seen: Vec<Seen> = (0..6).map(|peer| answering(peer, &[])).collect();
    for same in &mut seen[0..5] {
        same.answer.as_mut().unwrap().peer_id = "id-0".into();
    }
    seen[5].answer = Err(Unready::Rpc(RpcError::Garbage("é".repeat(5000))));
    let unready = decided(&config(&json!({})), &seen, JobState::Absent, None).status.unready;
    assert_eq!(
        unready[1].message,
        "it says that it is id-0, and so does peers-0-0 and peers-0-2 and peers-0-3 and 1 more"
    );
    assert_eq!(unready[5].message.chars().count(), 161);
}

#[test]
fn one_peer_needs_no_job() {
    let decision = decided(&config(&json!({"replicas": 1})), &[answering(0, &[])], JobState::Absent, None);
    assert!(!decision.bootstrap);
    assert!(decision.told.iter().any(|told| told.condition == READY && told.state == State::True));
}

#[test]
fn a_network_lives_as_long_as_its_spec_says_now() {
    assert_eq!(expiration(&config(&json!({})), at(7)), None);
    assert_eq!(expiration(&config(&json!({"ttlSeconds": 60})), at(7)), Some(at(67)));
    assert!(expiration(&config(&json!({"ttlSeconds": i64::MAX})), at(7)).is_some());
    let short = decided(&config(&json!({"ttlSeconds": NOW + 4})), &[], JobState::Absent, None);
    assert_eq!(short.wake.as_secs(), 4);
}

#[test]
fn further_ports_are_told_by_name() {
    let config = config(&json!({"replicas": 1, "peers": [{"ports": [{"name": "flight", "port": 5102}]}]}));
    let decision = decided(&config, &[answering(0, &[])], JobState::Absent, None);
    assert_eq!(decision.peers[0].others["flightAddr"], "http://10.0.0.0:5102");
}

proptest! {
    #[test]
    fn only_declared_connections_that_are_missing_are_dialled(
        edges in proptest::collection::vec((0..6_usize, 0..6_usize), 0..20),
        answers in proptest::collection::vec(any::<bool>(), 6),
        method in prop_oneof![Just("ring"), Just("full"), Just("star"), Just("random")],
    ) {
        let config = config(&json!({"replicas": 6, "bootstrap": {"method": method}}));
        let seen: Vec<Seen> = (0..6).map(|peer| {
            let others: Vec<usize> = edges.iter().filter(|(from, _)| *from == peer).map(|(_, to)| *to).collect();
            if answers[peer] { answering(peer, &others) } else { silent(peer, refused()) }
        }).collect();
        let decision = decided(&config, &seen, JobState::Succeeded, Some(0));
        let listed: Vec<&str> = decision.peers.iter().map(|peer| peer.name.as_str()).collect();
        let there = |one: usize, other: usize| answers[one] && answers[other];
        for dial in &decision.dials {
            prop_assert!(listed.contains(&dial.from.as_str()) && listed.contains(&dial.to.as_str()));
            let wanted = Edge::new(&dial.from, &dial.to);
            for (one, other) in edges.iter().filter(|(one, other)| there(*one, *other)) {
                prop_assert_ne!(&wanted, &Edge::new(&format!("peers-0-{one}"), &format!("peers-0-{other}")));
            }
        }
        let missing = decision.status.edges.as_ref().map_or(0, |edges| edges.missing);
        prop_assert_eq!(i32::try_from(decision.dials.len()).unwrap(), missing);
    }
}
