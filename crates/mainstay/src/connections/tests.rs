use axum::body::Bytes;
use axum::routing::{get, post};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::*;

const SOON: Duration = Duration::from_millis(300);
const LATER: Duration = Duration::from_secs(30);

fn bounds() -> Bounds {
    Bounds { connections_max: 8, head: LATER, first: LATER, idle: LATER, request: LATER }
}

/// A server, which ends when the sender is dropped.
async fn start(bounds: Bounds) -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let read = async |body: Bytes| body.len().to_string();
    let router = Router::new().route("/", get("ok")).route("/read", post(read));
    let shutdown = async { drop(stopped.await) };
    tokio::spawn(serve(listener, None, router, bounds, shutdown, Duration::ZERO));
    (address, stop)
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Sends text, and reads until the other side has closed.
async fn say(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let closed = timeout(LATER, stream.read_to_end(&mut answer)).await;
    drop(closed.expect("closed in time"));
    String::from_utf8_lossy(&answer).into_owned()
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn silent_sockets_lock_nobody_out() {
    let (address, _stop) = start(bounds()).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(connect(address).await);
    }
    let answer = say(&mut connect(address).await, GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn who_sends_no_request_is_closed() {
    let (address, _stop) = start(Bounds { first: SOON, ..bounds() }).await;
    for beginning in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\na: ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let answer = say(&mut connect(address).await, beginning).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    let (address, _stop) = start(Bounds { head: SOON, ..bounds() }).await;
    say(&mut connect(address).await, "GET / HTTP/1.1\r\nhost: x\r\na: ").await;
}

#[tokio::test]
async fn who_has_nothing_more_to_ask_is_closed() {
    let (address, _stop) = start(Bounds { idle: SOON, ..bounds() }).await;
    let answer = say(&mut connect(address).await, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let (address, _stop) = start(Bounds { request: SOON, idle: SOON, ..bounds() }).await;
    let head = "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n123";
    let answer = say(&mut connect(address).await, head).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn who_is_at_work_keeps_its_place() {
    let connections =
        Arc::new(Connections { bounds: Bounds { connections_max: 2, ..bounds() }, open: Mutex::default() });
    let (busy, idle) = (connections.enter().unwrap(), connections.enter().unwrap());
    let request = busy.place.begin();
    let newcomer = connections.enter().unwrap();
    assert!(idle.place.read().lost && !busy.place.read().lost);
    let other = newcomer.place.begin();
    assert!(connections.enter().is_none());
    drop((request, other, idle));
    assert_eq!(connections.open().places.len(), 2);
    assert!(connections.enter().is_some());
}
