//! What a peer is told in its environment.

use std::fmt;
use std::net::IpAddr;

use crate::config::{PeerGroupConfig, RpcConfig};
use crate::runner::environment::{Environment, WrongVariable};

/// Why a peer cannot begin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// A variable has no such value.
    #[error(transparent)]
    Variable(#[from] WrongVariable),
    /// All peers of the network would be the same.
    #[error("POD_NAME is not set: who a peer is follows from it and NETWORK_SECRET")]
    NoName,
}

/// What the peers of a network share and nobody else knows. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkSecret(pub(super) String);

impl fmt::Debug for NetworkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetworkSecret")
    }
}

/// Who a peer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Somebody new each time.
    Chance,
    /// The same after every restart: what it is called in the network with this secret.
    Named(NetworkSecret, String),
}

/// All that a peer goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Who it is.
    pub origin: Origin,
    /// Where it listens. None: everywhere.
    pub ip: Option<IpAddr>,
    /// The port of its RPC. 0: any that is free.
    pub rpc_port: u16,
    /// The port for other peers. 0: any that is free.
    pub p2p_port: u16,
}

impl Settings {
    /// Reads the environment.
    pub fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, UsageError> {
        let environment = Environment::new(environment);
        let origin = match (environment.text("NETWORK_SECRET"), environment.text("POD_NAME")) {
            (None, _) => Origin::Chance,
            (Some(_), None) => return Err(UsageError::NoName),
            (Some(secret), Some(name)) => Origin::Named(NetworkSecret(secret), name),
        };
        let port = |name, default: i32| {
            let given = environment.value(name, "a port")?;
            Ok::<u16, UsageError>(given.or_else(|| u16::try_from(default).ok()).unwrap_or(0))
        };
        Ok(Self {
            origin,
            ip: environment.value("POD_IP", "an IP address")?,
            rpc_port: port("RPC_PORT", RpcConfig::default().port)?,
            p2p_port: port("P2P_PORT", PeerGroupConfig::default().p2p_port)?,
        })
    }
}
