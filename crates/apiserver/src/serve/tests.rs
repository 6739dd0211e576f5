//! Clients that do nothing, or too little, on real sockets.

mod reading;

use super::*;
use serde_json::{Value, json};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_millis(300);
const LATER: Duration = Duration::from_secs(20);

fn bounds() -> Bounds {
    Bounds { connections_max: 8, handshake: LATER, stranger_idle: LATER, idle: LATER, stalled: LATER }
}

async fn serve_with(bounds: Bounds, secure: bool) -> (ApiServer, Served, Arc<Connections>) {
    let server = ApiServer::builder().build().unwrap();
    let connections = Connections::new(bounds);
    let credentials = Credentials::generate().unwrap();
    let acceptor = secure.then(|| acceptor(&credentials).unwrap());
    let scheme = if secure { "https" } else { "http" };
    let address = "127.0.0.1:0".parse().unwrap();
    let served = server.listen(address, credentials, scheme, acceptor, connections.clone()).await.unwrap();
    (server, served, connections)
}

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.address()).await.unwrap()
}

/// Sends text and reads what comes until the end of the head of an answer.
async fn say(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        match tokio::time::timeout(LATER, stream.read_u8()).await.expect("an answer in time") {
            Ok(byte) => answer.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&answer).lines().next().unwrap_or("closed").to_owned()
}

async fn encrypted(served: &Served, stream: TcpStream) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(served.credentials().ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
}

/// How long it took until the other side closed.
async fn closed(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(LATER, stream.read_to_end(&mut rest)).await.expect("closed in time");
    start.elapsed()
}

fn get(served: &Served, path: &str) -> String {
    let token = &served.credentials().token;
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n")
}

#[tokio::test]
async fn silent_sockets_lock_nobody_out() {
    for secure in [false, true] {
        let (_server, served, connections) = serve_with(bounds(), secure).await;
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(connect(&served).await);
        }
        let mut honest = connect(&served).await;
        let request = get(&served, "/api/v1/namespaces");
        let answer = if secure {
            say(&mut encrypted(&served, honest).await, &request).await
        } else {
            say(&mut honest, &request).await
        };
        assert_eq!(answer, "HTTP/1.1 200 OK");
        assert!(connections.count() <= 8);
    }
}

#[tokio::test]
async fn who_never_finishes_a_handshake_or_a_head_is_closed() {
    let (_server, served, _) = serve_with(Bounds { handshake: SOON, ..bounds() }, true).await;
    let mut stream = connect(&served).await;
    assert!(closed(&mut stream).await >= SOON / 2);
    let (_server, served, _) = serve_with(Bounds { stranger_idle: SOON, ..bounds() }, false).await;
    for beginning in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nA: ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut stream = connect(&served).await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        assert!(closed(&mut stream).await >= SOON / 2, "{beginning:?}");
    }
}

#[tokio::test]
async fn heads_are_read_up_to_a_size() {
    let (_server, served, _) = serve_with(bounds(), false).await;
    let url = format!("/version?x={}", "y".repeat(40 << 10));
    assert_eq!(say(&mut connect(&served).await, &get(&served, &url)).await, "HTTP/1.1 200 OK");
    // It never comes to its end, and is not kept until it does.
    let head = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}", "y".repeat(HEAD_BYTES_MAX as usize));
    let answer = say(&mut connect(&served).await, &head).await;
    assert_eq!(answer, "HTTP/1.1 431 Request Header Fields Too Large");
}

#[tokio::test]
async fn a_watch_is_no_idling() {
    let bounds = Bounds { idle: SOON, stranger_idle: SOON, ..bounds() };
    let (_server, served, connections) = serve_with(bounds, false).await;
    let mut watching = connect(&served).await;
    let path = "/api/v1/namespaces?watch=1&resourceVersion=0&timeoutSeconds=2";
    assert_eq!(say(&mut watching, &get(&served, path)).await, "HTTP/1.1 200 OK");
    assert!(closed(&mut watching).await >= Duration::from_millis(1500));
    assert_eq!(connections.count(), 0);
}

#[tokio::test]
async fn bodies_of_strangers_are_not_read() {
    let (_server, served, _) = serve_with(bounds(), false).await;
    for (path, answer) in
        [("/version", "405"), ("/healthz", "405"), ("/api/v1/namespaces", "401"), ("/x", "401")]
    {
        let mut stream = connect(&served).await;
        // Three megabytes are announced, and none of them sent.
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
        let said = say(&mut stream, &head).await;
        assert!(said.contains(answer), "{path}: {said}");
    }
}

/// Makes this many config maps, of this many bytes each.
async fn fill(server: &ApiServer, count: usize, bytes: usize) {
    for index in 0..count {
        let object = json!({"metadata": {"name": format!("m{index:03}")}, "data": {"k": "x".repeat(bytes), "l": "a\nb"}});
        let request =
            Request::post("/api/v1/namespaces/default/configmaps").header("content-type", "application/json");
        let request =
            request.body(http_body_util::Full::new(bytes::Bytes::from(object.to_string()))).unwrap();
        assert_eq!(server.handle(request).await.status(), 201);
    }
}

#[tokio::test]
async fn who_stops_reading_is_closed() {
    let (server, served, connections) = serve_with(Bounds { stalled: SOON, ..bounds() }, false).await;
    fill(&server, 40, 800_000).await;
    let mut stream = connect(&served).await;
    assert_eq!(say(&mut stream, &get(&served, "/api/v1/configmaps")).await, "HTTP/1.1 200 OK");
    let start = Instant::now();
    while connections.count() > 0 {
        assert!(start.elapsed() < LATER, "the connection is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stream);
}

#[tokio::test]
async fn a_long_list_comes_whole_in_pieces() {
    use http_body_util::BodyExt as _;
    let server = ApiServer::builder().build().unwrap();
    fill(&server, 500, 2_000).await;
    for (accept, agent, items) in [
        ("application/json", "go", "items"),
        ("application/json", "curl", "items"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", "go", "rows"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", "curl", "rows"),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "go", "items"),
        ("application/yaml", "go", "items"),
        ("application/yaml;as=Table;g=meta.k8s.io;v=v1", "go", "rows"),
        ("application/yaml;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "go", "items"),
    ] {
        let request = Request::get("/api/v1/namespaces/default/configmaps")
            .header("accept", accept)
            .header("user-agent", agent);
        let response =
            server.handle(request.body(http_body_util::Full::new(bytes::Bytes::new())).unwrap()).await;
        let mut body = response.into_body();
        let (mut whole, mut longest) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            longest = longest.max(data.len());
            whole.extend_from_slice(&data);
        }
        let is_yaml = accept.starts_with("application/yaml");
        let value: Value = if is_yaml {
            serde_saphyr::from_slice(&whole).unwrap()
        } else {
            serde_json::from_slice(&whole).unwrap()
        };
        // The certificates of the namespace are there too.
        assert_eq!(value[items].as_array().unwrap().len(), 501, "{accept} {agent}");
        assert!(longest < 100_000, "{accept} {agent}: {longest}");
        if is_yaml {
            assert_eq!(
                String::from_utf8(whole).unwrap(),
                serde_saphyr::to_string(&value).unwrap(),
                "{accept}"
            );
            continue;
        }
        let start: String = String::from_utf8_lossy(&whole[..200]).split_whitespace().collect();
        assert!(start.starts_with("{\"kind\":\""), "{start}");
        if agent == "curl" {
            assert_eq!(whole, serde_json::to_vec_pretty(&Ordered(&value)).unwrap(), "{accept}");
        }
    }
}

use crate::respond::order::KindFirst as Ordered;
