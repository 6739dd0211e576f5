//! What simulated peers answer: each is who its address says, and remembers whom it was told to connect to.

use std::collections::BTreeSet;
use std::sync::Mutex;

use futures::future::BoxFuture;
use mainstay_networks::rpc::{Disturbance, Ending, Endpoint, Identity, Rpc, RpcError};

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Crowd {
    wires: Mutex<BTreeSet<(String, String)>>,
    mute: Mutex<BTreeSet<String>>,
}

impl Crowd {
    /// This one does not answer from now on.
    pub(crate) fn silence(&self, ip: &str) {
        self.mute.lock().unwrap().insert(ip.to_owned());
    }

    /// Cuts all wires of a peer.
    pub(crate) fn cut(&self, ip: &str) {
        self.wires.lock().unwrap().retain(|(one, other)| one != ip && other != ip);
    }

    fn host(&self, peer: &Endpoint) -> Result<String, RpcError> {
        let host = peer.url.trim_start_matches("http://").split(':').next().unwrap_or_default();
        if self.mute.lock().unwrap().contains(host) {
            return Err(RpcError::Unreachable("connection refused".into()));
        }
        Ok(host.to_owned())
    }
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
            let ip = self.host(peer)?;
            Ok(Identity { peer_id: id(&ip), addresses: vec![format!("/ip4/{ip}/tcp/4001")] })
        })
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        Box::pin(async move {
            let ip = self.host(peer)?;
            let wires = self.wires.lock().unwrap();
            Ok(wires.iter().filter(|(one, _)| *one == ip).map(|(_, other)| id(other)).collect())
        })
    }

    fn connect<'a>(&'a self, peer: &'a Endpoint, to: &'a [String]) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async move {
            let ip = self.host(peer)?;
            let other = to.first().and_then(|address| address.split('/').nth(2)).unwrap_or_default();
            self.wires.lock().unwrap().insert((ip, other.to_owned()));
            Ok(())
        })
    }

    fn disturb<'a>(&'a self, _: &'a Endpoint, _: &'a Disturbance) -> BoxFuture<'a, Result<Ending, RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("disturb")) })
    }
}
