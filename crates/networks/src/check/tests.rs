use expect_test::{Expect, expect};

use super::*;
use crate::config::SimulationConfig;
use crate::kinds::{NetworkSpec, SimulationSpec};

fn told(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn check(name: &str, spec: &str, expected: &Expect) {
    let spec: NetworkSpec = serde_saphyr::from_str(spec).unwrap();
    expected.assert_eq(&told(&problems(&spec, &NetworkConfig::from(&spec), name)));
}

fn check_simulation(spec: &str, expected: &Expect) {
    let spec: SimulationSpec = serde_saphyr::from_str(spec).unwrap();
    expected.assert_eq(&told(&simulation_problems(&SimulationConfig::from(spec))));
}

#[test]
fn what_is_right_has_no_problems() {
    for spec in [
        "replicas: 1",
        "replicas: 2",
        "{replicas: 2000, peers: [{name: go, weight: 48}, {weight: 1, ports: [{name: flight, port: 5102}]}]}",
        "{replicas: 3, bootstrap: {method: explicit, edges: [{from: peers-0-0, to: peers-0-2}]}}",
        "{replicas: 3, peers: [{storage: {size: 500M}}], monitoring: {podMonitor: {enabled: true}}}",
        "{replicas: 2, bootstrap: {method: full, degree: 50}}",
        "{replicas: 447, bootstrap: {method: full}}",
        "{replicas: 2000, bootstrap: {method: full, enabled: false}}",
        "{replicas: 2000, bootstrap: {method: kRegular, degree: 100}}",
        "{replicas: 9, ttlSeconds: 60, bootstrap: {method: smallWorld, degree: 8, rewirePercent: 0}}",
        "{replicas: 2, bootstrap: {method: kRegular, degree: 1}}",
        "{replicas: 9, bootstrap: {\"n\": 4}}",
        "{replicas: 9, bootstrap: {degree: 4, \"n\": 4}}",
    ] {
        check("a-2", spec, &expect![[""]]);
    }
    check(&"a".repeat(55), "replicas: 1", &expect![[""]]);
}

#[test]
fn the_degree_may_have_its_former_name_but_not_two_values() {
    let degree = |bootstrap: &str| {
        let spec: NetworkSpec = serde_saphyr::from_str(&format!("{{replicas: 9, {bootstrap}}}")).unwrap();
        NetworkConfig::from(spec).bootstrap.degree
    };
    assert_eq!(degree("bootstrap: {\"n\": 4}"), 4);
    assert_eq!(degree("bootstrap: {degree: 5}"), 5);
    assert_eq!(degree("bootstrap: {}"), 3);
    check(
        "a",
        "{replicas: 9, bootstrap: {degree: 3, \"n\": 5}}",
        &expect!["spec.bootstrap.degree: must be the same as spec.bootstrap.n, its former name: 3 is not 5"],
    );
}

#[test]
fn what_peers_are_to_know_has_to_fit_into_a_config_map() {
    let spec = format!("{{replicas: 1, config: {{text: {}}}}}", "a".repeat(1024 * 1024));
    check(
        "a",
        &spec,
        &expect!["spec.config: must have at most 983040 bytes as JSON in a ConfigMap, not 1048630"],
    );
}

#[test]
fn numbers_of_peers_and_groups_have_limits() {
    check("a", "replicas: 0", &expect!["spec.replicas: must be from 1 to 2000, not 0"]);
    check(
        "a",
        "{replicas: 2001, peers: []}",
        &expect![[r#"
        spec.replicas: must be from 1 to 2000, not 2001
        spec.peers: must have from 1 to 10 groups, not 0"#]],
    );
    check(
        "a",
        "{replicas: -1, peers: [{weight: -2}, {weight: 1000001}]}",
        &expect![[r#"
        spec.replicas: must be from 1 to 2000, not -1
        spec.peers[0].weight: must be from 0 to 1000000, not -2
        spec.peers[1].weight: must be from 0 to 1000000, not 1000001"#]],
    );
    check(
        "a",
        "{replicas: 5, peers: [{weight: 0}, {weight: 0}]}",
        &expect!["spec.peers: must have a group whose weight is more than 0"],
    );
    check(
        "a",
        &format!("{{replicas: 5, peers: [{}]}}", "{},".repeat(11)),
        &expect!["spec.peers: must have from 1 to 10 groups, not 11"],
    );
    check(
        "a",
        "{replicas: 5, ttlSeconds: 0, topology: {observeSeconds: 0}}",
        &expect![[r#"
        spec.topology.observeSeconds: must be from 1 to 3600, not 0
        spec.ttlSeconds: must be at least 1, not 0"#]],
    );
}

#[test]
fn absurdly_many_connections_are_refused() {
    check(
        "a",
        "{replicas: 2000, bootstrap: {method: full}}",
        &expect![
            "spec.bootstrap.method: must not declare more than 100000 connections; among 2000 peers it declares 1999000: take kRegular or smallWorld, or fewer peers"
        ],
    );
    check(
        "a",
        "{replicas: 2000, bootstrap: {method: random, degree: 51}}",
        &expect![
            "spec.bootstrap.degree: must not declare more than 100000 connections; among 2000 peers it declares 102000: take a smaller one, or fewer peers"
        ],
    );
    check(
        "a",
        "{replicas: 2000, bootstrap: {method: sentinel, degree: 1999}}",
        &expect![
            "spec.bootstrap.degree: must not declare more than 100000 connections; among 2000 peers it declares 1999000: take a smaller one, or fewer peers"
        ],
    );
}

#[test]
fn names_are_such_that_everything_can_be_named_after_them() {
    check(
        "A",
        "replicas: 1",
        &expect![[
            r#"metadata.name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 55 characters long, not "A""#
        ]],
    );
    check(
        &"a".repeat(56),
        "{replicas: 1, peers: [{name: 1st}]}",
        &expect![[r#"
        metadata.name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 55 characters long, not "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        spec.peers[0].name: must begin with a lower-case letter, not as "1st" does"#]],
    );
    check(
        "a.b",
        "{replicas: 1, peers: [{name: a-}, {name: peers-2}, {}]}",
        &expect![[r#"
        metadata.name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 55 characters long, not "a.b"
        spec.peers[0].name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 52 characters long, not "a-"
        spec.peers[2].name: must not be "peers-2", which spec.peers[1] is called"#]],
    );
    check(
        "a",
        &format!("{{replicas: 1, peers: [{{name: {}}}]}}", "a".repeat(53)),
        &expect![[
            r#"spec.peers[0].name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 52 characters long, not "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#
        ]],
    );
    check(
        "a",
        "{replicas: 1, peersConfigMap: network-config}",
        &expect![[
            r#"spec.peersConfigMap: must not be "network-config", because a network has another ConfigMap of that name"#
        ]],
    );
    check(
        "a",
        "{replicas: 1, peersConfigMap: a..b}",
        &expect![[
            r#"spec.peersConfigMap: must be lower-case letters, digits, '-' and '.', with letters or digits at both ends and beside every '.', and at most 253 characters long, not "a..b""#
        ]],
    );
    check(
        "a",
        "{replicas: 1, peers: [{init: [{name: a}, {name: b.c}, {name: a}]}]}",
        &expect![[r#"
        spec.peers[0].init[1].name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 63 characters long, not "b.c"
        spec.peers[0].init[2].name: must be another than "a", which spec.peers[0].init[0] is called"#]],
    );
}

#[test]
fn ports_are_used_once() {
    check(
        "a",
        "{replicas: 1, peers: [{}, {rpc: {port: 4001}, ports: [{name: x, port: 4001}, {name: x, port: 70000}]}]}",
        &expect![[r#"
            spec.peers[1].p2pPort: must be another than 4001, which spec.peers[1].rpc.port is
            spec.peers[1].ports[0].port: must be another than 4001, which spec.peers[1].rpc.port is
            spec.peers[1].ports[1].port: must be from 1 to 65535, not 70000
            spec.peers[1].ports[1].name: must be another than "x", which spec.peers[1].ports[0] is called"#]],
    );
    check(
        "a",
        "{replicas: 1, peers: [{ports: [{name: rpc, port: 1}, {name: a--b, port: 0}, {name: '1', port: 2}]}]}",
        &expect![[r#"
            spec.peers[0].ports[1].port: must be from 1 to 65535, not 0
            spec.peers[0].ports[0].name: must be another than "rpc", which the RPC is called
            spec.peers[0].ports[1].name: must be lower-case letters, digits and single '-' between them, with at least one letter, and at most 15 characters long, not "a--b"
            spec.peers[0].ports[2].name: must be lower-case letters, digits and single '-' between them, with at least one letter, and at most 15 characters long, not "1""#]],
    );
    check(
        "a",
        "{replicas: 1, monitoring: {podMonitor: {enabled: true, port: metrics}}}",
        &expect![[
            r#"spec.monitoring.podMonitor.port: must be the name of a port of every group; peers-0 has none called "metrics""#
        ]],
    );
}

#[test]
fn what_peers_run_can_be_run() {
    check(
        "a",
        "{replicas: 1, peers: [{image: '', imagePullPolicy: Sometimes, tag: '', rpc: {timeoutMilliseconds: 1},
          storage: {size: 10Gb, path: data}}, {storage: {size: '0'}}],
          bootstrap: {image: '', imagePullPolicy: always}}",
        &expect![[r#"
            spec.peers[0].image: must not be empty
            spec.peers[0].imagePullPolicy: must be Always, IfNotPresent or Never, not "Sometimes"
            spec.peers[0].tag: must not be empty
            spec.peers[0].rpc.timeoutMilliseconds: must be from 10 to 60000, not 1
            spec.peers[0].storage.size: must be a quantity above 0 like 10Gi, not "10Gb"
            spec.peers[0].storage.path: must begin with '/', not as "data" does
            spec.peers[1].storage.size: must be a quantity above 0 like 10Gi, not "0"
            spec.bootstrap.image: must not be empty
            spec.bootstrap.imagePullPolicy: must be Always, IfNotPresent or Never, not "always""#]],
    );
}

#[test]
fn connections_can_be_made() {
    check(
        "a",
        "{replicas: 4, bootstrap: {degree: 4}}",
        &expect![
            "spec.bootstrap.degree: must be at most 3, which is how many others each of 4 peers has, not 4"
        ],
    );
    check(
        "a",
        "{replicas: 4, bootstrap: {degree: 0, method: star}}",
        &expect!["spec.bootstrap.degree: must be at least 1, not 0"],
    );
    check(
        "a",
        "{replicas: 4, bootstrap: {degree: 1, method: kRegular, rewirePercent: 101}}",
        &expect![[r#"
        spec.bootstrap.rewirePercent: must be from 0 to 100, not 101
        spec.bootstrap.degree: must be at least 2 with method kRegular, because pairs cannot reach each other, not 1"#]],
    );
    check(
        "a",
        "{replicas: 4, bootstrap: {degree: 1, method: smallWorld, patienceSeconds: -1}}",
        &expect![[r#"
        spec.bootstrap.patienceSeconds: must be from 0 to 86400, not -1
        spec.bootstrap.degree: must be at least 2 with method smallWorld, because the connection to the next peer never goes far, not 1"#]],
    );
    check(
        "a",
        "{replicas: 4, bootstrap: {edges: [{from: a, to: b}]}}",
        &expect!["spec.bootstrap.edges: must not be given with a method other than explicit"],
    );
    check(
        "a",
        "{replicas: 4, bootstrap: {method: explicit}}",
        &expect!["spec.bootstrap.edges: must be given with method explicit"],
    );
    check(
        "a",
        "{replicas: 4, peers: [{weight: 3}, {name: go}, {weight: 0}], bootstrap: {method: explicit, edges: [
          {from: peers-0-0, to: peers-0-3}, {from: go-0, to: go-0}, {from: peers-0-01, to: peers-2-0}]}}",
        &expect![[r#"
            spec.bootstrap.edges[0].to: must be one of the peers (peers-0-0 to peers-0-2, go-0), not "peers-0-3"
            spec.bootstrap.edges[1].to: must be another peer than "go-0", who dials
            spec.bootstrap.edges[2].from: must be one of the peers (peers-0-0 to peers-0-2, go-0), not "peers-0-01"
            spec.bootstrap.edges[2].to: must be one of the peers (peers-0-0 to peers-0-2, go-0), not "peers-2-0""#]],
    );
}

#[test]
fn simulations_can_be_run_and_judged() {
    let right = "{scenario: blocks, criteria: [{metric: missingEdges, aggregation: last, comparison: '==', threshold: 0}],
        faults: [{atSeconds: 55, action: partition, count: 2}, {atSeconds: 50, action: churn, everySeconds: 2, durationSeconds: 10}]}";
    check_simulation(right, &expect![[""]]);
    check_simulation(
        "{scenario: identity, users: 0, runTimeSeconds: 0, throttleRequests: 0, image: '', imagePullPolicy: x}",
        &expect![[r#"
            spec.users: must be from 1 to 10000, not 0
            spec.runTimeSeconds: must be from 1 to 86400, not 0
            spec.throttleRequests: must be at least 1, not 0
            spec.image: must not be empty
            spec.imagePullPolicy: must be Always, IfNotPresent or Never, not "x""#]],
    );
    check_simulation(
        "{scenario: identity, otlpEndpoint: 'https://collector:4318'}",
        &expect![[
            r#"spec.otlpEndpoint: must be an http address such as http://collector:4318, not "https://collector:4318""#
        ]],
    );
    check_simulation("{scenario: identity, otlpEndpoint: 'http://collector:4318'}", &expect![""]);
    check_simulation(
        "{scenario: identity, criteria: [{name: a, metric: failures, aggregation: last, comparison: <, threshold: .inf},
          {name: a, metric: components, comparison: <, threshold: .nan}]}",
        &expect![[r#"
            spec.criteria[0].threshold: must be a finite number, not inf
            spec.criteria[0].aggregation: must not be last, because only readyPeers, missingEdges and components have a last value
            spec.criteria[1].threshold: must be a finite number, not NaN
            spec.criteria[1].name: must be another than "a", which spec.criteria[0] is called"#]],
    );
    check_simulation(
        "{scenario: identity, faults: [
          {atSeconds: 60, action: kill, durationSeconds: 5, latencyMilliseconds: 5, everySeconds: 5},
          {atSeconds: 50, action: pause, durationSeconds: 11, peers: [a, a, ''], count: 0},
          {atSeconds: -1, action: latency, latencyMilliseconds: 0, peers: []}]}",
        &expect![[r#"
            spec.faults[0].atSeconds: must be from 0 to less than the 60 seconds of spec.runTimeSeconds, not 60
            spec.faults[0].durationSeconds: must not be given: only pause, latency, partition or churn uses it
            spec.faults[0].latencyMilliseconds: must not be given: only latency uses it
            spec.faults[0].everySeconds: must not be given: only churn uses it
            spec.faults[1].durationSeconds: must be at most 10, because spec.runTimeSeconds is over then, not 11
            spec.faults[1].count: must be from 1 to 1000, not 0
            spec.faults[1].count: must not be given together with spec.faults[1].peers
            spec.faults[1].peers[1]: must be another than "a", which spec.faults[1].peers[0] is
            spec.faults[1].peers[2]: must not be empty
            spec.faults[2].atSeconds: must be from 0 to less than the 60 seconds of spec.runTimeSeconds, not -1
            spec.faults[2].latencyMilliseconds: must be from 1 to 60000, not 0
            spec.faults[2].peers: must not be empty if it is given"#]],
    );
    assert_eq!(simulation_name_problems(&"a".repeat(51)), vec![]);
    expect![[r#"metadata.name: must be lower-case letters, digits and '-', with no '-' at either end, and at most 51 characters long, not "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#]].assert_eq(&told(&simulation_name_problems(&"a".repeat(52))));
}
