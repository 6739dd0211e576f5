//! Subresources that whoever embeds the server provides.

use crate::seams::{bytes, request, send, succeed};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::Response;
use http_body_util::BodyExt as _;
use mainstay_apiserver::{ApiServer, Body, SubresourceProvider, SubresourceRequest};
use serde_json::{Value, json};
use std::sync::Mutex;
use tokio::sync::mpsc;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn with_pod(server: &ApiServer) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "m"}]},
    });
    succeed(server, "POST", PODS, pod).await;
}

/// Logs that come while they are read.
struct Logs(Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>);

impl SubresourceProvider for Logs {
    fn serve(&self, request: SubresourceRequest) -> BoxFuture<'static, Response<Body>> {
        assert_eq!((request.namespace.as_str(), request.name.as_str()), ("default", "a"));
        assert_eq!(request.object["spec"]["containers"][0]["name"], "main");
        assert_eq!(request.request.uri().query(), Some("follow=true"));
        assert_eq!(request.user.name, "system:admin");
        let lines = self.0.lock().unwrap().take().unwrap();
        let lines = futures::stream::unfold(lines, |mut lines| async { Some((lines.recv().await?, lines)) });
        let response = Response::builder().header("content-type", "text/plain");
        async move { response.body(Body::stream(lines)).unwrap() }.boxed()
    }
}

#[tokio::test]
async fn provided_logs_are_streamed_as_they_come() {
    let (lines, logs) = mpsc::unbounded_channel();
    let server =
        ApiServer::builder().subresource("", "pods", "log", Logs(Mutex::new(Some(logs)))).build().unwrap();
    with_pod(&server).await;
    let response = server.handle(request("GET", &format!("{PODS}/a/log?follow=true"), &Value::Null)).await;
    assert_eq!(response.headers()["content-type"], "text/plain");
    let mut body = response.into_body().into_data_stream();
    assert!(body.next().now_or_never().is_none(), "nothing was logged yet");
    for line in ["one\n", "two\n"] {
        lines.send(line.into()).unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), line);
    }
    drop(lines);
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn provider_is_asked_only_about_objects_that_exist() {
    let server = ApiServer::builder().subresource("", "pods", "log", Logs(Mutex::new(None))).build().unwrap();
    let (code, status) = send(&server, "GET", &format!("{PODS}/absent/log"), Value::Null).await;
    assert_eq!((code, &status["message"]), (404, &json!("pods \"absent\" not found")));
}

#[tokio::test]
async fn what_nobody_provides_is_refused_by_name() {
    let server = ApiServer::builder().build().unwrap();
    with_pod(&server).await;
    for (method, part) in
        [("GET", "log"), ("POST", "exec"), ("GET", "portforward"), ("GET", "attach"), ("GET", "proxy")]
    {
        let response = server.handle(request(method, &format!("{PODS}/a/{part}"), &Value::Null)).await;
        let (code, body) = bytes(response).await;
        let status: Value = serde_json::from_slice(&body).unwrap();
        let message = status["message"].as_str().unwrap();
        assert_eq!((code.as_u16(), status["kind"].as_str()), (501, Some("Status")), "{part}: {status}");
        assert!(message.contains(&format!("pods/{part}")), "{message}");
    }
}
