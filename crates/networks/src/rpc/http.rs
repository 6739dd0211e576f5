//! Asking over HTTP.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::dialect::{self, Answer, Ask};
use super::{Disturbance, Endpoint, Identity, Rpc, RpcError};

/// The longest answer that is read.
const ANSWER_MAX: usize = 1024 * 1024;
/// How long an idle connection is kept. Longer than peers are usually observed apart would keep what has long been restarted.
const IDLE: Duration = Duration::from_secs(15);

/// Asks peers over HTTP. Cheap to clone; connections are kept and shared.
#[derive(Debug, Clone)]
pub struct HttpRpc {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Default for HttpRpc {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(2)
            .build(connector);
        Self { client }
    }
}

impl HttpRpc {
    /// With no connections yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One exchange, tried again on a new connection if one that was kept turns out to be gone: all requests may be repeated.
    async fn ask(&self, peer: &Endpoint, ask: &Ask) -> Result<Answer, RpcError> {
        match self.ask_once(peer, ask).await {
            Err(Failed { again: true, .. }) => self.ask_once(peer, ask).await,
            other => other,
        }
        .map_err(|failed| failed.error)
    }

    async fn ask_once(&self, peer: &Endpoint, ask: &Ask) -> Result<Answer, Failed> {
        let url = format!("{}{}", peer.url.trim_end_matches('/'), ask.path);
        let uri: Uri = url.parse().map_err(|error| Failed::at(format!("{}: {error}", peer.url)))?;
        let mut request = Request::builder().method(&ask.method).uri(uri);
        if !ask.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(ask.body.clone()))
            .map_err(|error| Failed::at(format!("{}: {error}", peer.url)))?;
        let response = self.client.request(request).await.map_err(|error| Failed::asking(&error))?;
        let status = response.status().as_u16();
        match Limited::new(response.into_body(), ANSWER_MAX).collect().await {
            Ok(body) => Ok(Answer { status, body: body.to_bytes() }),
            Err(error) => Err(Failed::reading(error.as_ref())),
        }
    }

    /// The deadline is that of all that `asking` asks, not of each request.
    async fn in_time<T>(
        peer: &Endpoint,
        asking: impl Future<Output = Result<T, RpcError>>,
    ) -> Result<T, RpcError> {
        match tokio::time::timeout(peer.timeout, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(RpcError::Timeout(peer.timeout)),
        }
    }
}

impl Rpc for HttpRpc {
    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move { dialect.identity(&self.ask(peer, &dialect.ask_identity()).await?) };
        Self::in_time(peer, asking).boxed()
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move { dialect.connections(&self.ask(peer, &dialect.ask_connections()).await?) };
        Self::in_time(peer, asking).boxed()
    }

    fn connect<'a>(
        &'a self,
        peer: &'a Endpoint,
        addresses: &'a [String],
    ) -> BoxFuture<'a, Result<(), RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move {
            let answer = self.ask(peer, &dialect.ask_connect(addresses)).await?;
            dialect.connected(&answer, addresses)
        };
        Self::in_time(peer, asking).boxed()
    }

    fn disturb<'a>(
        &'a self,
        peer: &'a Endpoint,
        disturbance: &'a Disturbance,
    ) -> BoxFuture<'a, Result<(), RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move {
            let mut answers = Vec::new();
            loop {
                let next = dialect.disturb(disturbance, &answers)?;
                if next.is_empty() {
                    return Ok(());
                }
                for ask in &next {
                    answers.push(self.ask(peer, ask).await?);
                }
            }
        };
        Self::in_time(peer, asking).boxed()
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

    fn reading(error: &(dyn Error + 'static)) -> Self {
        let why = if error.is::<LengthLimitError>() {
            format!("its answer is longer than {} KiB", ANSWER_MAX / 1024)
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
