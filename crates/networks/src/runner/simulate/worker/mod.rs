//! A worker: puts load on one peer, and tells its manager what it found.

mod blocks;
mod load;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use tokio::time::Instant;

use super::FAILED;
use super::settings::WorkerSettings;
use super::wire::{Block, Registration};
use crate::fetch::{Body, Fetch};
use crate::peers::{self, Peer};
use crate::rpc::{Rpc, RpcError};
use crate::simulation::report::{Progress, Stage, WorkerReport};

/// How often the manager is asked whether all are there.
const POLL: Duration = Duration::from_millis(100);
/// How long the manager may take to answer.
const MANAGER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the manager is tried for, when it does not answer.
const MANAGER_PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CannotWork {
    /// `peers.json` cannot be read.
    #[error("cannot read {path}: {why}")]
    Peers {
        /// Where it should be.
        path: String,
        /// Why.
        why: String,
    },
    /// The peer is not in it.
    #[error("{0} is not in peers.json")]
    NoPeer(String),
    /// The manager does not answer as it should.
    #[error("cannot {what} at {manager}: {source}")]
    Manager {
        /// What was tried.
        what: &'static str,
        /// Where.
        manager: String,
        /// Why.
        source: RpcError,
    },
    /// The run is over.
    #[error("the run is over already")]
    Over,
}

/// Runs a worker until it has told its manager, and returns its exit code.
pub async fn run(settings: WorkerSettings, rpc: Arc<dyn Rpc>, tell: impl Fn(&str)) -> u8 {
    match work(&settings, rpc, &tell).await {
        Ok(report) => {
            let failed: u64 = report.failures.values().sum();
            tell(&format!("{}: {} requests, {failed} of them failed", report.peer, report.requests));
            0
        }
        Err(error) => {
            tell(&error.to_string());
            FAILED
        }
    }
}

async fn work(
    settings: &WorkerSettings,
    rpc: Arc<dyn Rpc>,
    tell: &impl Fn(&str),
) -> Result<WorkerReport, CannotWork> {
    let peer = find_peer(settings)?;
    let manager = Manager { fetch: Fetch::default(), url: settings.manager.clone() };
    let registration =
        Registration { run: settings.load.run.clone(), worker: settings.worker, peer: settings.peer.clone() };
    manager.post("register", "/register", &registration).await?;
    tell(&format!("worker {} of {} is registered", settings.worker, settings.peer));
    loop {
        match manager.progress().await?.stage {
            Stage::Waiting => tokio::time::sleep(POLL).await,
            Stage::Running => break,
            Stage::Done => return Err(CannotWork::Over),
        }
    }
    let report = load::put(settings, peer, rpc, &manager).await;
    manager.post("tell what was found", "/report", &report).await?;
    Ok(report)
}

/// The worker's peer, as `peers.json` has it now.
fn find_peer(settings: &WorkerSettings) -> Result<Peer, CannotWork> {
    let wrong = |why: String| CannotWork::Peers { path: settings.peers_path.display().to_string(), why };
    // A small file on a local volume: nobody is kept waiting.
    let text = std::fs::read_to_string(&settings.peers_path).map_err(|error| wrong(error.to_string()))?;
    let peers = peers::read(&text).map_err(|error| wrong(error.to_string()))?;
    let found = peers.into_iter().find(|peer| peer.name == settings.peer);
    found.ok_or_else(|| CannotWork::NoPeer(settings.peer.clone()))
}

/// The manager, as a worker sees it.
#[derive(Debug, Clone)]
pub(super) struct Manager {
    fetch: Fetch,
    url: String,
}

impl Manager {
    async fn ask(&self, method: &Method, path: &str, body: &Body) -> Result<Bytes, RpcError> {
        let limits = (MANAGER_TIMEOUT, ANSWER_BYTES_MAX);
        self.fetch.ask(method, &format!("{}{path}", self.url), body, limits).await
    }

    /// Tries again for a while, unless the manager refuses: all that is said to it may be said twice.
    async fn insist(
        &self,
        what: &'static str,
        method: &Method,
        path: &str,
        body: &Body,
    ) -> Result<Bytes, CannotWork> {
        let deadline = Instant::now() + MANAGER_PATIENCE;
        loop {
            match self.ask(method, path, body).await {
                Ok(bytes) => return Ok(bytes),
                Err(source) if matches!(source, RpcError::Refused { .. }) || Instant::now() >= deadline => {
                    return Err(CannotWork::Manager { what, manager: self.url.clone(), source });
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    async fn post(&self, what: &'static str, path: &str, body: &impl Serialize) -> Result<(), CannotWork> {
        self.insist(what, &Method::POST, path, &Body::json(body)).await.map(|_| ())
    }

    async fn progress(&self) -> Result<Progress, CannotWork> {
        let what = "learn how far the run is";
        let bytes = self.insist(what, &Method::GET, "/progress", &Body::default()).await?;
        serde_json::from_slice(&bytes).map_err(|error| CannotWork::Manager {
            what,
            manager: self.url.clone(),
            source: RpcError::Garbage(error.to_string()),
        })
    }

    /// Says what was found so far. Whether it arrives matters little.
    pub(super) async fn hear(&self, report: &WorkerReport) {
        let _ = self.ask(&Method::POST, "/interim", &Body::json(report)).await;
    }

    /// Tells others of a block. If it does not arrive, they ask for others.
    pub(super) async fn announce(&self, block: &Block) {
        let _ = self.ask(&Method::POST, "/blocks", &Body::json(block)).await;
    }

    /// Blocks that others have put; none if the manager does not answer.
    pub(super) async fn blocks(&self, worker: usize) -> Vec<Block> {
        let path = format!("/blocks/but-of/{worker}");
        let answer = self.ask(&Method::GET, &path, &Body::default()).await.unwrap_or_default();
        serde_json::from_slice(&answer).unwrap_or_default()
    }
}
