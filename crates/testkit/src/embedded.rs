//! The embedded API server, as the clusters of this crate use it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use mainstay_apiserver::{ApiServer, Served};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tower::Layer as _;

use crate::isolation::{IsolatedLayer, Isolation};

/// An API server in memory, in this process. Other processes reach it from the moment its kubeconfig is asked for.
#[derive(Debug)]
pub struct Embedded {
    server: ApiServer,
    reached: OnceCell<Reached>,
}

/// What lets other processes in. Both go when it does.
#[derive(Debug)]
struct Reached {
    _served: Served,
    directory: TempDir,
}

impl Embedded {
    /// A new one, with nothing in it but what a server starts with.
    pub fn start() -> Option<Self> {
        let server = ApiServer::builder().build().ok()?;
        Some(Self { server, reached: OnceCell::new() })
    }

    /// The server itself, for what only it can do: forgetting its history, say.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// A client with all rights that needs no socket. Its requests pass the isolation.
    pub(crate) fn client(&self, isolation: &Arc<Isolation>) -> kube::Client {
        kube::Client::new(IsolatedLayer(Arc::clone(isolation)).layer(self.server.clone()), "default")
    }

    /// The path of a kubeconfig with all rights. Serves over HTTPS on loopback from the first call on.
    ///
    /// # Panics
    /// When it cannot be served, or the file not be written.
    pub async fn kubeconfig(&self) -> PathBuf {
        let reached = self.reached.get_or_init(async || {
            let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let served = self.server.serve_https(loopback).await;
            let served = served.unwrap_or_else(|error| panic!("serving the embedded API: {error}"));
            let directory = tempfile::Builder::new().prefix("mainstay-embedded-").tempdir();
            let directory = directory.unwrap_or_else(|error| panic!("a temporary directory: {error}"));
            fs::write(directory.path().join("kubeconfig"), served.kubeconfig())
                .unwrap_or_else(|error| panic!("writing the kubeconfig: {error}"));
            Reached { _served: served, directory }
        });
        reached.await.directory.path().join("kubeconfig")
    }
}
