//! Clients that do not read their answers, or too slowly, and answers that break off. Connections are in memory, so that time
//! can be paused.

use super::*;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use tokio::time::Instant;

/// A connection of a client who has shown who it is. The task ends when the server has closed it.
fn open(server: &ApiServer, bounds: Bounds) -> (TokioIo<tokio::io::DuplexStream>, JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let connections = Connections::new(bounds);
    let entry = connections.enter().unwrap();
    entry.place.know();
    let way_in = WayIn { server: server.clone(), token: "t".into(), acceptor: None };
    (TokioIo::new(theirs), tokio::spawn(connection(ours, way_in, entry, bounds)))
}

fn request(path: &str) -> http::request::Builder {
    Request::get(path).header("authorization", "Bearer t").header("host", "x")
}

async fn open_http2(
    server: &ApiServer,
) -> (http2::SendRequest<Empty<Bytes>>, JoinHandle<()>, JoinHandle<()>) {
    let (stream, served) = open(server, Bounds::default());
    let mut client = http2::Builder::new(TokioExecutor::new());
    let (sender, driver) = client.initial_stream_window_size(65_535).handshake(stream).await.unwrap();
    let driver = tokio::spawn(async move { drop(driver.await) });
    (sender, driver, served)
}

const LIST: &str = "/api/v1/configmaps";

#[tokio::test(start_paused = true)]
async fn who_never_reads_over_http2_is_closed() {
    let server = ApiServer::builder().build().unwrap();
    fill(&server, 5, 800_000).await;
    for path in [LIST, "/api/v1/configmaps?watch=1", "/api/v1/namespaces/default/configmaps/m000"] {
        let (mut sender, _driver, served) = open_http2(&server).await;
        let unread = sender.send_request(request(path).body(Empty::new()).unwrap()).await.unwrap();
        assert_eq!(unread.status(), 200);
        let start = Instant::now();
        // Pings are answered all the time.
        served.await.unwrap();
        let minutes = start.elapsed().as_secs() / 60;
        assert_eq!(minutes, 2, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_reads_too_slowly_is_closed_and_others_are_not() {
    let server = ApiServer::builder().build().unwrap();
    fill(&server, 5, 800_000).await;
    for (pause, is_closed) in [(Duration::from_mins(1), true), (Duration::from_millis(100), false)] {
        let (mut sender, _driver, _served) = open_http2(&server).await;
        let answer = sender.send_request(request(LIST).body(Empty::new()).unwrap()).await.unwrap();
        let (mut body, mut bytes) = (answer.into_body(), 0);
        let end = loop {
            match body.frame().await {
                Some(Ok(frame)) => bytes += frame.into_data().unwrap().len(),
                end => break end,
            }
            tokio::time::sleep(pause).await;
        };
        assert_eq!(end.is_some(), is_closed, "{pause:?} {end:?} {bytes}");
        assert_eq!(bytes > 4_000_000, !is_closed, "{bytes}");
    }
}

#[tokio::test]
async fn heads_over_http2_are_read_up_to_a_size() {
    let server = ApiServer::builder().build().unwrap();
    let (mut sender, _driver, _served) = open_http2(&server).await;
    for (length, status) in [(40 << 10, 200), (80 << 10, 431)] {
        let long = request("/version").header("a", "y".repeat(length));
        let answer = sender.send_request(long.body(Empty::new()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), status);
    }
}

struct Boom;

impl crate::SubresourceProvider for Boom {
    fn serve(
        &self,
        request: crate::SubresourceRequest,
    ) -> futures::future::BoxFuture<'static, Response<crate::Body>> {
        let at_once = request.request.uri().query().is_none();
        Box::pin(async move {
            assert!(!at_once, "a defect");
            let pieces = futures::stream::iter([true, false]).map(|fine| {
                assert!(fine, "a defect further on");
                Bytes::from("a piece")
            });
            Response::new(crate::Body::stream(pieces))
        })
    }
}

use futures::StreamExt as _;

#[tokio::test]
async fn a_panic_is_the_end_of_one_answer() {
    let server = ApiServer::builder().subresource("", "serviceaccounts", "boom", Boom).build().unwrap();
    let (stream, served) = open(&server, Bounds::default());
    let (mut sender, driver) = http1::handshake(stream).await.unwrap();
    let driver = tokio::spawn(async move { drop(driver.await) });
    let boom = "/api/v1/namespaces/default/serviceaccounts/default/boom";
    for (path, status) in [(boom, StatusCode::INTERNAL_SERVER_ERROR), ("/api/v1/namespaces", StatusCode::OK)]
    {
        let answer = sender.send_request(request(path).body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), status);
        let body: Value =
            serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert!(body["kind"].is_string(), "{body}");
    }
    // An answer that has begun breaks off, so that nobody takes it for a whole one.
    let path = format!("{boom}?later");
    let whole = async {
        let answer = sender.send_request(request(&path).body(Empty::new()).unwrap()).await?;
        answer.into_body().collect().await
    };
    assert!(whole.await.is_err());
    served.await.unwrap();
    driver.await.unwrap();
}
