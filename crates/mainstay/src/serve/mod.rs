//! What an operator tells over HTTP about itself.
//!
//! | path | answer |
//! |---|---|
//! | `/livez` | 200 while the main loop ticks; 500 when it has not for longer than its limit |
//! | `/readyz` | 200 when every cache is synced and every watch is fresh; 500 with all states and reasons otherwise |
//! | `/livez/<check>`, `/readyz/<check>` | one check alone |
//! | `/metrics` | all metrics, as Prometheus scrapes them |
//! | `/debug/parents` | all parents as JSON; `?kind=`, `?namespace=`, `?limit=` |
//! | `/debug/parents/<kind>/<namespace>/<name>` | one parent; the namespace is `-` for a cluster-scoped one |
//! | `/version` | the operator's version and the framework's |
//!
//! `?verbose` lists all checks also when they pass, `?exclude=<check>` leaves one out, as the Kubernetes API server
//! does it. Everything is read-only. Nothing is served unless an address is given, and an address that others reach is the author's
//! choice. Every user of a machine reaches its loopback addresses. With a [token](Endpoints::with_token), `/metrics` and
//! `/debug/parents` are for those who send it as `Authorization: Bearer TOKEN`; health and version are for all.

mod health;
mod pulse;
mod query;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::connections::{self, Bounds};
use crate::metrics::{self, Metrics};
pub use health::{Check, Readiness};
pub use pulse::Pulse;
pub use query::ParentFilter;
use query::Query;

/// How long open connections may go on after the shutdown began.
const GRACE: Duration = Duration::from_secs(5);

/// Far more than a kubelet and the scrapers of a cluster open.
const CONNECTIONS_MAX: usize = 100;

/// What `/debug/parents` shows.
///
/// What is returned is served as it is: a source leaves out what only some may read, such as the data of Secrets.
pub trait DebugSource: Send + Sync + 'static {
    /// The parents that the filter lets through, at most `filter.limit` of them.
    fn parents(&self, filter: &ParentFilter) -> Value;

    /// One parent: its queue state and last plans. `None` when there is no such parent.
    fn parent(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<Value>;
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or not one of this machine.
    #[error("cannot listen on {address} for health and metrics")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The listener failed while it was serving.
    #[error("health and metrics are no longer served")]
    Serve(#[source] io::Error),
}

/// What is served: put together by the operator, then given to a [`Server`].
#[derive(Clone)]
pub struct Endpoints(Arc<Sources>);

#[derive(Clone)]
struct Sources {
    operator: String,
    version: String,
    metrics: Metrics,
    pulse: Pulse,
    readiness: Arc<dyn Readiness>,
    debug: Option<Arc<dyn DebugSource>>,
    token: Option<Arc<str>>,
}

impl Endpoints {
    /// Health, metrics and version of an operator of that name and version.
    pub fn new(
        operator: &str,
        version: &str,
        metrics: Metrics,
        pulse: Pulse,
        readiness: impl Readiness,
    ) -> Self {
        let (operator, version) = (operator.to_owned(), version.to_owned());
        let readiness = Arc::new(readiness);
        Self(Arc::new(Sources { operator, version, metrics, pulse, readiness, debug: None, token: None }))
    }

    /// Serves `/debug/parents` too.
    #[must_use]
    pub fn with_debug(self, source: impl DebugSource) -> Self {
        let sources = Arc::unwrap_or_clone(self.0);
        Self(Arc::new(Sources { debug: Some(Arc::new(source)), ..sources }))
    }

    /// Answers `/metrics` and `/debug/parents` only to those who send this token.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        let sources = Arc::unwrap_or_clone(self.0);
        Self(Arc::new(Sources { token: Some(token.into()), ..sources }))
    }

    fn router(self) -> Router {
        let guarded = Router::new()
            .route("/metrics", get(scrape))
            .route("/debug/parents", get(parents))
            .route("/debug/parents/{kind}/{namespace}/{name}", get(parent))
            .route_layer(from_fn_with_state(Arc::clone(&self.0), let_in));
        Router::new()
            .merge(guarded)
            .route("/livez", get(live))
            .route("/livez/{*check}", get(live_check))
            .route("/readyz", get(ready))
            .route("/readyz/{*check}", get(ready_check))
            .route("/version", get(version))
            .fallback(unknown)
            .with_state(self.0)
    }
}

/// A listening server, not yet answering.
pub struct Server {
    address: SocketAddr,
    listener: TcpListener,
    router: Router,
}

impl Server {
    /// Listens on an address. Port 0 takes a free one; see [`Server::address`].
    pub async fn bind(address: SocketAddr, endpoints: Endpoints) -> Result<Self, ServeError> {
        let bind = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { address, listener, router: endpoints.router() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` is done, then lets open requests end, for at most five seconds.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        self.run_with(shutdown, GRACE).await
    }

    async fn run_with(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
        grace: Duration,
    ) -> Result<(), ServeError> {
        let bounds = Bounds::new(CONNECTIONS_MAX);
        connections::serve(self.listener, None, self.router, bounds, shutdown, grace).await;
        Ok(())
    }
}

/// Lets a request through that carries the token, if there is one.
async fn let_in(State(sources): State<Arc<Sources>>, request: Request, next: Next) -> Response {
    let Some(token) = &sources.token else { return next.run(request).await };
    let sent = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    if is_equal(sent, format!("Bearer {token}").as_bytes()) {
        return next.run(request).await;
    }
    let mut response = plain(
        StatusCode::UNAUTHORIZED,
        "this page needs the token, as Authorization: Bearer TOKEN\n".to_owned(),
    );
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Compares in a time that does not depend on where two texts differ.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
    a.len() == b.len() && differ == 0
}

async fn live(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    health::answer("livez", &sources.pulse.checks(), &Query::of(&uri))
}

async fn live_check(State(sources): State<Arc<Sources>>, Path(check): Path<String>) -> Response {
    health::answer_one(&sources.pulse.checks(), &check)
}

async fn ready(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    health::answer("readyz", &sources.readiness.checks(), &Query::of(&uri))
}

async fn ready_check(State(sources): State<Arc<Sources>>, Path(check): Path<String>) -> Response {
    health::answer_one(&sources.readiness.checks(), &check)
}

async fn scrape(State(sources): State<Arc<Sources>>) -> Response {
    match sources.metrics.render() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a metric could not be rendered\n".to_owned()),
    }
}

async fn parents(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    let Some(debug) = &sources.debug else { return unknown().await };
    match ParentFilter::from_query(&Query::of(&uri)) {
        Ok(filter) => Json(debug.parents(&filter)).into_response(),
        Err(why) => plain(StatusCode::BAD_REQUEST, format!("{why}\n")),
    }
}

async fn parent(
    State(sources): State<Arc<Sources>>,
    Path((kind, namespace, name)): Path<(String, String, String)>,
) -> Response {
    let Some(debug) = &sources.debug else { return unknown().await };
    let namespace = (namespace != "-").then_some(namespace.as_str());
    match debug.parent(&kind, namespace, &name) {
        Some(found) => Json(found).into_response(),
        None => plain(StatusCode::NOT_FOUND, "there is no such parent\n".to_owned()),
    }
}

async fn version(State(sources): State<Arc<Sources>>) -> Json<Value> {
    Json(json!({
        "operator": sources.operator,
        "version": sources.version,
        "mainstay": env!("CARGO_PKG_VERSION"),
    }))
}

async fn unknown() -> Response {
    let there = "/livez /readyz /metrics /debug/parents /version";
    plain(StatusCode::NOT_FOUND, format!("not found; there are {there}\n"))
}

/// Text for people, which nothing on the way may keep.
fn plain(status: StatusCode, text: String) -> Response {
    let mut response = (status, text).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
