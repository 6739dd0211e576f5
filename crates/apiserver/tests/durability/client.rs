//! As much of an HTTP client as these tests need: a connection per request, so that a killed server is noticed at once.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    token: Arc<str>,
    accept: &'static str,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        Client { address, token: token.into(), accept: "application/json" }
    }

    /// The same client, that wants its answers in this form.
    pub(crate) fn accepting(&self, accept: &'static str) -> Self {
        Client { accept, ..self.clone() }
    }

    /// The answer, or the failure to get one whole.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), Failure> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (status, bytes) = self.exchange(method, path, "application/json", body).await?;
        Ok((status, serde_json::from_slice(&bytes)?))
    }

    /// The answer to a body in any form.
    pub(crate) async fn send_as(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<(u16, Value), Failure> {
        let (status, bytes) = self.exchange(method, path, content_type, body).await?;
        Ok((status, serde_json::from_slice(&bytes)?))
    }

    /// The answer as text.
    pub(crate) async fn text(&self, path: &str) -> Result<(u16, String), Failure> {
        let (status, bytes) = self.exchange("GET", path, "application/json", Bytes::new()).await?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The answer of a watch that ends by itself.
    pub(crate) async fn lines(&self, path: &str) -> Result<(u16, Vec<Value>), Failure> {
        let (status, bytes) = self.exchange("GET", path, "application/json", Bytes::new()).await?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok((status, lines.map(serde_json::from_slice).collect::<Result<_, _>>()?))
    }

    /// The newest revision.
    pub(crate) async fn revision(&self) -> u64 {
        let (_, list) = self.send("GET", "/api/v1/namespaces?limit=1", None).await.expect("an answer");
        list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a revision")
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<(u16, Bytes), Failure> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("accept", self.accept)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", content_type)
            .body(Full::new(body.into()))?;
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        connection.abort();
        Ok((status, bytes))
    }
}
