//! The RPC as programs use it that are none of ours.

use super::*;

/// The answer to a request: status, and body.
async fn ask(peer: &Running, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(peer.rpc).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: peer\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    format!("{status} {body}").replace(&peer.peer_id, "ID").replace(&peer.p2p.port().to_string(), "PORT")
}

async fn check(peer: &Running, path: &str, expected: Expect) {
    expected.assert_eq(&ask(peer, "POST", path, "", "").await);
}

async fn put(peer: &Running, content: &str) -> String {
    let body = format!("--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n{content}\r\n--x--\r\n");
    ask(peer, "POST", "/api/v0/block/put", "Content-Type: multipart/form-data; boundary=x\r\n", &body).await
}

#[tokio::test]
async fn answers_have_the_shape_of_kubos() {
    let a = peer("a", "127.0.1.1").await;
    check(&a, "/api/v0/id", expect![[r#"200 {"Addresses":["/ip4/127.0.1.1/tcp/PORT/p2p/ID"],"AgentVersion":"mainstay/0.1.0","ID":"ID","Protocols":null,"PublicKey":""}"#]]).await;
    check(
        &a,
        "/api/v0/version",
        expect![[r#"200 {"Commit":"","Golang":"","Repo":"","System":"","Version":"0.1.0"}"#]],
    )
    .await;
    check(&a, "/api/v0/swarm/peers", expect![[r#"200 {"Peers":null}"#]]).await;
    check(&a, "/api/v0/swarm/connect", expect![[r#"400 argument "address" is required"#]]).await;
    check(&a, "/api/v0/swarm/connect?arg=nonsense", expect![[r#"500 {"Code":0,"Message":"failed to parse multiaddr \"nonsense\": must begin with /","Type":"error"}"#]]).await;
    check(
        &a,
        "/api/v0/swarm/disconnect?arg=/p2p/Qm1",
        expect![[r#"200 {"Strings":["disconnect Qm1 failure: not connected"]}"#]],
    )
    .await;
    check(&a, "/api/v0/swarm/filters", expect![[r#"200 {"Strings":null}"#]]).await;
    check(
        &a,
        "/api/v0/swarm/filters/add?arg=/ip4/10.0.0.0/ipcidr/8&arg=%2Fip6%2Ffd00%3A%3A%2Fipcidr%2F8",
        expect![[r#"200 {"Strings":["/ip4/10.0.0.0/ipcidr/8","/ip6/fd00::/ipcidr/8"]}"#]],
    )
    .await;
    check(
        &a,
        "/api/v0/swarm/filters/rm?arg=/ip4/10.0.0.0/ipcidr/8",
        expect![[r#"200 {"Strings":["/ip4/10.0.0.0/ipcidr/8"]}"#]],
    )
    .await;
    check(&a, "/api/v0/swarm/filters", expect![[r#"200 {"Strings":["/ip6/fd00::/ipcidr/8"]}"#]]).await;
    check(
        &a,
        "/api/v0/swarm/filters/add?arg=10.0.0.1",
        expect![[r#"500 {"Code":0,"Message":"invalid multiaddr-filter format","Type":"error"}"#]],
    )
    .await;
    check(&a, "/api/v0/mainstay/disturb?action=stop", expect!["400 action is neither `pause` nor `latency`"])
        .await;
    check(
        &a,
        "/api/v0/mainstay/disturb?action=pause&milliseconds=-1",
        expect!["400 milliseconds is not a number from 0 to 3600000"],
    )
    .await;
    assert_eq!(ask(&a, "GET", "/api/v0/id", "", "").await, "405 405 - Method Not Allowed\n");
    assert_eq!(ask(&a, "POST", "/api/v0/pin/ls", "", "").await, "404 404 page not found\n");
    assert_eq!(ask(&a, "GET", "/healthz", "", "").await, "200 ok\n");
}

#[tokio::test]
async fn blocks_are_found_at_the_peers_that_one_is_connected_to() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    let name = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e";
    assert_eq!(put(&a, "hello world").await, format!("200 {{\"Key\":\"{name}\",\"Size\":11}}\n"));
    let get = format!("/api/v0/block/get?arg={name}");
    check(&a, &get, expect!["200 hello world"]).await;
    check(&b, &get, expect![[r#"500 {"Code":0,"Message":"block was not found: ipld: could not find bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e","Type":"error"}"#]]).await;
    connect(&b, &a).await.unwrap();
    check(&b, &get, expect!["200 hello world"]).await;
    // It is kept, whatever becomes of where it came from.
    a.stop().await;
    check(
        &b,
        &format!("/api/v0/block/stat?arg={name}"),
        expect![[r#"200 {"Key":"bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e","Size":11}"#]],
    )
    .await;
    check(&b, "/api/v0/block/put", expect!["400 file argument 'data' is required"]).await;
    expect![[r#"
        200 # HELP mainstay_peer_connections Peers that it is connected to.
        # TYPE mainstay_peer_connections gauge
        mainstay_peer_connections 0
        # HELP mainstay_peer_blocks Blocks that it keeps.
        # TYPE mainstay_peer_blocks gauge
        mainstay_peer_blocks 1
        # EOF
    "#]]
    .assert_eq(&ask(&b, "GET", "/metrics", "", "").await);
}

#[tokio::test]
async fn the_largest_block_reaches_others_and_a_larger_one_is_refused() {
    let (a, b) = (peer("a", "127.0.1.1").await, peer("b", "127.0.1.2").await);
    connect(&a, &b).await.unwrap();
    let put = put(&a, &"x".repeat(wire::BLOCK_MAX)).await;
    let name = put.split('"').nth(3).unwrap();
    let got = ask(&b, "POST", &format!("/api/v0/block/get?arg={name}"), "", "").await;
    assert_eq!(got.len(), "200 ".len() + wire::BLOCK_MAX);
    let larger = super::api::put(&a, &"x".repeat(wire::BLOCK_MAX + 1)).await;
    assert!(larger.starts_with("500 ") && larger.contains("produced block is over"), "{larger}");
}
