//! One exchange over HTTP, with a deadline and an answer that is not too long.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::rpc::RpcError;

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(15);

/// Makes requests. Connections are kept and shared between clones.
#[derive(Debug, Clone)]
pub(crate) struct Fetch(Client<HttpConnector, Full<Bytes>>);

/// What is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pub(crate) content_type: String,
    pub(crate) bytes: Bytes,
}

impl Default for Fetch {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        Self(client.build(connector))
    }
}

impl Fetch {
    /// Sends a request, and reads an answer of at most so many bytes. Any status is an answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &str,
        body: Body,
        (timeout, bytes_max): (Duration, usize),
    ) -> Result<(StatusCode, Bytes), RpcError> {
        let mut request = Request::builder().method(method).uri(url);
        if !body.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, body.content_type);
        }
        let request = request
            .body(Full::new(body.bytes))
            .map_err(|error| RpcError::Unreachable(format!("{url}: {error}")))?;
        let exchange = async {
            let response = self.0.request(request).await.map_err(|error| {
                let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
                RpcError::Unreachable(format!("{error}{source}"))
            })?;
            let status = response.status();
            match Limited::new(response.into_body(), bytes_max).collect().await {
                Ok(body) => Ok((status, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => {
                    Err(RpcError::Garbage(format!("more than {bytes_max} bytes")))
                }
                Err(error) => Err(RpcError::Unreachable(error.to_string())),
            }
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(RpcError::Timeout(timeout)))
    }

    /// [`ask`](Self::ask), where everything but success is a failure.
    pub(crate) async fn ask_well(
        &self,
        method: Method,
        url: &str,
        body: Body,
        limits: (Duration, usize),
    ) -> Result<Bytes, RpcError> {
        let (status, bytes) = self.ask(method, url, body, limits).await?;
        if status.is_success() {
            return Ok(bytes);
        }
        let message = String::from_utf8_lossy(&bytes).chars().take(200).collect();
        Err(RpcError::Refused { status: status.as_u16(), message })
    }
}

impl Body {
    pub(crate) fn json(value: &impl serde::Serialize) -> Self {
        // What is sent are types of this crate, which all serialise.
        let bytes = serde_json::to_vec(value).unwrap_or_default().into();
        Self { content_type: "application/json".into(), bytes }
    }
}
