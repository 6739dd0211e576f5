//! The API behind a socket, for clients in other processes.
//!
//! A client is let in with the token or the certificate of the [`Credentials`]; every other request is
//! answered with 401, but for health and version, which anybody may ask for, as in Kubernetes.

use crate::builder::ApiServer;
use crate::credentials::{Credentials, CredentialsError};
use crate::respond::Reply;
use crate::server::User;
use crate::status::ApiError;
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
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
        self.listen(address, credentials, "https", Some(acceptor)).await
    }

    /// Serves over plain HTTP: for loopback, where a token is protection enough.
    pub async fn serve_http(&self, address: SocketAddr) -> Result<Served, ServeError> {
        self.listen(address, Credentials::generate()?, "http", None).await
    }

    async fn listen(
        &self,
        address: SocketAddr,
        credentials: Credentials,
        scheme: &'static str,
        acceptor: Option<TlsAcceptor>,
    ) -> Result<Served, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        self.start().await;
        let token: Arc<str> = credentials.token.as_str().into();
        let task = tokio::spawn(accept(listener, self.clone(), token, acceptor));
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

async fn accept(listener: TcpListener, server: ApiServer, token: Arc<str>, acceptor: Option<TlsAcceptor>) {
    // Connections end with the task that accepts them.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: others will be closed.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        connections.spawn(connection(stream, server.clone(), token.clone(), acceptor.clone()));
    }
}

async fn connection(stream: TcpStream, server: ApiServer, token: Arc<str>, acceptor: Option<TlsAcceptor>) {
    let http = auto::Builder::new(TokioExecutor::new());
    // A connection that breaks concerns nobody but its client.
    let _ = match acceptor {
        None => {
            let service = service_fn(move |request| respond(server.clone(), token.clone(), false, request));
            http.serve_connection_with_upgrades(TokioIo::new(stream), service).await
        }
        Some(acceptor) => {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            // The verifier let only certificates of our own authority pass.
            let certified = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
            let service =
                service_fn(move |request| respond(server.clone(), token.clone(), certified, request));
            http.serve_connection_with_upgrades(TokioIo::new(stream), service).await
        }
    };
}

async fn respond(
    server: ApiServer,
    token: Arc<str>,
    certified: bool,
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
    request.extensions_mut().insert(User::admin());
    Ok(server.handle(request).await)
}

/// Compares without telling by the time it takes how much is right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
