//! What is true of networks in every state that a cluster is ever in.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::Kind;
use mainstay_networks::peers;
use mainstay_testkit::simulation::{Check, State};
use serde_json::Value;

use crate::world::networks;

pub(crate) fn always(check: Check) -> Check {
    check
        .always("peers.json lists only peers that were there", lists_known_peers)
        .always("no connection is dialled that is there", nothing_in_vain)
        .always("a network that is ready has all its peers and connections", ready_is_ready)
        .always("a network has two Jobs at most, the former one going", one_job)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Everyone in it has answered once: has a record outside, under the address that is told.
fn lists_known_peers(state: &State) -> Result<(), String> {
    for map in state.of(&Kind::of::<ConfigMap>()).filter(|map| name(map) == "keramik-peers") {
        let Some(text) = map["data"]["peers.json"].as_str() else { continue };
        // Somebody meddled; it is put right.
        let Ok(listed) = peers::read(text) else { continue };
        for peer in listed {
            let address = peer.rpc_addr.trim_start_matches("http://").trim_end_matches(":5001");
            if !state.external().contains_key(&format!("peer {address}")) {
                return Err(format!("{} never answered", peer.name));
            }
        }
    }
    Ok(())
}

fn nothing_in_vain(state: &State) -> Result<(), String> {
    state.external().get("in vain").map_or(Ok(()), |wire| Err(wire.to_string()))
}

fn ready_is_ready(state: &State) -> Result<(), String> {
    for network in state.of(&networks()) {
        let (status, spec) = (&network["status"], &network["spec"]);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.into_iter().any(|condition| {
            condition["type"] == "Ready"
                && condition["status"] == "True"
                && condition["observedGeneration"] == network["metadata"]["generation"]
        });
        if is_ready && (status["readyReplicas"] != spec["replicas"] || status["edges"]["missing"] != 0) {
            return Err(format!("{} says so: {status}", name(network)));
        }
    }
    Ok(())
}

fn one_job(state: &State) -> Result<(), String> {
    let is_live = |job: &&Value| job["metadata"]["deletionTimestamp"].is_null();
    let jobs: Vec<&str> = state.of(&Kind::of::<Job>()).filter(is_live).map(name).collect();
    if jobs.len() > 2 { Err(format!("{jobs:?}")) } else { Ok(()) }
}
