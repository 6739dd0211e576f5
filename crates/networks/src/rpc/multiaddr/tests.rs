use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

#[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check(text: &str, expected: Expect) {
    let told = match text.parse::<Multiaddr>() {
        Ok(address) => format!(
            "{:?} {:?} {:?}{}{}",
            address.host(),
            address.port(),
            address.peer_id(),
            if address.is_relayed() { " relayed" } else { "" },
            address.socket().map(|socket| format!(" {socket}")).unwrap_or_default(),
        ),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&told);
}

#[test]
fn addresses_are_read() {
    check(
        "/ip4/10.0.0.1/tcp/4001/p2p/Qm1",
        expect![[r#"Ip(10.0.0.1) Some(Tcp(4001)) Some("Qm1") 10.0.0.1:4001"#]],
    );
    check("/ip6/fd00::1/tcp/4001", expect!["Ip(fd00::1) Some(Tcp(4001)) None [fd00::1]:4001"]);
    check("/ip6zone/eth0/ip6/fe80::1/udp/7", expect!["Ip(fe80::1) Some(Udp(7)) None"]);
    check(
        "/dns4/example.test/tcp/443/wss/ipfs/Qm1/",
        expect![[r#"Name("example.test") Some(Tcp(443)) Some("Qm1")"#]],
    );
    check(
        "/ip4/10.0.0.1/udp/4001/quic-v1/webtransport/certhash/uEi/certhash/uEj/p2p/Qm1",
        expect![[r#"Ip(10.0.0.1) Some(Udp(4001)) Some("Qm1")"#]],
    );
    check("/ip4/10.0.0.1/tcp/4001/ws", expect!["Ip(10.0.0.1) Some(Tcp(4001)) None"]);
    check(
        "/ip4/10.0.0.1/tcp/4001/p2p/QmR/p2p-circuit/p2p/Qm1",
        expect![[r#"Ip(10.0.0.1) Some(Tcp(4001)) Some("Qm1") relayed"#]],
    );
    check("/ip4/10.0.0.1/tcp/4001/p2p/QmR/p2p-circuit", expect!["Ip(10.0.0.1) Some(Tcp(4001)) None relayed"]);
}

#[test]
fn what_is_no_address_is_refused_with_the_reason() {
    check("", expect!["`` is no address of a peer: it must begin with /"]);
    check("/", expect!["`/` is no address of a peer: it begins with neither an IP address nor a name"]);
    check("10.0.0.1:4001", expect!["`10.0.0.1:4001` is no address of a peer: it must begin with /"]);
    check(
        "/ip4/10.0.0.256/tcp/1",
        expect!["`/ip4/10.0.0.256/tcp/1` is no address of a peer: it has no IPv4 address"],
    );
    check("/ip6/10.0.0.1", expect!["`/ip6/10.0.0.1` is no address of a peer: it has no IPv6 address"]);
    check(
        "/ip4/10.0.0.1/tcp/70000",
        expect!["`/ip4/10.0.0.1/tcp/70000` is no address of a peer: its port is no number"],
    );
    check(
        "/ip4/10.0.0.1/p2p/",
        expect!["`/ip4/10.0.0.1/p2p/` is no address of a peer: it has no id of a peer"],
    );
    check(
        "/ip4/10.0.0.1/tcp/1/tcp/2",
        expect!["`/ip4/10.0.0.1/tcp/1/tcp/2` is no address of a peer: it has a part that is not known"],
    );
    check(
        "/ip4/10.0.0.1/onion/x",
        expect!["`/ip4/10.0.0.1/onion/x` is no address of a peer: it has a part that is not known"],
    );
    check(
        "/ip4/10.0.0.1/tcp/1?a",
        expect!["`/ip4/10.0.0.1/tcp/1?a` is no address of a peer: its port is no number"],
    );
    check("/dns//tcp/1", expect!["`/dns//tcp/1` is no address of a peer: it has no name"]);
    check(
        "/ip4/10.0.0.1 /tcp/1",
        expect!["`/ip4/10.0.0.1 /tcp/1` is no address of a peer: it has characters that no address has"],
    );
    assert!(format!("/dns/{}", "a".repeat(2000)).parse::<Multiaddr>().is_err());
}

#[test]
fn only_addresses_that_others_reach_are_published() {
    let told = [
        "/ip4/127.0.0.1/tcp/4001",
        "/ip4/10.0.0.1/tcp/4001",
        "/ip4/10.0.0.1/tcp/4001/p2p/Qm1",
        "/ip4/127.0.0.2/tcp/4001/p2p/Qm1",
        "/ip6/::1/tcp/4001",
        "/ip6/fd00::1/tcp/4001",
        "/ip4/0.0.0.0/tcp/4001",
        "/ip4/10.0.0.9/tcp/4001/p2p/QmR/p2p-circuit/p2p/Qm1",
        "/dns4/peer/tcp/4001",
        "nonsense",
    ];
    let identity = Identity { peer_id: "Qm1".into(), addresses: told.map(str::to_owned).to_vec() };
    let mut announced = Announced::only("127.0.0.2".parse().unwrap());
    expect!["/ip4/127.0.0.2/tcp/4001/p2p/Qm1"].assert_eq(&published(&identity, &announced).join("\n"));
    announced.own.push("fd00::1".parse().unwrap());
    expect![[r#"
        /ip4/127.0.0.2/tcp/4001/p2p/Qm1
        /ip6/fd00::1/tcp/4001/p2p/Qm1"#]]
    .assert_eq(&published(&identity, &announced).join("\n"));
    announced.others = true;
    expect![[r#"
        /ip4/10.0.0.1/tcp/4001/p2p/Qm1
        /ip4/127.0.0.2/tcp/4001/p2p/Qm1
        /ip6/fd00::1/tcp/4001/p2p/Qm1"#]]
    .assert_eq(&published(&identity, &announced).join("\n"));
}

#[test]
fn few_and_short_addresses_are_published_whatever_a_peer_announces() {
    let own = Announced::only("10.0.0.1".parse().unwrap());
    let long = format!("/ip4/10.0.0.1/udp/4001/webrtc-direct/certhash/{}", "u".repeat(PUBLISHED_BYTES_MAX));
    let mut addresses: Vec<String> =
        (1..=30_000).map(|port| format!("/ip4/10.0.0.1/udp/{port}/quic-v1")).collect();
    addresses.extend([long, "/ip4/10.0.0.1/tcp/4001/ws".into(), "/ip4/10.0.0.1/tcp/4001".into()]);
    let mut identity = Identity { peer_id: "Qm1".into(), addresses };
    let first = published(&identity, &own);
    assert_eq!(first.len(), PUBLISHED_MAX);
    assert!(first.contains(&"/ip4/10.0.0.1/tcp/4001/p2p/Qm1".to_owned()), "{first:?}");
    assert!(first.iter().all(|address| address.len() <= PUBLISHED_BYTES_MAX));
    assert_eq!(preferred(&first).unwrap(), "/ip4/10.0.0.1/tcp/4001/p2p/Qm1");
    identity.addresses.reverse();
    assert_eq!(published(&identity, &own), first);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(/?[a-z0-9.:-]{0,12}){0,8}|.{0,40}") {
        let _ = text.parse::<Multiaddr>();
    }

    #[test]
    fn what_is_printed_is_read_again(ip: IpAddr, port: u16, id in "[A-Za-z0-9]{1,60}") {
        let address: Multiaddr = format!("{}/tcp/{port}", of_ip(ip)).parse().unwrap();
        let address = address.of_peer(&id);
        prop_assert_eq!(address.to_string().parse::<Multiaddr>().unwrap(), address.clone());
        prop_assert_eq!(address.socket(), Some(SocketAddr::new(ip, port)));
        prop_assert_eq!(address.clone().of_peer("other"), address);
    }
}
