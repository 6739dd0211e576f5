//! Posting reviews over HTTPS: the only part of admission that does I/O.
//!
//! Connections are kept for the next review to the same place. Every exchange ends by its deadline, and
//! answers over [`BODY_BYTES_MAX`] are refused.

use super::endpoint::{Endpoint, Location};
use super::reply::Reply;
use super::transport::{word_dial, word_exchange, word_handshake, word_lookup};
use super::trust;
use super::{ServiceResolver, WebhookTransport};
use crate::field::go_quote;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// How long an answer may be.
pub(super) const BODY_BYTES_MAX: usize = 16 << 20;
/// How many places are remembered.
const PEERS_MAX: usize = 200;
/// How many connections to one place are kept.
const IDLE_MAX: usize = 4;
/// How long an unused connection is kept.
const IDLE_TIME_MAX: Duration = Duration::from_secs(90);

type Connection = SendRequest<Full<Bytes>>;

/// Posts reviews.
pub(super) struct Client {
    resolver: Arc<dyn ServiceResolver>,
    /// What carries reviews in place of HTTPS, if anything does.
    transport: Option<Arc<dyn WebhookTransport>>,
    peers: Mutex<HashMap<(String, String), Arc<Peer>>>,
}

/// A place that reviews are posted to, and whom it must prove to be.
pub(super) struct Peer {
    tls: Arc<ClientConfig>,
    idle: Mutex<Vec<(Instant, Connection)>>,
}

impl Peer {
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(since, connection)| since.elapsed() < IDLE_TIME_MAX && !connection.is_closed());
        idle.pop().map(|(_, connection)| connection)
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push((Instant::now(), connection));
        }
    }
}

impl Client {
    pub(super) fn new(
        resolver: Arc<dyn ServiceResolver>,
        transport: Option<Arc<dyn WebhookTransport>>,
    ) -> Self {
        Client { resolver, transport, peers: Mutex::default() }
    }

    /// Finds or prepares what is kept for an endpoint; the error is the rest of
    /// `could not get REST client: `.
    pub(super) fn peer(&self, endpoint: &Endpoint<'_>) -> Result<Arc<Peer>, String> {
        let key = (endpoint.authority.clone(), endpoint.ca_bundle.to_owned());
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(&key) {
            return Ok(peer.clone());
        }
        let tls = Arc::new(trust::client_config(endpoint.ca_bundle)?);
        let peer = Arc::new(Peer { tls, idle: Mutex::default() });
        if peers.len() >= PEERS_MAX {
            peers.clear();
        }
        peers.insert(key, peer.clone());
        Ok(peer)
    }

    /// Posts a body and reads the answer; the error is the rest of `failed to call webhook: `.
    pub(super) async fn post(
        &self,
        peer: &Peer,
        endpoint: &Endpoint<'_>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Reply, String> {
        let deadline = Instant::now() + timeout;
        let target = format!("{}?timeout={}s", endpoint.path, timeout.as_secs());
        let failed = |why: &str| {
            format!("Post {}: {why}", go_quote(&format!("https://{}{target}", endpoint.authority)))
        };
        if let Some(transport) = &self.transport {
            let url = format!("https://{}{}", endpoint.authority, endpoint.path);
            let body = match timeout_at(deadline, transport.post(&url, body)).await {
                Ok(answered) => answered.map_err(|why| failed(&why))?,
                Err(_) => return Err(failed("context deadline exceeded")),
            };
            return Ok(Reply { code: 200, content_type: None, body });
        }
        let sent = timeout_at(deadline, self.send(peer, endpoint, &target, body)).await;
        let (response, connection) = match sent {
            Ok(sent) => sent.map_err(|why| failed(&why))?,
            Err(_) => return Err(failed("context deadline exceeded")),
        };
        let unread = |why: &str| {
            format!("unexpected error when reading response body. Please retry. Original error: {why}")
        };
        let code = response.status().as_u16();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX);
        let body = match timeout_at(deadline, body.collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(unread(&format!("more than {BODY_BYTES_MAX} bytes")));
            }
            Ok(Err(_)) => return Err(unread("unexpected EOF")),
            Err(_) => return Err(unread("context deadline exceeded")),
        };
        peer.keep(connection);
        Ok(Reply { code, content_type, body })
    }

    async fn send(
        &self,
        peer: &Peer,
        endpoint: &Endpoint<'_>,
        target: &str,
        body: Bytes,
    ) -> Result<(Response<Incoming>, Connection), String> {
        // A kept connection may have been closed by the other side just now. As no byte of an answer came,
        // the review was most likely not looked at, and goes over another one.
        while let Some(mut connection) = peer.take_idle() {
            if connection.ready().await.is_err() {
                continue;
            }
            match connection.send_request(post(endpoint, target, body.clone())?).await {
                Ok(response) => return Ok((response, connection)),
                Err(error) if error.is_parse() => return Err(word_exchange(&error)),
                Err(_) => {}
            }
        }
        let mut connection = self.connect(peer, endpoint).await?;
        let response = connection.send_request(post(endpoint, target, body)?).await;
        Ok((response.map_err(|error| word_exchange(&error))?, connection))
    }

    async fn connect(&self, peer: &Peer, endpoint: &Endpoint<'_>) -> Result<Connection, String> {
        let socket = dial(&self.addresses(&endpoint.location).await?).await?;
        let name = ServerName::try_from(endpoint.server_name.clone())
            .map_err(|_| format!("{} is no host name", go_quote(&endpoint.server_name)))?;
        let stream = TlsConnector::from(peer.tls.clone())
            .connect(name, socket)
            .await
            .map_err(|error| word_handshake(&error, &endpoint.server_name))?;
        let (connection, driver) =
            handshake(TokioIo::new(stream)).await.map_err(|error| word_exchange(&error))?;
        // Ends when the connection is dropped from the pool or closed by the other side.
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "connection to a webhook ended");
            }
        });
        Ok(connection)
    }

    async fn addresses(&self, location: &Location) -> Result<Vec<SocketAddr>, String> {
        match location {
            Location::Service { namespace, name, port } => {
                match self.resolver.resolve(namespace, name, *port) {
                    Some(address) => Ok(vec![address]),
                    None => Err(format!("service {} not found", go_quote(name))),
                }
            }
            Location::Host(host, port) => {
                let found = tokio::net::lookup_host((host.as_str(), *port)).await;
                let mut found: Vec<SocketAddr> = found.map_err(|_| word_lookup(host))?.collect();
                // The failure that is told is that of the first address, and people expect IPv4 there.
                found.sort_by_key(SocketAddr::is_ipv6);
                if found.is_empty() { Err(word_lookup(host)) } else { Ok(found) }
            }
        }
    }
}

async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                // A review is one write; waiting to fill a packet only costs time.
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Err(error) => drop(first.get_or_insert_with(|| word_dial(*address, &error))),
        }
    }
    Err(first.unwrap_or_default())
}

fn post(endpoint: &Endpoint<'_>, target: &str, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
    Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(HOST, &endpoint.authority)
        .header(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"))
        .header(ACCEPT, HeaderValue::from_static("application/json, */*"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(Full::new(body))
        .map_err(|error| error.to_string())
}
