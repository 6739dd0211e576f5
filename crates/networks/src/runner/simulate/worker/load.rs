//! Users, who go on whatever fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::blocks::Blocks;
use super::{Manager, find_peer};
use crate::config::Throttle;
use crate::kinds::Scenario;
use crate::peers::Peer;
use crate::rpc::{Endpoint, Rpc, RpcError};
use crate::runner::simulate::settings::WorkerSettings;
use crate::simulation::report::{FailureKind, Latencies, WorkerReport};

/// A user whose request failed takes a breath, or a peer that is gone would be asked as often as a computer can.
const BREATH: Duration = Duration::from_millis(50);
/// How often the manager hears of it, and `peers.json` is read: a peer that was killed comes back elsewhere.
const REFRESH: Duration = Duration::from_secs(2);

/// What users share.
pub(super) struct Ground<'a> {
    pub(super) settings: &'a WorkerSettings,
    pub(super) manager: &'a Manager,
    rpc: Arc<dyn Rpc>,
    peer: Mutex<Peer>,
    found: Mutex<Found>,
    next_slot: Mutex<Instant>,
    blocks: Blocks,
    deadline: Instant,
    began: Instant,
}

#[derive(Default)]
struct Found {
    requests: u64,
    failures: BTreeMap<FailureKind, u64>,
    latencies: Latencies,
}

/// Puts the load on the peer, and returns what was found.
pub(super) async fn put(
    settings: &WorkerSettings,
    peer: Peer,
    rpc: Arc<dyn Rpc>,
    manager: &Manager,
) -> WorkerReport {
    let began = Instant::now();
    let ground = Ground {
        settings,
        manager,
        rpc,
        peer: Mutex::new(peer),
        found: Mutex::default(),
        next_slot: Mutex::new(began),
        blocks: Blocks::default(),
        deadline: began + settings.load.run_time,
        began,
    };
    let users = join_all((0..settings.load.users.max(1)).map(|_| ground.user()));
    tokio::select! {
        _ = users => {}
        () = ground.keep_up() => {}
    }
    ground.report()
}

impl Ground<'_> {
    async fn user(&self) {
        while self.has_turn().await {
            let endpoint = self.endpoint();
            let asked = Instant::now();
            let outcome = self.act(&endpoint).await;
            self.record(asked.elapsed(), outcome.as_ref().err());
            if outcome.is_err() {
                tokio::time::sleep(BREATH).await;
            }
        }
    }

    /// Waits until another request may be made. False if that is not before the end.
    async fn has_turn(&self) -> bool {
        let now = Instant::now();
        let slot = match self.settings.throttle {
            Throttle::None => now,
            Throttle::PerSecond(requests) => {
                let between = Duration::from_secs(1) / requests.max(1).unsigned_abs();
                let mut next = lock(&self.next_slot);
                // What was not used is not saved up.
                let slot = (*next).max(now);
                *next = slot + between;
                slot
            }
        };
        if slot >= self.deadline {
            return false;
        }
        tokio::time::sleep_until(slot).await;
        true
    }

    async fn act(&self, endpoint: &Endpoint) -> Result<(), RpcError> {
        match self.settings.load.scenario {
            Scenario::Identity => self.rpc.identity(endpoint).await.map(|_| ()),
            Scenario::Peers => self.rpc.connections(endpoint).await.map(|_| ()),
            Scenario::Blocks => self.blocks.act(self, endpoint).await,
        }
    }

    fn endpoint(&self) -> Endpoint {
        let peer = lock(&self.peer);
        Endpoint { adapter: peer.adapter, url: peer.rpc_addr.clone(), timeout: self.settings.timeout }
    }

    fn record(&self, took: Duration, failed: Option<&RpcError>) {
        let mut found = lock(&self.found);
        found.requests += 1;
        match failed {
            Some(error) => *found.failures.entry(error.into()).or_default() += 1,
            None => found.latencies.record(took),
        }
    }

    /// Tells the manager, and follows the peer to where it is. Never ends.
    async fn keep_up(&self) {
        loop {
            tokio::time::sleep(REFRESH).await;
            // Who is away for a moment is asked where it was.
            if let Ok(peer) = find_peer(self.settings) {
                *lock(&self.peer) = peer;
            }
            self.manager.hear(&self.report()).await;
            if self.settings.load.scenario == Scenario::Blocks {
                self.blocks.learn(self.manager.blocks(self.settings.worker).await);
            }
        }
    }

    fn report(&self) -> WorkerReport {
        let found = lock(&self.found);
        WorkerReport {
            run: self.settings.load.run.clone(),
            worker: self.settings.worker,
            peer: self.settings.peer.clone(),
            requests: found.requests,
            failures: found.failures.clone(),
            duration_milliseconds: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            latencies: found.latencies.clone(),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
