//! Exchanges over HTTP: with peers, managers and collectors. All that is said to any of them may be said twice.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::rpc::RpcError;

/// How long an idle connection is kept. Longer than peers are usually observed apart would keep what has long been restarted.
const IDLE: Duration = Duration::from_secs(15);
/// The longest text of a refusal that is repeated.
const QUOTED_MAX: usize = 200;

/// Makes requests. Connections are kept and shared between clones.
#[derive(Debug, Clone)]
pub(crate) struct Fetch(Client<HttpConnector, Full<Bytes>>);

/// What is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pub(crate) content_type: String,
    pub(crate) bytes: Bytes,
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
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
    /// Sends a request, and reads an answer of at most so many bytes; any status is an answer. Tried again on a new connection if one
    /// that was kept turns out to be gone. For as long as it takes: whoever asks has a deadline.
    pub(crate) async fn exchange(
        &self,
        method: &Method,
        url: &str,
        body: &Body,
        bytes_max: usize,
    ) -> Result<Answer, RpcError> {
        match self.exchange_once(method, url, body, bytes_max).await {
            Err(Failed { again: true, .. }) => self.exchange_once(method, url, body, bytes_max).await,
            other => other,
        }
        .map_err(|failed| failed.error)
    }

    async fn exchange_once(
        &self,
        method: &Method,
        url: &str,
        body: &Body,
        bytes_max: usize,
    ) -> Result<Answer, Failed> {
        let uri: Uri = url.parse().map_err(|error| Failed::at(format!("{url}: {error}")))?;
        let mut request = Request::builder().method(method).uri(uri);
        if !body.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, &body.content_type);
        }
        let request = request
            .body(Full::new(body.bytes.clone()))
            .map_err(|error| Failed::at(format!("{url}: {error}")))?;
        let response = self.0.request(request).await.map_err(|error| Failed::asking(&error))?;
        let status = response.status().as_u16();
        match Limited::new(response.into_body(), bytes_max).collect().await {
            Ok(body) => Ok(Answer { status, body: body.to_bytes() }),
            Err(error) => Err(Failed::reading(error.as_ref(), bytes_max)),
        }
    }

    /// [`exchange`](Self::exchange) within a time, where everything but success is a failure.
    pub(crate) async fn ask(
        &self,
        method: &Method,
        url: &str,
        body: &Body,
        (timeout, bytes_max): (Duration, usize),
    ) -> Result<Bytes, RpcError> {
        let exchange = self.exchange(method, url, body, bytes_max);
        let answer = in_time(timeout, exchange).await?;
        if answer.is_success() {
            return Ok(answer.body);
        }
        let message = String::from_utf8_lossy(&answer.body).chars().take(QUOTED_MAX).collect();
        Err(RpcError::Refused { status: answer.status, message })
    }
}

/// What is asked, unless it takes longer than this.
pub(crate) async fn in_time<T>(
    timeout: Duration,
    asking: impl Future<Output = Result<T, RpcError>>,
) -> Result<T, RpcError> {
    tokio::time::timeout(timeout, asking).await.unwrap_or(Err(RpcError::Timeout(timeout)))
}

impl Body {
    /// A document that is one already, or nothing.
    pub(crate) fn of_json(bytes: Bytes) -> Self {
        let content_type = if bytes.is_empty() { "" } else { "application/json" };
        Self { content_type: content_type.into(), bytes }
    }

    pub(crate) fn json(value: &impl serde::Serialize) -> Self {
        // What is sent are types of this crate, which all serialise.
        Self::of_json(serde_json::to_vec(value).unwrap_or_default().into())
    }
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why an exchange came to nothing, and whether it may have been for an old connection.
struct Failed {
    error: RpcError,
    again: bool,
}

impl Failed {
    fn at(what: String) -> Self {
        Self { error: RpcError::Unreachable(what), again: false }
    }

    fn asking(error: &hyper_util::client::legacy::Error) -> Self {
        let spoken = error.source().and_then(|source| source.downcast_ref::<hyper::Error>());
        if spoken.is_some_and(hyper::Error::is_parse) {
            return Self { error: RpcError::Garbage(root(error)), again: false };
        }
        Self { error: RpcError::Unreachable(root(error)), again: !error.is_connect() }
    }

    fn reading(error: &(dyn Error + 'static), bytes_max: usize) -> Self {
        let why = if error.is::<LengthLimitError>() {
            format!("its answer is longer than {} KiB", bytes_max / 1024)
        } else {
            format!("its answer breaks off: {}", root(error))
        };
        Self { error: RpcError::Garbage(why), again: false }
    }
}

/// What is at the bottom of an error: the layers above only say that something failed.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
