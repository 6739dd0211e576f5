//! What is asked of peers: who they are, whom they are connected to, and to connect.
//!
//! ```text
//! Rpc (what operator and runner use) ─▶ HttpRpc ─▶ Dialect: the requests of an adapter, and what answers mean (pure)
//! ```
//!
//! An answer is waited for until the endpoint's deadline and no longer. What a peer says is not believed beyond what it can know: an answer that is
//! too long, of another shape or of another peer is [`RpcError::Garbage`].

mod dialect;
mod each;
mod http;
mod kubo;
pub mod multiaddr;
mod plain;
#[cfg(test)]
mod tests;

pub use each::each;
pub use http::HttpRpc;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::kinds::Adapter;

/// Where a peer's RPC is, and what it speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What it speaks.
    pub adapter: Adapter,
    /// Where it is: `http://10.0.0.1:5001`, `http://[fd00::1]:5001`.
    pub url: String,
    /// How long an answer is waited for.
    pub timeout: Duration,
}

/// What a peer tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// Who it is to other peers.
    pub peer_id: String,
    /// Where it says that it can be reached, as multiaddresses.
    pub addresses: Vec<String>,
}

/// What a peer is asked to suffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disturbance {
    /// It has no connections with these addresses, and takes none, for a time.
    Block {
        /// Which. Many peers share a list.
        addresses: Arc<[IpAddr]>,
        /// For how long, unless it is told again.
        lasts: Duration,
    },
    /// These are as any other again.
    Unblock(Arc<[IpAddr]>),
    /// It does nothing for so long.
    Pause(Duration),
    /// Whatever it sends is late, for so long.
    Latency {
        /// By how much.
        late: Duration,
        /// For how long.
        lasts: Duration,
    },
}

/// How a disturbance ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The peer ends it when its time is over.
    ByItself,
    /// The peer knows no time for it. It stays until it is undone.
    WhenUndone,
}

/// Why a peer did not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// There was no answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// There is nobody.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It refused.
    #[error("answered {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It answered with something else.
    #[error("answered what cannot be understood: {0}")]
    Garbage(String),
    /// It does not know how.
    #[error("cannot {0}")]
    Unsupported(&'static str),
}

impl RpcError {
    /// The reason in one word, for statuses.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "RpcTimeout",
            Self::Unreachable(_) => "RpcUnreachable",
            Self::Refused { .. } => "RpcRefused",
            Self::Garbage(_) => "RpcGarbage",
            Self::Unsupported(_) => "RpcUnsupported",
        }
    }
}

/// How peers are asked. The one over HTTP is [`HttpRpc`]; simulations have their own.
pub trait Rpc: Send + Sync + 'static {
    /// Whether pods that are only simulated are asked too. Nothing listens at their addresses, unless all of the world is simulated.
    fn asks_simulated(&self) -> bool {
        false
    }

    /// Who it is.
    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>>;

    /// The ids of those it is connected to.
    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>>;

    /// Has it connect to another peer, which can be reached at any of these addresses.
    fn connect<'a>(
        &'a self,
        peer: &'a Endpoint,
        addresses: &'a [String],
    ) -> BoxFuture<'a, Result<(), RpcError>>;

    /// Has it suffer something.
    fn disturb<'a>(
        &'a self,
        peer: &'a Endpoint,
        disturbance: &'a Disturbance,
    ) -> BoxFuture<'a, Result<Ending, RpcError>>;
}
