//! Whoever sends requests: over one HTTPS connection, or straight into a server in this process.
//!
//! Both servers are asked by the same code, which does as little as it can beside asking.

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use mainstay_apiserver::ApiServer;
use rustls::pki_types::ServerName;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where a served API is, and what it wants to be shown.
#[derive(Clone)]
pub(crate) struct Address {
    host: String,
    port: u16,
    tls: Arc<rustls::ClientConfig>,
}

impl Address {
    /// The cluster that a kubeconfig names. The client shows the certificate in it.
    pub(crate) async fn from_kubeconfig(path: &Path) -> Result<Self> {
        // The process may have one already, and any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(path)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut tls = config.rustls_client_config()?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let host = config.cluster_url.host().context("a URL without a host")?.to_owned();
        let port = config.cluster_url.port_u16().context("a URL without a port")?;
        Ok(Self { host, port, tls: Arc::new(tls) })
    }

    /// Opens one connection.
    pub(crate) async fn connect(&self) -> Result<Caller> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.host.clone())?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Caller::Wire { sender, host: format!("{}:{}", self.host, self.port) })
    }
}

/// Sends requests one after the other.
pub(crate) enum Caller {
    /// Over a connection of its own.
    Wire {
        /// The connection.
        sender: SendRequest<Full<Bytes>>,
        /// For the `Host` header.
        host: String,
    },
    /// By a function call.
    InProcess(ApiServer),
}

/// What a caller can be made from, again and again.
#[derive(Clone)]
pub(crate) enum Target {
    /// A served API.
    Served(Address),
    /// A server in this process.
    InProcess(ApiServer),
}

impl Target {
    pub(crate) async fn caller(&self) -> Result<Caller> {
        match self {
            Target::Served(address) => address.connect().await,
            Target::InProcess(server) => Ok(Caller::InProcess(server.clone())),
        }
    }
}

impl Caller {
    /// Sends a request; anything but success is an error.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<Bytes> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, "mainstay-bench")
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, kind)
            .body(Full::new(body))?;
        let (status, body) = match self {
            Caller::InProcess(server) => {
                let response = server.handle(request).await;
                (response.status(), response.into_body().collect().await?.to_bytes())
            }
            Caller::Wire { .. } => {
                let response = self.respond(request).await?;
                (response.status(), response.into_body().collect().await?.to_bytes())
            }
        };
        ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
        Ok(body)
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Bytes> {
        self.send(Method::GET, path, "application/json", Bytes::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> Result<Bytes> {
        self.send(Method::POST, path, "application/json", body.into()).await
    }

    /// Opens a watch, whose body goes on.
    pub(crate) async fn watch(&mut self, path: &str) -> Result<Incoming> {
        let request = Request::get(path).header(header::USER_AGENT, "mainstay-bench").body(Full::default())?;
        let response = self.respond(request).await?;
        ensure!(response.status().is_success(), "{path}: {}", response.status());
        Ok(response.into_body())
    }

    async fn respond(&mut self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        let Caller::Wire { sender, host } = self else { bail!("there is no connection") };
        request.headers_mut().insert(header::HOST, host.parse()?);
        sender.ready().await?;
        Ok(sender.send_request(request).await?)
    }
}
