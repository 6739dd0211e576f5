//! Peers, and wires between them. What they were told is kept outside of the cluster, so that it outlives the operator and is part of the end.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use futures::future::BoxFuture;
use mainstay_networks::rpc::{Disturbance, Ending, Endpoint, Identity, Rpc, RpcError};
use mainstay_testkit::simulation::{External, ExternalError, Program, Seat, WorldClock, program};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::simulation::pods::{REGISTER, wire};

/// Filters that have ended are gone after this long.
const EXPIRES_WITHIN: Duration = Duration::from_secs(1);

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
    pub(crate) clock: WorldClock,
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

    async fn kept_out(&self, ip: &str) -> Result<BTreeMap<String, i64>, RpcError> {
        let kept = self.outside.get(&keeps_out(ip)).await.map_err(broken)?;
        let kept: BTreeMap<String, i64> =
            kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default();
        Ok(kept.into_iter().filter(|(_, until)| *until > self.milliseconds()).collect())
    }

    fn milliseconds(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    async fn put(&self, name: &str, value: Value) -> Result<(), RpcError> {
        self.outside.put(name, value).await.map_err(broken)
    }

    async fn connect_to(&self, peer: &Endpoint, addresses: &[String]) -> Result<(), RpcError> {
        let Asked { own, ip, all } = self.asked(peer).await?;
        let other_ip = addresses.first().and_then(|address| address.split('/').nth(2)).unwrap_or_default();
        let other = &all[other_ip];
        let (name, ends) = wire_of(&own, other);
        let is_apart = self.kept_out(&ip).await?.contains_key(other_ip)
            || self.kept_out(other_ip).await?.contains_key(&ip);
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

    async fn suffer(&self, peer: &Endpoint, disturbance: &Disturbance) -> Result<Ending, RpcError> {
        let Asked { own, ip, all } = self.asked(peer).await?;
        let known = self.kept_out(&ip).await?;
        let mut kept = known.clone();
        match disturbance {
            Disturbance::Block { addresses, lasts } => {
                let until = self.milliseconds() + i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
                kept.extend(addresses.iter().map(|address| (address.to_string(), until)));
            }
            Disturbance::Unblock(addresses) => {
                kept.retain(|kept, _| !addresses.iter().any(|address| address.to_string() == *kept));
            }
            Disturbance::Pause(_) | Disturbance::Latency { .. } => {
                return Err(RpcError::Unsupported("wait"));
            }
        }
        if kept != known {
            self.put(&keeps_out(&ip), json!(kept)).await?;
        }
        for other in kept.keys().map(|ip| &all[ip]).filter(|other| !other.is_null()) {
            if self.has_wire(&own, other).await? {
                self.put(&wire_of(&own, other).0, json!([])).await?;
            }
        }
        Ok(Ending::ByItself)
    }
}

/// Peers let in again whom they kept out for long enough: nobody has to tell them.
pub(crate) fn filters() -> Program {
    program("filters", async |seat: Seat| {
        let (outside, clock) = (seat.external(), seat.clock());
        loop {
            sleep(EXPIRES_WITHIN).await;
            let Ok(Some(all)) = outside.get(REGISTER).await else { continue };
            for ip in all.as_object().into_iter().flat_map(serde_json::Map::keys) {
                let Ok(Some(Value::Object(mut kept))) = outside.get(&keeps_out(ip)).await else { continue };
                let before = kept.len();
                let now = clock.now().as_millisecond();
                kept.retain(|_, until| until.as_i64().is_some_and(|until| until > now));
                if kept.len() != before {
                    let _ = outside.put(&keeps_out(ip), json!(kept)).await;
                }
            }
        }
    })
}

/// Under this it is kept whom the peer at an address keeps out, and until when.
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
    ) -> BoxFuture<'a, Result<Ending, RpcError>> {
        Box::pin(self.suffer(peer, disturbance))
    }
}
