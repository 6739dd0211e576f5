//! What requests look like, and what answers mean, without sockets.

use expect_test::{Expect, expect};

use super::*;
use crate::rpc::dialect::{self, Answer, Ask};

fn answer(status: u16, body: &str) -> Answer {
    Answer { status, body: body.to_owned().into() }
}

fn written(asks: &[Ask]) -> String {
    let line = |ask: &Ask| {
        format!("{} {} {}", ask.method, ask.path, String::from_utf8_lossy(&ask.body)).trim_end().to_owned()
    };
    asks.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn told<T: std::fmt::Debug>(answer: Result<T, RpcError>) -> String {
    answer.map_or_else(|error| format!("{}: {error}", error.reason()), |answer| format!("{answer:?}"))
}

#[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_identity(adapter: Adapter, status: u16, body: &str, expected: Expect) {
    expected.assert_eq(&told(dialect::of(adapter).identity(&answer(status, body))));
}

#[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_connections(adapter: Adapter, status: u16, body: &str, expected: Expect) {
    expected.assert_eq(&told(dialect::of(adapter).connections(&answer(status, body))));
}

#[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_connected(adapter: Adapter, status: u16, body: &str, expected: Expect) {
    let addresses = ["/ip4/10.0.0.1/tcp/4001/p2p/Qm1".to_owned()];
    expected.assert_eq(&told(dialect::of(adapter).connected(&answer(status, body), &addresses)));
}

#[test]
fn kubo_is_asked_with_posts_and_arguments_in_the_query() {
    let kubo = dialect::of(Adapter::Kubo);
    let addresses = ["/ip4/10.0.0.1/tcp/1/p2p/Qm1".to_owned(), "/ip6/fd00::1/tcp/1/p2p/Qm1".to_owned()];
    expect![[r#"
        POST /api/v0/id
        POST /api/v0/swarm/peers
        POST /api/v0/swarm/connect?arg=%2Fip4%2F10%2E0%2E0%2E1%2Ftcp%2F1%2Fp2p%2FQm1&arg=%2Fip6%2Ffd00%3A%3A1%2Ftcp%2F1%2Fp2p%2FQm1"#]]
    .assert_eq(&written(&[kubo.ask_identity(), kubo.ask_connections(), kubo.ask_connect(&addresses)]));
}

#[test]
fn plain_peers_are_asked_with_documents() {
    let plain = dialect::of(Adapter::Json);
    expect![[r#"
        GET /identity
        GET /connections
        POST /connect {"addresses":["/ip4/10.0.0.1/tcp/1"]}"#]]
    .assert_eq(&written(&[
        plain.ask_identity(),
        plain.ask_connections(),
        plain.ask_connect(&["/ip4/10.0.0.1/tcp/1".to_owned()]),
    ]));
}

#[test]
fn who_a_peer_is_must_be_plausible() {
    let kubo = Adapter::Kubo;
    check_identity(
        kubo,
        200,
        r#"{"ID": "Qm1", "Addresses": ["/ip4/10.0.0.1/tcp/1/p2p/Qm1"], "Protocols": null}"#,
        expect![[r#"Identity { peer_id: "Qm1", addresses: ["/ip4/10.0.0.1/tcp/1/p2p/Qm1"] }"#]],
    );
    check_identity(
        kubo,
        200,
        r#"{"ID": "Qm1", "Addresses": null}"#,
        expect![[r#"Identity { peer_id: "Qm1", addresses: [] }"#]],
    );
    check_identity(
        kubo,
        200,
        r#"{"ID": "Qm1", "Addresses": ["/ip4/10.0.0.1/tcp/1/p2p/Qm2"]}"#,
        expect![
            "RpcGarbage: answered what cannot be understood: it is Qm1, but /ip4/10.0.0.1/tcp/1/p2p/Qm2 is of Qm2"
        ],
    );
    check_identity(
        kubo,
        200,
        r#"{"ID": "", "Addresses": []}"#,
        expect!["RpcGarbage: answered what cannot be understood: `` is no id of a peer"],
    );
    check_identity(
        kubo,
        200,
        r#"{"ID": 7}"#,
        expect![
            "RpcGarbage: answered what cannot be understood: ID: invalid type: integer `7`, expected a string at line 1 column 8, in `{\"ID\": 7}`"
        ],
    );
    check_identity(
        kubo,
        200,
        "<html>\n  <body>Welcome",
        expect![
            "RpcGarbage: answered what cannot be understood: expected value at line 1 column 1, in `<html> <body>Welcome`"
        ],
    );
    check_identity(
        kubo,
        500,
        r#"{"Message": "not now", "Code": 0, "Type": "error"}"#,
        expect!["RpcRefused: answered 500: not now"],
    );
    check_identity(
        kubo,
        405,
        "405 - Method Not Allowed\n",
        expect!["RpcRefused: answered 405: 405 - Method Not Allowed"],
    );
    check_identity(
        Adapter::Json,
        200,
        r#"{"peerId": "a", "addresses": []}"#,
        expect![[r#"Identity { peer_id: "a", addresses: [] }"#]],
    );
    check_identity(
        Adapter::Json,
        503,
        r#"{"message": "starting"}"#,
        expect!["RpcRefused: answered 503: starting"],
    );
}

#[test]
fn what_a_peer_says_at_length_is_not_repeated_at_length() {
    let error = dialect::of(Adapter::Kubo).identity(&answer(502, &"x".repeat(100_000))).unwrap_err();
    assert!(error.to_string().len() < 600, "{error}");
    let error = dialect::of(Adapter::Kubo).identity(&answer(200, &"ü ".repeat(100_000))).unwrap_err();
    assert!(error.to_string().len() < 1700, "{error}");
}

#[test]
fn connections_are_ids_each_once() {
    let kubo = Adapter::Kubo;
    check_connections(
        kubo,
        200,
        r#"{"Peers": [{"Addr": "/ip4/10.0.0.2/tcp/1", "Peer": "Qm2"}, {"Addr": "/ip4/10.0.0.1/tcp/1", "Peer": "Qm1"}, {"Addr": "", "Peer": "Qm1"}]}"#,
        expect![[r#"["Qm1", "Qm2"]"#]],
    );
    check_connections(kubo, 200, r#"{"Peers": null}"#, expect!["[]"]);
    check_connections(
        kubo,
        200,
        "{}",
        expect![
            "RpcGarbage: answered what cannot be understood: missing field `Peers` at line 1 column 2, in `{}`"
        ],
    );
    check_connections(
        kubo,
        200,
        r#"{"Peers": [{"Peer": "a/b", "Addr": ""}]}"#,
        expect!["RpcGarbage: answered what cannot be understood: `a/b` is no id of a peer"],
    );
    check_connections(Adapter::Json, 200, r#"{"peers": ["b", "a", "b"]}"#, expect![[r#"["a", "b"]"#]]);
    check_connections(
        Adapter::Json,
        200,
        r#"{"peers": ["b", 1]}"#,
        expect![
            "RpcGarbage: answered what cannot be understood: peers[1]: invalid type: integer `1`, expected a string at line 1 column 17, in `{\"peers\": [\"b\", 1]}`"
        ],
    );
}

#[test]
fn connected_is_who_was_asked_for() {
    let kubo = Adapter::Kubo;
    check_connected(kubo, 200, r#"{"Strings": ["connect Qm1 success"]}"#, expect!["()"]);
    check_connected(
        kubo,
        200,
        r#"{"Strings": ["connect Qm1 failure"]}"#,
        expect!["RpcRefused: answered 200: connect Qm1 failure"],
    );
    check_connected(
        kubo,
        200,
        r#"{"Strings": ["connect Qm2 success"]}"#,
        expect![
            "RpcGarbage: answered what cannot be understood: asked to connect to Qm1, it says `connect Qm2 success`"
        ],
    );
    check_connected(
        kubo,
        200,
        r#"{"Strings": []}"#,
        expect!["RpcGarbage: answered what cannot be understood: it says of nobody that they are connected"],
    );
    check_connected(
        kubo,
        500,
        r#"{"Message": "connect Qm1 failure: failed to dial", "Code": 0}"#,
        expect!["RpcRefused: answered 500: connect Qm1 failure: failed to dial"],
    );
    check_connected(Adapter::Json, 204, "", expect!["()"]);
    check_connected(Adapter::Json, 409, "no", expect!["RpcRefused: answered 409: no"]);
}

#[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_disturb(adapter: Adapter, disturbance: &Disturbance, answers: &[Answer], expected: Expect) {
    let next = dialect::of(adapter).disturb(disturbance, answers);
    expected.assert_eq(&next.map_or_else(|error| told(Err::<(), _>(error)), |asks| written(&asks)));
}

fn block(addresses: &[&str]) -> Disturbance {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Disturbance::Block { addresses, lasts: Duration::from_secs(15) }
}

#[test]
fn a_partition_has_a_time_if_the_peer_knows_how() {
    let (kubo, json) = (Adapter::Kubo, Adapter::Json);
    let block = block(&["10.0.0.1", "fd00::1"]);
    check_disturb(
        kubo,
        &block,
        &[],
        expect![[
            r#"POST /api/v0/mainstay/disturb {"action":"block","addresses":["10.0.0.1","fd00::1"],"milliseconds":15000}"#
        ]],
    );
    check_disturb(kubo, &block, &[answer(200, "{}")], expect![""]);
    check_disturb(kubo, &block, &[answer(500, "no")], expect!["RpcRefused: answered 500: no"]);
    check_disturb(
        json,
        &block,
        &[],
        expect![[
            r#"POST /disturb {"action":"block","addresses":["10.0.0.1","fd00::1"],"milliseconds":15000}"#
        ]],
    );
    let ending = |answers: &[Answer]| dialect::of(kubo).ending(&block, answers);
    assert_eq!(ending(&[answer(200, "{}")]), Ending::ByItself);
    assert_eq!(ending(&[answer(404, ""), answer(200, "{}")]), Ending::WhenUndone);
}

#[test]
fn kubo_itself_filters_first_and_then_ends_connections_that_there_are() {
    let kubo = Adapter::Kubo;
    let two = block(&["10.0.0.1", "fd00::1"]);
    let unknown = answer(404, "404 page not found");
    check_disturb(
        kubo,
        &two,
        std::slice::from_ref(&unknown),
        expect![[r#"
        POST /api/v0/swarm/filters/add?arg=%2Fip4%2F10%2E0%2E0%2E1%2Fipcidr%2F32&arg=%2Fip6%2Ffd00%3A%3A1%2Fipcidr%2F128
        POST /api/v0/swarm/peers"#]],
    );
    let filtered = answer(200, r#"{"Strings": ["/ip4/10.0.0.1/ipcidr/32"]}"#);
    let swarm = answer(
        200,
        r#"{"Peers": [{"Addr": "/ip4/10.0.0.2/tcp/1", "Peer": "Qm2"}, {"Addr": "/ip4/10.0.0.1/tcp/777", "Peer": "Qm1"}]}"#,
    );
    let after = |answers: &[&Answer], expected| {
        let answers: Vec<Answer> = answers.iter().map(|answer| (*answer).clone()).collect();
        check_disturb(kubo, &two, &answers, expected);
    };
    after(&[&unknown, &filtered, &swarm], expect!["POST /api/v0/swarm/disconnect?arg=%2Fp2p%2FQm1"]);
    after(&[&unknown, &filtered, &answer(200, r#"{"Peers": null}"#)], expect![""]);
    after(&[&unknown, &filtered, &swarm, &answer(200, "{}")], expect![""]);
    after(&[&unknown, &answer(500, "no"), &swarm], expect!["RpcRefused: answered 500: no"]);
    check_disturb(kubo, &block(&[]), &[], expect![""]);
}

#[test]
fn kubo_is_asked_in_requests_that_are_not_too_long() {
    let many: Vec<String> =
        (0..2000_u16).map(|number| format!("fd00:1111:2222:3333:4444:5555:6666:{number:x}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let unknown = answer(404, "404 page not found");
    let kubo = dialect::of(Adapter::Kubo);
    let asks = kubo.disturb(&block(&many), std::slice::from_ref(&unknown)).unwrap();
    assert_eq!(asks.len(), 9);
    assert!(asks.iter().all(|ask| ask.path.len() < 60_000));
    // After all of them, connections are ended.
    let mut answers = vec![unknown];
    answers.extend(std::iter::repeat_n(answer(200, r#"{"Strings": []}"#), 8));
    answers.push(answer(
        200,
        r#"{"Peers": [{"Addr": "/ip6/fd00:1111:2222:3333:4444:5555:6666:7/tcp/1", "Peer": "Qm7"}]}"#,
    ));
    assert_eq!(
        written(&kubo.disturb(&block(&many), &answers).unwrap()),
        "POST /api/v0/swarm/disconnect?arg=%2Fp2p%2FQm7"
    );
}

#[test]
fn disturbances_that_a_peer_does_not_know_are_unsupported() {
    let pause = Disturbance::Pause(Duration::from_secs(2));
    let latency = Disturbance::Latency { late: Duration::from_millis(50), lasts: Duration::from_secs(3) };
    let (kubo, json) = (Adapter::Kubo, Adapter::Json);
    let unknown = [answer(404, "404 page not found")];
    check_disturb(kubo, &pause, &[], expect!["POST /api/v0/mainstay/disturb?action=pause&milliseconds=2000"]);
    check_disturb(
        kubo,
        &latency,
        &[],
        expect!["POST /api/v0/mainstay/disturb?action=latency&milliseconds=3000&lateMilliseconds=50"],
    );
    check_disturb(kubo, &pause, &unknown, expect!["RpcUnsupported: cannot pause"]);
    check_disturb(kubo, &pause, &[answer(200, "")], expect![""]);
    check_disturb(json, &pause, &unknown, expect!["RpcUnsupported: cannot pause"]);
    check_disturb(
        json,
        &latency,
        &[],
        expect![[r#"POST /disturb {"action":"latency","lateMilliseconds":50,"milliseconds":3000}"#]],
    );
    let unblock = Disturbance::Unblock(["10.0.0.1".parse().unwrap()].into());
    check_disturb(
        json,
        &unblock,
        &[],
        expect![[r#"POST /disturb {"action":"unblock","addresses":["10.0.0.1"]}"#]],
    );
    check_disturb(
        kubo,
        &unblock,
        &[],
        expect![[r#"POST /api/v0/mainstay/disturb {"action":"unblock","addresses":["10.0.0.1"]}"#]],
    );
    check_disturb(kubo, &unblock, &[answer(200, "{}")], expect![""]);
    check_disturb(
        kubo,
        &unblock,
        &unknown,
        expect!["POST /api/v0/swarm/filters/rm?arg=%2Fip4%2F10%2E0%2E0%2E1%2Fipcidr%2F32"],
    );
}
