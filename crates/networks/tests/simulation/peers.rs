//! Pods that are peers, and wires between them. Who is there and who is connected is kept outside of the cluster, so that it outlives the operator
//! and is part of the end.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use mainstay::{Controller, Error, SyncRequest, SyncResponse};
use mainstay_networks::rpc::{Disturbance, Endpoint, Identity, Rpc, RpcError};
use mainstay_testkit::simulation::{External, ExternalError, Program, operator_at};
use serde_json::{Value, json};

/// No network in a world has more peers, nor another group.
const PEERS_MAX: usize = 5;
/// A pod starts after so long.
const STARTS_AFTER: Duration = Duration::from_secs(1);
/// A Job's pod ends after so long.
const ENDS_AFTER: Duration = Duration::from_secs(5);

/// What becomes of pods: peers run, and others end well.
pub(crate) fn pods() -> Program {
    operator_at("pods", |operator, seat| {
        let outside = seat.external();
        operator.controller(Controller::of::<Pod>().sync_async(move |request: SyncRequest| {
            let outside = outside.clone();
            async move { become_of(&request, &outside).await }
        }))
    })
}

async fn become_of(request: &SyncRequest, outside: &External) -> Result<SyncResponse, Error> {
    let pod = request.parent_json();
    let created: jiff::Timestamp =
        pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().parse()?;
    let age = Duration::try_from(request.now().duration_since(created)).unwrap_or_default();
    if age < STARTS_AFTER {
        return Ok(SyncResponse::from_status(&pod["status"])?.requeue_after(STARTS_AFTER.saturating_sub(age)));
    }
    let is_peer = pod["metadata"]["labels"]["mainstay.dev/role"] == "peer";
    let ip = address(request.name());
    if is_peer {
        let record = json!({"name": request.name(), "uid": request.uid()});
        if outside.get(&format!("peer {ip}")).await? != Some(record.clone()) {
            outside.put(&format!("peer {ip}"), record).await?;
        }
    }
    let is_over = !is_peer && age >= STARTS_AFTER + ENDS_AFTER;
    let (phase, ready) = if is_over { ("Succeeded", "False") } else { ("Running", "True") };
    let status = json!({
        "phase": phase, "podIP": ip, "podIPs": [{"ip": ip}], "startTime": created.to_string(),
        "conditions": [{"type": "Ready", "status": ready}],
    });
    let response = SyncResponse::from_status(status)?;
    Ok(if is_peer || is_over {
        response
    } else {
        response.requeue_after((STARTS_AFTER + ENDS_AFTER).saturating_sub(age))
    })
}

/// The address of a pod follows from the numbers in its name.
fn address(name: &str) -> String {
    let numbers: Vec<&str> = name.split('-').filter(|part| part.parse::<u8>().is_ok()).collect();
    match numbers.as_slice() {
        [group, ordinal, ..] => format!("10.1.{group}.{}", ordinal.parse::<u16>().unwrap_or_default() + 1),
        _ => "10.2.0.1".into(),
    }
}

/// What peers say, from what is outside.
pub(crate) struct Wires(pub(crate) External);

impl Wires {
    async fn who(&self, ip: &str) -> Result<Value, RpcError> {
        let record = self.0.get(&format!("peer {ip}")).await.map_err(broken)?;
        record.ok_or_else(|| RpcError::Unreachable("nobody is there".into()))
    }

    async fn wire(&self, one: &Value, other: &Value) -> Result<(String, Value, bool), RpcError> {
        let text = |peer: &Value| peer["name"].as_str().unwrap_or_default().to_owned();
        let (lesser, greater) = if text(one) < text(other) { (one, other) } else { (other, one) };
        let name = format!("wire {} {}", text(lesser), text(greater));
        // A peer that started anew has none of its wires left.
        let ends = json!([lesser["uid"], greater["uid"]]);
        let is_there = self.0.get(&name).await.map_err(broken)? == Some(ends.clone());
        Ok((name, ends, is_there))
    }
}

fn broken(error: ExternalError) -> RpcError {
    RpcError::Unreachable(error.to_string())
}

fn host(url: &str) -> &str {
    url.trim_start_matches("http://").split(':').next().unwrap_or_default()
}

fn id(peer: &Value) -> String {
    format!("id-{}", peer["name"].as_str().unwrap_or_default())
}

impl Rpc for Wires {
    fn asks_simulated(&self) -> bool {
        true
    }

    fn identity<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Identity, RpcError>> {
        Box::pin(async move {
            let ip = host(&peer.url);
            let addresses = vec![format!("/ip4/{ip}/tcp/4001"), "/ip4/127.0.0.1/tcp/4001".to_owned()];
            Ok(Identity { peer_id: id(&self.who(ip).await?), addresses })
        })
    }

    fn connections<'a>(&'a self, peer: &'a Endpoint) -> BoxFuture<'a, Result<Vec<String>, RpcError>> {
        Box::pin(async move {
            let own = self.who(host(&peer.url)).await?;
            let mut found = Vec::new();
            for name in (0..PEERS_MAX).map(|ordinal| format!("peers-0-{ordinal}")) {
                let Ok(other) = self.who(&address(&name)).await else { continue };
                if other["name"] != own["name"] && self.wire(&own, &other).await?.2 {
                    found.push(id(&other));
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
        Box::pin(async move {
            let own = self.who(host(&peer.url)).await?;
            let ip = addresses.first().and_then(|address| address.split('/').nth(2)).unwrap_or_default();
            let other = self.who(ip).await?;
            let (name, ends, is_there) = self.wire(&own, &other).await?;
            // Only what is missing is dialled; who was told so and never heard of it may be told again.
            let told = json!({"ends": ends, "dialledInVain": is_there});
            if is_there {
                self.0.put("in vain", told).await.map_err(broken)?;
            }
            self.0.put(&name, ends).await.map_err(broken)
        })
    }

    fn disturb<'a>(&'a self, _: &'a Endpoint, _: &'a Disturbance) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async { Err(RpcError::Unsupported("disturb")) })
    }
}

/// What the operator is given.
pub(crate) fn rpc(outside: External) -> Arc<dyn Rpc> {
    Arc::new(Wires(outside))
}
