//! What is true of networks and simulations in every state that a cluster is ever in.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use mainstay::Kind;
use mainstay_networks::kinds::labels::{self, role};
use mainstay_networks::peers;
use mainstay_testkit::simulation::{Check, State};
use serde_json::{Value, json};

use crate::simulation::pods::REGISTER;
use crate::simulation::world::{Dials, NAMESPACE, networks, simulations};

pub(crate) fn of_networks(check: Check, dials: Dials) -> Check {
    of_simulations(check, dials)
        .always("peers.json lists only peers that were there", lists_known_peers)
        .always("no connection is dialled that is there, or that a simulation keeps apart", nothing_in_vain)
        .always("a network that is ready has all its peers and connections", ready_is_ready)
        .always("a network has two Jobs at most, the former one going", one_job)
}

/// Where a former leader may still speak to peers, what it tells them after the end is over a while later: at rest nobody is kept out, as in a world where
/// nothing went wrong.
pub(crate) fn of_simulations(check: Check, dials: Dials) -> Check {
    match dials {
        Dials::Noted => check.always("who is judged keeps nobody apart", judged_is_mended),
        Dials::Forgiven => check.always("who keeps others out does so for a time", kept_out_for_a_time),
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Everyone in it has answered once: unless it is gone, it is known outside under the address that is told.
fn lists_known_peers(state: &State) -> Result<(), String> {
    for map in state.of(&Kind::of::<ConfigMap>()).filter(|map| name(map) == "keramik-peers") {
        let Some(text) = map["data"]["peers.json"].as_str() else { continue };
        // Somebody meddled; it is put right.
        let Ok(listed) = peers::read(text) else { continue };
        for peer in listed {
            let address = peer.rpc_addr.trim_start_matches("http://").trim_end_matches(":5001");
            let is_known = state.external().get(REGISTER).is_some_and(|all| !all[address].is_null());
            let is_there = state.get(&Kind::of::<Pod>(), NAMESPACE, &peer.name).is_some();
            if is_there && !is_known {
                return Err(format!("{} never answered", peer.name));
            }
        }
    }
    Ok(())
}

fn nothing_in_vain(state: &State) -> Result<(), String> {
    let dials = ["dialled in vain", "dialled across"];
    let found = dials.iter().find_map(|dial| Some(format!("{dial}: {}", state.external().get(*dial)?)));
    found.map_or(Ok(()), Err)
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
    let connects = |job: &&Value| job["metadata"]["labels"][labels::ROLE] == role::BOOTSTRAP;
    let jobs = state.of(&Kind::of::<Job>()).filter(is_live).filter(connects);
    let jobs: Vec<&str> = jobs.map(name).collect();
    if jobs.len() > 2 { Err(format!("{jobs:?}")) } else { Ok(()) }
}

fn kept_out_for_a_time(state: &State) -> Result<(), String> {
    none_kept_out(state, |kept| !ends(kept))
}

/// Once there is a verdict, everybody lets everybody in. What a simulation leaves behind that was deleted ends by itself.
fn judged_is_mended(state: &State) -> Result<(), String> {
    let simulations: Vec<&Value> = state.of(&simulations()).collect();
    if simulations.iter().any(|simulation| simulation["status"]["phase"] != "Finished") {
        return Ok(());
    }
    let may_last = |kept: &Value| simulations.is_empty() && ends(kept);
    none_kept_out(state, |kept| *kept != json!({}) && !may_last(kept))
}

/// Whether a peer lets all whom it keeps out in again by itself.
fn ends(kept: &Value) -> bool {
    kept.as_object().is_some_and(|kept| kept.values().all(Value::is_i64))
}

fn none_kept_out(state: &State, is_wrong: impl Fn(&Value) -> bool) -> Result<(), String> {
    let kept = state.external().iter().filter(|(name, kept)| name.ends_with("keeps out") && is_wrong(kept));
    let kept: Vec<String> = kept.map(|(name, kept)| format!("{name} {kept}")).collect();
    if kept.is_empty() { Ok(()) } else { Err(kept.join(", ")) }
}
