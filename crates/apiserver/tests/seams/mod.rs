//! What whoever embeds the server can put in its place or stand between it and its clients: faults, the delivery of
//! watches, time, identity, subresources, credentials, and the bounds of its memory; who calls webhooks, and who sees
//! every change.
//!
//! Nothing here waits for real time: where time has to pass, tokio's clock is paused and moves by itself.

mod controllers;
mod delivery;
mod documents;
mod faults;
mod growth;
mod history;
mod loopback;
mod many;
mod observed;
mod preconditions;
mod provided;
mod served;
mod time;
mod transported;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use mainstay_apiserver::{ApiServer, Body};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A config map with one entry.
fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

/// A request with a JSON body, or none for `null`.
fn request(method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Full::new(body))
        .unwrap()
}

/// The bytes of a whole answer.
async fn bytes(response: Response<Body>) -> (StatusCode, Bytes) {
    let (head, body) = response.into_parts();
    (head.status, body.collect().await.unwrap().to_bytes())
}

/// Sends a request and reads the whole answer.
async fn send(server: &ApiServer, method: &str, path: &str, body: Value) -> (u16, Value) {
    let (status, body) = bytes(server.handle(request(method, path, &body)).await).await;
    (status.as_u16(), serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
}

/// Sends a request that succeeds.
async fn succeed(server: &ApiServer, method: &str, path: &str, body: Value) -> Value {
    let (code, answer) = send(server, method, path, body).await;
    assert!((200..300).contains(&code), "{method} {path}: {code} {answer}");
    answer
}

/// A watch, event by event.
struct Events {
    body: http_body_util::BodyDataStream<Body>,
    buffer: Vec<u8>,
}

impl Events {
    async fn of(server: &ApiServer, path: &str) -> Self {
        let response = server.handle(request("GET", path, &Value::Null)).await;
        assert_eq!(response.status(), 200, "{path}");
        Self { body: response.into_body().into_data_stream(), buffer: Vec::new() }
    }

    /// The next event, or none if the stream has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            self.buffer.extend_from_slice(&self.body.next().await?.unwrap());
        }
    }

    /// `TYPE name=value` of the next event, or why there is none.
    async fn line(&mut self) -> String {
        match self.next().await {
            None => "(end)".into(),
            Some(event) => describe(&event),
        }
    }

    /// As [`line`](Self::line), of what is there already.
    fn line_now(&mut self) -> Option<String> {
        self.line().now_or_never()
    }
}

/// `TYPE name=value` of an event on a config map.
fn describe(event: &Value) -> String {
    let (kind, object) = (event["type"].as_str().unwrap(), &event["object"]);
    match kind {
        "ERROR" => format!("ERROR {} {}", object["code"], object["reason"].as_str().unwrap()),
        "BOOKMARK" => kind.to_owned(),
        _ => {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            format!("{kind} {}={}", text("/metadata/name"), text("/data/key"))
        }
    }
}

/// A watch of the config maps of the default namespace but the one that is always there.
fn watch_path(parameters: &str) -> String {
    format!("{MAPS}?watch=true&fieldSelector=metadata.name!=kube-root-ca.crt{parameters}")
}

/// The newest revision, from where a watch sees only what comes.
fn now(server: &ApiServer) -> String {
    format!("&resourceVersion={}", server.revision())
}
