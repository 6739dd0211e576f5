use super::*;
use expect_test::expect;

fn peer() -> Peer {
    Peer {
        tag: "ceramic".into(),
        name: "peers-0-1".into(),
        peer_id: "Qm1".into(),
        adapter: Adapter::Kubo,
        rpc_addr: "http://127.0.0.2:5001".into(),
        p2p_addrs: vec!["/ip4/127.0.0.2/tcp/4001/p2p/Qm1".into()],
        others: BTreeMap::from([("ceramicAddr".into(), "http://127.0.0.2:7007".into())]),
    }
}

#[test]
fn what_is_written_can_be_read() {
    let plain = Peer { adapter: Adapter::Json, tag: "node".into(), others: BTreeMap::new(), ..peer() };
    let peers = vec![peer(), plain];
    assert_eq!(read(&write(&peers)).unwrap(), peers);
    assert_eq!(read(&write(&[])).unwrap(), vec![]);
    expect![[r#"
        [{"ceramic":{"name":"peers-0-1","peerId":"Qm1","ipfsRpcAddr":"http://127.0.0.2:5001","p2pAddrs":["/ip4/127.0.0.2/tcp/4001/p2p/Qm1"],"ceramicAddr":"http://127.0.0.2:7007"}},
         {"node":{"name":"peers-0-1","peerId":"Qm1","rpcAddr":"http://127.0.0.2:5001","p2pAddrs":["/ip4/127.0.0.2/tcp/4001/p2p/Qm1"]}}]"#]]
    .assert_eq(&write(&peers));
}

#[test]
fn peers_without_names_are_called_by_their_ids() {
    let text = r#"[{"ipfs": {"peerId": "Qm7", "ipfsRpcAddr": "http://cas:5101", "p2pAddrs": []}}]"#;
    let peers = read(text).unwrap();
    assert_eq!((peers[0].name.as_str(), peers[0].tag.as_str()), ("Qm7", "ipfs"));
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let told = |text: &str| {
        let error = read(text).unwrap_err();
        format!("{error}: {}", std::error::Error::source(&error).unwrap())
    };
    expect!["cannot read peers.json at .: invalid type: map, expected a sequence at line 1 column 0"]
        .assert_eq(&told("{}"));
    for text in [r#"[{"a": {}, "b": {}}]"#, "[{}]", r#"[{"ipfs": {"peerId": 7}}]"#, "[] []", "", "null"] {
        assert!(told(text).starts_with("cannot read peers.json at "), "{text}");
    }
}
