//! Asking over HTTP.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::dialect::{self, Answer, Ask};
use super::{Disturbance, Ending, Endpoint, Identity, Rpc, RpcError};
use crate::fetch::{Body, Fetch, in_time};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The longest answer about a peer itself that is read.
const IDENTITY_BYTES_MAX: usize = 64 * 1024;

/// Asks peers over HTTP. Cheap to clone; connections are kept and shared. The deadline of a peer is that of all that one call asks it, not of
/// each request.
#[derive(Debug, Clone, Default)]
pub struct HttpRpc(Fetch);

impl HttpRpc {
    /// With no connections yet.
    pub fn new() -> Self {
        Self::default()
    }

    async fn ask(&self, peer: &Endpoint, ask: &Ask) -> Result<Answer, RpcError> {
        self.ask_within(peer, ask, ANSWER_BYTES_MAX).await
    }

    async fn ask_within(&self, peer: &Endpoint, ask: &Ask, bytes_max: usize) -> Result<Answer, RpcError> {
        let url = format!("{}{}", peer.url.trim_end_matches('/'), ask.path);
        self.0.exchange(&ask.method, &url, &Body::of_json(ask.body.clone()), bytes_max).await
    }
}

impl Rpc for HttpRpc {
    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move {
            let answer = self.ask_within(peer, &dialect.ask_identity(), IDENTITY_BYTES_MAX).await?;
            dialect.identity(&answer)
        };
        in_time(peer.timeout, asking).boxed()
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move { dialect.connections(&self.ask(peer, &dialect.ask_connections()).await?) };
        in_time(peer.timeout, asking).boxed()
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
        in_time(peer.timeout, asking).boxed()
    }

    fn disturb<'a>(
        &'a self,
        peer: &'a Endpoint,
        disturbance: &'a Disturbance,
    ) -> BoxFuture<'a, Result<Ending, RpcError>> {
        let dialect = dialect::of(peer.adapter);
        let asking = async move {
            let mut answers = Vec::new();
            loop {
                let next = dialect.disturb(disturbance, &answers)?;
                if next.is_empty() {
                    return Ok(dialect.ending(disturbance, &answers));
                }
                for ask in &next {
                    answers.push(self.ask(peer, ask).await?);
                }
            }
        };
        in_time(peer.timeout, asking).boxed()
    }
}
