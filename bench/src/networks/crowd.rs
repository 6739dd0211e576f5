//! Peers that are nowhere: each is who its address says, knows whom it is connected to, and answers at once.

use futures::future::BoxFuture;
use mainstay_networks::rpc::{Disturbance, Ending, Endpoint, Identity, Rpc, RpcError};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Crowd(Mutex<World>);

#[derive(Default)]
struct World {
    /// Both ends know of a wire.
    wires: HashMap<String, BTreeSet<String>>,
    calls: Calls,
}

/// What peers were asked.
#[derive(Clone, Copy, Default)]
pub(super) struct Calls {
    pub(super) identities: u64,
    pub(super) looks: u64,
    pub(super) dials: u64,
}

impl Calls {
    pub(super) fn total(&self) -> u64 {
        self.identities + self.looks + self.dials
    }
}

impl Crowd {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked until now.
    pub(super) fn calls(&self) -> Calls {
        self.lock().calls
    }

    /// How many wires there are.
    pub(super) fn wires(&self) -> usize {
        self.lock().wires.values().map(BTreeSet::len).sum::<usize>() / 2
    }

    /// Cuts so many wires, as the seed has it.
    pub(super) fn cut(&self, count: usize, seed: u64) {
        let mut world = self.lock();
        let ends = world.wires.iter().flat_map(|(one, others)| others.iter().map(move |other| (one, other)));
        let mut all: Vec<(String, String)> = ends
            .filter(|(one, other)| one < other)
            .map(|(one, other)| (one.clone(), other.clone()))
            .collect();
        all.sort();
        fastrand::Rng::with_seed(seed).shuffle(&mut all);
        for (one, other) in all.into_iter().take(count) {
            for (end, gone) in [(&one, &other), (&other, &one)] {
                if let Some(others) = world.wires.get_mut(end) {
                    others.remove(gone);
                }
            }
        }
    }
}

fn host(peer: &Endpoint) -> String {
    peer.url.trim_start_matches("http://").split(':').next().unwrap_or_default().to_owned()
}

fn id(ip: &str) -> String {
    format!("Qm{}", ip.replace('.', "x"))
}

impl Rpc for Crowd {
    fn asks_simulated(&self) -> bool {
        true
    }

    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        Box::pin(async move {
            self.lock().calls.identities += 1;
            let ip = host(peer);
            Ok(Identity { peer_id: id(&ip), addresses: vec![format!("/ip4/{ip}/tcp/4001")] })
        })
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        Box::pin(async move {
            let mut world = self.lock();
            world.calls.looks += 1;
            let others = world.wires.get(&host(peer)).into_iter().flatten();
            Ok(others.map(|other| id(other)).collect())
        })
    }

    fn connect<'a>(&'a self, peer: &'a Endpoint, to: &'a [String]) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async move {
            let mut world = self.lock();
            world.calls.dials += 1;
            let other = to.first().and_then(|address| address.split('/').nth(2));
            let other = other.ok_or_else(|| RpcError::Garbage("there is no address".into()))?;
            for (end, new) in [(host(peer), other.to_owned()), (other.to_owned(), host(peer))] {
                world.wires.entry(end).or_default().insert(new);
            }
            Ok(())
        })
    }

    fn disturb<'a>(&'a self, _: &'a Endpoint, _: &'a Disturbance) -> BoxFuture<'a, Result<Ending, RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("disturb")) })
    }
}
