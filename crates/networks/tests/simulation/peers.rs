//! Peers, and wires between them. What they were told is kept outside of the cluster, so that it outlives the operator and is part of the end.

use std::future::pending;

use futures::future::BoxFuture;
use mainstay_networks::rpc::{Disturbance, Endpoint, Identity, Rpc, RpcError};
use mainstay_testkit::simulation::{External, ExternalError};
use serde_json::{Value, json};

use crate::simulation::pods::{REGISTER, wire};

/// How a peer behaves that is not as it should be.
pub(crate) mod behaviour {
    /// It never answers.
    pub(crate) const HANGS: &str = "hangs";
    /// It says that it is the first one.
    pub(crate) const LIES: &str = "lies";
    /// Nobody understands what it says.
    pub(crate) const BABBLES: &str = "babbles";
}

/// What peers say, from what is outside.
pub(crate) struct Peers {
    pub(crate) outside: External,
    /// Whether dials that were for nothing are noted. One who died, or saw nothing for a while, may not know better.
    pub(crate) strict: bool,
}

/// A peer that was asked, and all others.
struct Asked {
    own: Value,
    ip: String,
    all: Value,
}

impl Peers {
    async fn asked(&self, peer: &Endpoint) -> Result<Asked, RpcError> {
        let ip = peer.url.trim_start_matches("http://").split(':').next().unwrap_or_default().to_owned();
        let all = self.outside.get(REGISTER).await.map_err(broken)?.unwrap_or_default();
        let own = all[&ip].clone();
        if own.is_null() {
            return Err(RpcError::Unreachable("nobody is there".into()));
        }
        match own["behaves"].as_str() {
            Some(behaviour::HANGS) => pending().await,
            Some(behaviour::BABBLES) => Err(RpcError::Garbage("<html>".into())),
            _ => Ok(Asked { own, ip, all }),
        }
    }

    /// Whether a wire is there. A peer that started anew has none of its wires left.
    async fn has_wire(&self, one: &Value, other: &Value) -> Result<bool, RpcError> {
        let (name, ends) = wire_of(one, other);
        Ok(self.outside.get(&name).await.map_err(broken)? == Some(ends))
    }

    async fn kept_out(&self, ip: &str) -> Result<Vec<String>, RpcError> {
        let kept = self.outside.get(&keeps_out(ip)).await.map_err(broken)?;
        Ok(kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default())
    }

    async fn put(&self, name: &str, value: Value) -> Result<(), RpcError> {
        self.outside.put(name, value).await.map_err(broken)
    }

    async fn connect_to(&self, peer: &Endpoint, addresses: &[String]) -> Result<(), RpcError> {
        let Asked { own, ip, all } = self.asked(peer).await?;
        let other_ip = addresses.first().and_then(|address| address.split('/').nth(2)).unwrap_or_default();
        let other = &all[other_ip];
        let (name, ends) = wire_of(&own, other);
        let is_apart = self.kept_out(&ip).await?.iter().any(|kept| kept == other_ip)
            || self.kept_out(other_ip).await?.contains(&ip);
        if self.strict {
            if is_apart {
                self.put("dialled across", json!(name)).await?;
            }
            if self.has_wire(&own, other).await? {
                self.put("dialled in vain", json!(name)).await?;
            }
        }
        if is_apart || other.is_null() {
            return Err(RpcError::Refused { status: 500, message: "it cannot be reached".into() });
        }
        self.put(&name, ends).await
    }

    async fn suffer(&self, peer: &Endpoint, disturbance: &Disturbance) -> Result<(), RpcError> {
        let Asked { own, ip, all } = self.asked(peer).await?;
        let known = self.kept_out(&ip).await?;
        let mut kept = known.clone();
        match disturbance {
            Disturbance::Block(addresses) => kept.extend(addresses.iter().map(ToString::to_string)),
            Disturbance::Unblock(addresses) => {
                kept.retain(|kept| !addresses.iter().any(|address| address.to_string() == *kept));
            }
            Disturbance::Pause(_) | Disturbance::Latency { .. } => {
                return Err(RpcError::Unsupported("wait"));
            }
        }
        kept.sort();
        kept.dedup();
        if kept != known {
            self.put(&keeps_out(&ip), json!(kept)).await?;
        }
        for other in kept.iter().map(|ip| &all[ip]).filter(|other| !other.is_null()) {
            if self.has_wire(&own, other).await? {
                self.put(&wire_of(&own, other).0, json!([])).await?;
            }
        }
        Ok(())
    }
}

/// Under this it is kept whom the peer at an address keeps out.
fn keeps_out(ip: &str) -> String {
    format!("{ip} keeps out")
}

fn wire_of(one: &Value, other: &Value) -> (String, Value) {
    let name = |peer: &Value| peer["name"].as_str().unwrap_or_default().to_owned();
    let (lesser, greater) = if name(one) < name(other) { (one, other) } else { (other, one) };
    (wire(&name(one), &name(other)), json!([lesser["uid"], greater["uid"]]))
}

fn broken(error: ExternalError) -> RpcError {
    RpcError::Unreachable(error.to_string())
}

fn id(peer: &Value) -> String {
    if peer["behaves"] == behaviour::LIES {
        return "id-peers-0-0".into();
    }
    format!("id-{}", peer["name"].as_str().unwrap_or_default())
}

impl Rpc for Peers {
    fn asks_simulated(&self) -> bool {
        true
    }

    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        Box::pin(async move {
            let Asked { own, ip, .. } = self.asked(peer).await?;
            let addresses = vec![format!("/ip4/{ip}/tcp/4001"), "/ip4/127.0.0.1/tcp/4001".to_owned()];
            Ok(Identity { peer_id: id(&own), addresses })
        })
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        Box::pin(async move {
            let Asked { own, all, .. } = self.asked(peer).await?;
            let mut found = Vec::new();
            for other in all.as_object().into_iter().flat_map(serde_json::Map::values) {
                if other["name"] != own["name"] && self.has_wire(&own, other).await? {
                    found.push(id(other));
                }
            }
            Ok(found)
        })
    }

    fn connect<'a>(
        &'a self,
        peer: &'a Endpoint,
        addresses: &'a [String],
    ) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(self.connect_to(peer, addresses))
    }

    fn disturb<'a>(
        &'a self,
        peer: &'a Endpoint,
        disturbance: &'a Disturbance,
    ) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(self.suffer(peer, disturbance))
    }
}
