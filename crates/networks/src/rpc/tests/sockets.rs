//! Peers that answer as no peer should, on real sockets of this machine.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A peer that does this with every connection, once the request has arrived.
async fn peer<Serving>(at: &str, serve: impl Fn(TcpStream) -> Serving + Send + 'static) -> SocketAddr
where
    Serving: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((at, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await;
            if read.is_ok_and(|read| read > 0) {
                tokio::spawn(serve(stream));
            }
        }
    });
    address
}

/// What the operator learns of a peer that sends this, and then does nothing more.
async fn learned(sent: String) -> String {
    let address = peer("127.0.0.1", move |mut stream| {
        let sent = sent.clone();
        async move {
            let _ = stream.write_all(sent.as_bytes()).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
    })
    .await;
    told(&HttpRpc::new().identity(&endpoint(Adapter::Kubo, format!("http://{address}"))).await)
}

fn told(answer: &Result<Identity, RpcError>) -> String {
    match answer {
        Ok(identity) => identity.peer_id.clone(),
        Err(error) => error.to_string(),
    }
}

fn response(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const IDENTITY: &str = r#"{"ID": "Qm1", "Addresses": []}"#;

#[tokio::test]
async fn a_peer_is_asked_over_ipv4_and_ipv6() {
    for at in ["127.0.0.1", "::1"] {
        let address = peer(at, |mut stream| async move {
            let _ = stream.write_all(response(IDENTITY).as_bytes()).await;
        })
        .await;
        for url in [format!("http://{address}"), format!("http://{address}/")] {
            assert_eq!(told(&HttpRpc::new().identity(&endpoint(Adapter::Kubo, url)).await), "Qm1");
        }
    }
}

#[tokio::test]
async fn silence_is_waited_for_until_the_deadline() {
    assert_eq!(learned(String::new()).await, "no answer within 500 ms");
}

#[tokio::test]
async fn half_an_answer_and_then_silence_is_none() {
    assert_eq!(learned(response(IDENTITY)[..50].into()).await, "no answer within 500 ms");
    assert_eq!(learned("HTTP/1.1 200 OK\r\nconte".into()).await, "no answer within 500 ms");
}

#[tokio::test]
async fn half_an_answer_and_then_the_end_is_told_as_such() {
    let address = peer("127.0.0.1", |mut stream| async move {
        let _ = stream.write_all(&response(IDENTITY).as_bytes()[..50]).await;
    })
    .await;
    let told = told(&HttpRpc::new().identity(&endpoint(Adapter::Kubo, format!("http://{address}"))).await);
    assert!(told.starts_with("answered what cannot be understood: its answer breaks off: "), "{told}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let address = peer("127.0.0.1", |mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let spaces = vec![b' '; 65536];
        while stream.write_all(&spaces).await.is_ok() {}
    })
    .await;
    let url = format!("http://{address}");
    let slow = Endpoint { timeout: Duration::from_secs(30), ..endpoint(Adapter::Kubo, url) };
    assert_eq!(
        told(&HttpRpc::new().identity(&slow).await),
        "answered what cannot be understood: its answer is longer than 64 KiB"
    );
    // The same where the length is told before.
    let huge = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n{".to_owned();
    assert!(!learned(huge).await.contains("Qm1"));
}

#[tokio::test]
async fn what_is_not_even_http_is_told_as_garbage() {
    let told = learned("SSH-2.0-OpenSSH_9.9\r\n\r\n".into()).await;
    assert!(told.starts_with("answered what cannot be understood: "), "{told}");
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let rpc = HttpRpc::new();
    let told = told(&rpc.identity(&endpoint(Adapter::Json, format!("http://{address}"))).await);
    assert!(told.starts_with("cannot be reached: Connection refused"), "{told}");
    for url in ["", "not a url", "ftp://127.0.0.1", "http://"] {
        let answer = rpc.identity(&endpoint(Adapter::Kubo, url.into())).await;
        assert!(matches!(answer, Err(RpcError::Unreachable(_))), "{url}: {answer:?}");
    }
}

#[tokio::test]
async fn a_connection_that_was_kept_and_has_ended_is_no_failure() {
    // Each connection is good for one answer, though it promises more.
    let address = peer("127.0.0.1", |mut stream| async move {
        let _ = stream.write_all(response(IDENTITY).as_bytes()).await;
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
    })
    .await;
    let rpc = HttpRpc::new();
    for _ in 0..5 {
        assert_eq!(told(&rpc.identity(&endpoint(Adapter::Kubo, format!("http://{address}"))).await), "Qm1");
    }
}
