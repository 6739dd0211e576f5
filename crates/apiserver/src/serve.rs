//! The API behind a socket, for clients in other processes.
//!
//! Whatever a client does or leaves undone, others are answered: [`connections`] has the bounds.
//!
//! A client is let in with the token or the certificate of the [`Credentials`]; every other request is
//! answered with 401, but for health and version, which anybody may ask for, as in Kubernetes.

mod connections;
mod descriptors;
mod pace;
mod stall;
#[cfg(test)]
mod tests;

use crate::builder::ApiServer;
use crate::credentials::{Credentials, CredentialsError};
use crate::respond::Reply;
use crate::server::User;
use crate::status::ApiError;
use connections::{Bounds, Connections, Entry, Place};
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use pace::Paced;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use stall::Stall;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Why the API could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificates could not be made.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificates cannot be used.
    #[error("the certificates cannot be used")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A served API. It is served until this is dropped.
pub struct Served {
    address: SocketAddr,
    scheme: &'static str,
    credentials: Credentials,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Served {
    /// Where it listens; the port is the real one when port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:6443`
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// A kubeconfig with everything in it that an administrator needs.
    pub fn kubeconfig(&self) -> String {
        self.credentials.kubeconfig(&self.url())
    }

    /// What clients show.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ApiServer {
    /// Serves over HTTPS with fresh credentials.
    pub async fn serve_https(&self, address: SocketAddr) -> Result<Served, ServeError> {
        self.serve_https_with(address, Credentials::generate()?).await
    }

    /// Serves over HTTPS with these credentials.
    pub async fn serve_https_with(
        &self,
        address: SocketAddr,
        credentials: Credentials,
    ) -> Result<Served, ServeError> {
        let acceptor = acceptor(&credentials)?;
        let connections = Connections::new(Bounds::default());
        self.listen(address, credentials, "https", Some(acceptor), connections).await
    }

    /// Serves over plain HTTP: for loopback, where a token is protection enough.
    pub async fn serve_http(&self, address: SocketAddr) -> Result<Served, ServeError> {
        let connections = Connections::new(Bounds::default());
        self.listen(address, Credentials::generate()?, "http", None, connections).await
    }

    async fn listen(
        &self,
        address: SocketAddr,
        credentials: Credentials,
        scheme: &'static str,
        acceptor: Option<TlsAcceptor>,
        connections: Arc<Connections>,
    ) -> Result<Served, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        self.start().await;
        let token: Arc<str> = credentials.token.as_str().into();
        let way_in = WayIn { server: self.clone(), token, acceptor };
        let task = tokio::spawn(accept(listener, way_in, connections));
        Ok(Served { address, scheme, credentials, task })
    }
}

fn acceptor(credentials: &Credentials) -> Result<TlsAcceptor, ServeError> {
    fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ServeError {
        ServeError::Tls(error.into())
    }
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).map_err(unusable);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&credentials.ca)?).map_err(unusable)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(unusable)?;
    let key = PrivateKeyDer::from_pem_slice(credentials.server.key.as_bytes()).map_err(unusable)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate(&credentials.server.certificate)?], key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What each connection needs.
#[derive(Clone)]
struct WayIn {
    server: ApiServer,
    token: Arc<str>,
    acceptor: Option<TlsAcceptor>,
}

async fn accept(listener: TcpListener, way_in: WayIn, connections: Arc<Connections>) {
    // Connections end with the task that accepts them.
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely.
            connections.close_idle();
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // If everybody is at work there is no room, and the client is told so by the end of its connection.
        let Some(entry) = connections.enter() else { continue };
        let _ = stream.set_nodelay(true);
        tasks.spawn(connection(stream, way_in.clone(), entry, connections.bounds));
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    way_in: WayIn,
    entry: Entry,
    bounds: Bounds,
) {
    let place = entry.place.clone();
    // A connection that breaks, or is closed because nobody uses it, concerns nobody but its client.
    tokio::select! {
        () = serve(stream, way_in, entry.place.clone(), bounds) => {}
        () = place.unused(&bounds) => {}
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    way_in: WayIn,
    place: Arc<Place>,
    bounds: Bounds,
) {
    let stream = Stall::new(stream, bounds.stalled);
    let Some(acceptor) = way_in.acceptor.clone() else {
        return serve_http(stream, way_in, place, false).await;
    };
    let handshake = tokio::time::timeout(bounds.handshake, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = handshake else { return };
    // The verifier let only certificates of our own authority pass.
    let certified = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
    if certified {
        place.know();
    }
    serve_http(stream, way_in, place, certified).await;
}

/// Requests under way on one connection. Go's clients open another when they have as many.
const STREAMS_MAX: u32 = 250;
/// How often it is asked whether the other side is still there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// The longest head of a request, in bytes. It is read before anybody knows who sends it, so all connections together may
/// hold as many. The longest that clients send have a list of label selectors in their URL.
const HEAD_BYTES_MAX: u32 = 64 << 10;

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    way_in: WayIn,
    place: Arc<Place>,
    certified: bool,
) {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().max_buf_size(HEAD_BYTES_MAX as usize);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX);
    let service = service_fn(move |request| {
        let (server, token) = (way_in.server.clone(), way_in.token.clone());
        let (place, under_way) = (place.clone(), place.begin());
        async move {
            let response = respond(server, token, certified, &place, request).await?;
            Ok::<_, Infallible>(response.map(|body| Paced::new(body, under_way)))
        }
    });
    let _ = http.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}

async fn respond(
    server: ApiServer,
    token: Arc<str>,
    certified: bool,
    place: &Place,
    mut request: Request<Incoming>,
) -> Result<Response<crate::Body>, Infallible> {
    let open =
        matches!(request.uri().path().split('/').nth(1), Some("healthz" | "livez" | "readyz" | "version"));
    let sent = request.headers().get(header::AUTHORIZATION).and_then(|h| h.to_str().ok());
    let bearer = sent
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    // As in Kubernetes, nobody looks at the token of who has shown a certificate.
    let known = certified || bearer.is_some_and(|(_, sent)| same(sent.trim().as_bytes(), token.as_bytes()));
    if !known && !open {
        return Ok(Reply::error(&ApiError::plain(401, "Unauthorized", "Unauthorized")).into_response());
    }
    if known {
        place.know();
    }
    request.extensions_mut().insert(User::admin());
    Ok(server.handle(request).await)
}

/// Compares without telling by the time it takes how much is right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
