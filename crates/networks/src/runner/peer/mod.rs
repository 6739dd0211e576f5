//! `mainstay runner peer`: the reference peer. It speaks the part of Kubo's RPC that networks use, and holds real connections.
//!
//! ```text
//! api (HTTP) ─▶ swarm: connections ─▶ table: which of them are kept (pure)
//!      │           └─▶ link ─▶ wire: JSON lines over TCP
//!      └─▶ blocks
//!            gate: what it is made to suffer, on every way in and out
//! ```
//!
//! It is there so that networks can be tried where no real peer can run. Connections are neither encrypted nor is anybody's id proven: it is for
//! networks of its own and for nothing that matters.

mod api;
mod blocks;
mod filters;
mod gate;
mod id;
mod link;
mod multipart;
mod settings;
mod swarm;
mod table;
#[cfg(test)]
mod tests;
mod wire;

pub use settings::{NetworkSecret, Origin, Settings, UsageError};

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use swarm::Swarm;

/// The code when it cannot listen.
pub const FAILED: u8 = 1;
/// The code when its environment is wrong.
pub const USAGE: u8 = 2;

/// How long requests that are being answered may take at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a peer does not run.
#[derive(Debug, thiserror::Error)]
pub enum CannotStart {
    /// A port is taken, or the address is not this machine's.
    #[error("cannot listen on {at}")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The system has no randomness to give.
    #[error("the system gives no random numbers")]
    NoChance,
}

/// Runs a peer as the environment says until `ended`, and gives the exit code. `tell` gets what a person should read.
pub async fn run(
    environment: impl Fn(&str) -> Option<String>,
    tell: impl Fn(&str),
    ended: impl Future<Output = ()>,
) -> u8 {
    let settings = match Settings::read(environment) {
        Ok(settings) => settings,
        Err(error) => {
            tell(&format!("error: cannot run a peer: {error}"));
            return USAGE;
        }
    };
    let running = match Running::start(&settings).await {
        Ok(running) => running,
        Err(error) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            tell(&format!("error: cannot run a peer: {error}{}", source.unwrap_or_default()));
            return FAILED;
        }
    };
    tell(&format!("peer {} is at {}, its RPC at {}", running.peer_id, running.p2p, running.url()));
    ended.await;
    running.stop().await;
    0
}

/// A peer that runs. It ends when it is dropped.
pub struct Running {
    /// Who it is.
    pub peer_id: String,
    /// Where other peers reach it.
    pub p2p: SocketAddr,
    /// Where its RPC is.
    pub rpc: SocketAddr,
    swarm: Arc<Swarm>,
    accepting: JoinHandle<()>,
    serving: Option<JoinHandle<()>>,
    ending: watch::Sender<bool>,
}

impl Running {
    /// Starts a peer in this process.
    pub async fn start(settings: &Settings) -> Result<Self, CannotStart> {
        let peer_id = id::peer_id(&settings.origin).map_err(|_| CannotStart::NoChance)?;
        let session = id::chance().map_err(|_| CannotStart::NoChance)?;
        let (for_peers, p2p) = listen(settings.ip, settings.p2p_port).await?;
        let (for_rpc, rpc) = listen(settings.ip, settings.rpc_port).await?;
        let listening = swarm::listening(p2p, &peer_id);
        let swarm = Arc::new(Swarm::new(peer_id.clone(), session, listening, settings.ip));
        let (ending, mut ended) = watch::channel(false);
        let serve = axum::serve(for_rpc, api::router(Arc::clone(&swarm)))
            // Also when nobody is there any more to say so.
            .with_graceful_shutdown(async move { drop(ended.wait_for(|ended| *ended).await) });
        let serving = tokio::spawn(async move {
            if let Err(error) = serve.await {
                tracing::error!(%error, "the RPC has ended");
            }
        });
        let accepting = tokio::spawn(Arc::clone(&swarm).accept(for_peers));
        Ok(Self { peer_id, p2p, rpc, swarm, accepting, serving: Some(serving), ending })
    }

    /// Where its RPC is.
    pub fn url(&self) -> String {
        format!("http://{}", self.rpc)
    }

    /// Closes all connections and ends.
    pub async fn stop(mut self) {
        self.end();
        if let Some(serving) = self.serving.take() {
            let abort = serving.abort_handle();
            if tokio::time::timeout(PATIENCE, serving).await.is_err() {
                abort.abort();
            }
        }
    }

    fn end(&self) {
        self.accepting.abort();
        self.swarm.table().close();
        self.ending.send_replace(true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Listens there, or everywhere: with both versions of IP where the machine has both.
async fn listen(ip: Option<IpAddr>, port: u16) -> Result<(TcpListener, SocketAddr), CannotStart> {
    let everywhere = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
    let candidates = ip.map_or_else(|| everywhere.to_vec(), |ip| vec![ip]);
    let mut failed = None;
    for at in candidates.into_iter().map(|ip| SocketAddr::new(ip, port)) {
        let bound = match TcpListener::bind(at).await {
            Ok(listener) => listener.local_addr().map(|address| (listener, address)),
            Err(error) => Err(error),
        };
        match bound {
            Ok(bound) => return Ok(bound),
            Err(source) => failed = Some(CannotStart::Listen { at, source }),
        }
    }
    // There is always a candidate.
    Err(failed.unwrap_or(CannotStart::NoChance))
}
