//! Serves webhooks over TLS, HTTP/1.1 and HTTP/2.
//!
//! Every connection is a task of its own; one that misbehaves harms no other. When the server is to end it takes new
//! connections for a while longer, then lets every review that has begun come to its end.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::{Response, StatusCode, Uri, header};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::Webhooks;
use super::admission::{self, Reply};
use super::certificate::served::{ServedCertificate, provider};
use super::conversion;
use super::keep::{Keeper, WebhookState};
use super::register::{Reach, conversion_path};
use super::serving::Serving;
use crate::connections::{self, Bounds};

/// A review holds two objects of at most three mebibytes, and little else.
const ADMISSION_BYTES_MAX: usize = 8 << 20;

/// A conversion holds as many objects as the API server has in a page, or in a whole list.
const CONVERSION_BYTES_MAX: usize = 128 << 20;

/// One that is idle gives way to the next.
const CONNECTIONS_MAX: usize = 1000;

/// Webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// Two hooks are at the same path: of the same sort, for the same kind, without names that tell them apart.
    #[error("two webhooks are both at {0}; give one a name")]
    Twice(String),
    /// The address cannot be listened on.
    #[error("listening for webhooks on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// TLS cannot be set up.
    #[error("setting up TLS for webhooks")]
    Tls(#[source] rustls::Error),
}

/// Webhooks that listen. They are served while [`run`](Self::run) runs.
pub struct WebhookServer {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    acceptor: TlsAcceptor,
    keeper: Keeper,
    bounds: Bounds,
    linger: Duration,
    grace: Duration,
}

impl Webhooks {
    /// Listens. Certificates are made and webhooks registered once the server runs, after it takes connections.
    pub async fn serve(self, client: kube::Client, serving: Serving) -> Result<WebhookServer, WebhookError> {
        let webhooks = Arc::new(self);
        let router = router(&webhooks)?;
        let (listener, address) =
            listen(serving.listen).await.map_err(|error| WebhookError::Listen(serving.listen, error))?;
        let served = Arc::new(ServedCertificate::default());
        let acceptor = acceptor(served.clone()).map_err(WebhookError::Tls)?;
        let reach = serving.reach.clone().unwrap_or_else(|| Reach::Url(format!("https://{address}")));
        let (linger, grace) = (serving.linger, serving.grace);
        let keeper = Keeper::new(client, webhooks, serving, reach, served);
        let bounds = Bounds::new(CONNECTIONS_MAX);
        Ok(WebhookServer { listener, address, router, acceptor, keeper, bounds, linger, grace })
    }
}

impl WebhookServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it is doing, now and later.
    pub fn state(&self) -> watch::Receiver<WebhookState> {
        self.keeper.state()
    }

    /// Serves until `shutdown` ends, and then until the reviews that have begun are answered.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, router, acceptor, keeper, bounds, linger, grace, .. } = self;
        let ending = async {
            let ending = async {
                shutdown.await;
                tokio::time::sleep(linger).await;
            };
            tokio::select! {
                // In a fixed order, so that simulations run the same way each time.
                biased;
                () = ending => {}
                () = keeper.run() => {}
            }
        };
        if !connections::serve(listener, Some(acceptor), router, bounds, ending, grace).await {
            tracing::warn!(?grace, "webhooks were still being asked when their time was up");
        }
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Listens on an address. On a machine without IPv6, all addresses are all of IPv4.
async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let bound = TcpListener::bind(address).await;
    let listener = match bound {
        Err(_) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await?
        }
        bound => bound?,
    };
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn acceptor(served: Arc<ServedCertificate>) -> Result<TlsAcceptor, rustls::Error> {
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(served);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Every hook and conversion at its path.
fn router(webhooks: &Arc<Webhooks>) -> Result<Router, WebhookError> {
    let mut paths = BTreeSet::new();
    let mut router = Router::new();
    for (at, hook) in webhooks.hooks.iter().enumerate() {
        let path = hook.path();
        if !paths.insert(path.clone()) {
            return Err(WebhookError::Twice(path));
        }
        let webhooks = webhooks.clone();
        let answer = async move |uri: Uri, body: Body| {
            let hook = &webhooks.hooks[at];
            let deadline = deadline(uri.query(), hook.patience());
            match axum::body::to_bytes(body, ADMISSION_BYTES_MAX).await {
                Ok(body) => respond(admission::review(hook, &body, deadline).await),
                Err(error) => respond(Reply::text(413, admission::chain(&error))),
            }
        };
        router = router.route(&path, post(answer));
    }
    for conversion in webhooks.conversions.values() {
        let convert = conversion.convert.clone();
        let answer = async move |body: Body| match axum::body::to_bytes(body, CONVERSION_BYTES_MAX).await {
            Ok(body) => respond(conversion::review(&convert, &body)),
            Err(error) => respond(Reply::text(413, admission::chain(&error))),
        };
        router = router.route(&conversion_path(&conversion.kind), post(answer));
    }
    Ok(router)
}

/// Nine tenths of what the caller says it waits, as in `timeout=10s`, or of what is registered.
fn deadline(query: Option<&str>, registered: Duration) -> Duration {
    let mut parameters = query.unwrap_or_default().split('&');
    let told = parameters.find_map(|parameter| parameter.strip_prefix("timeout=")?.strip_suffix('s'));
    let told = told.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    told.map_or(registered, |told| told.min(registered)) * 9 / 10
}

fn respond(Reply { status, body }: Reply) -> Response<Body> {
    let content_type = if status == 200 { "application/json" } else { "text/plain; charset=utf-8" };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests;
