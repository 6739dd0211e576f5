//! Simulations.

use std::collections::BTreeMap;

use http::Uri;

use super::{Found, MOST_PEERS, Problem, names};
use crate::config::{SimulationConfig, Throttle};
use crate::kinds::{Aggregation, CriterionSpec, FaultAction, FaultSpec, Metric};

/// What is wrong with the name of a simulation, which its workers' names begin with: `NAME-worker-1999`.
pub fn simulation_name_problems(name: &str) -> Vec<Problem> {
    let mut found = Found::default();
    let longest = format!("-worker-{}", MOST_PEERS - 1).len();
    found.add_some("metadata.name", names::label(name, names::LABEL_LENGTH - longest));
    found.0
}

/// What is wrong with a simulation. Whether the network has the peers that faults name is known only when it runs.
pub fn simulation_problems(config: &SimulationConfig) -> Vec<Problem> {
    let mut found = Found::default();
    found.within("spec.users", config.users, 1, 10_000);
    found.within("spec.runTimeSeconds", config.run_time_seconds, 1, 86_400);
    if let Throttle::PerSecond(requests) = config.throttle_requests
        && requests < 1
    {
        found.add("spec.throttleRequests", format!("must be at least 1, not {requests}"));
    }
    found.not_empty("spec.image", &config.image);
    found.pull_policy("spec.imagePullPolicy", &config.image_pull_policy);
    let endpoint = &config.otlp_endpoint;
    if !endpoint.is_empty() && !is_http(endpoint) {
        let message = format!("must be an http address such as http://collector:4318, not {endpoint:?}");
        found.add("spec.otlpEndpoint", message);
    }
    let mut taken = BTreeMap::new();
    for (place, criterion) in config.criteria.iter().enumerate() {
        let path = format!("spec.criteria[{place}]");
        check_criterion(criterion, &path, &mut found);
        if let Some(name) = &criterion.name
            && let Some(first) = taken.insert(name.as_str(), place)
        {
            let message = format!("must be another than {name:?}, which spec.criteria[{first}] is called");
            found.add(format!("{path}.name"), message);
        }
    }
    for (place, fault) in config.faults.iter().enumerate() {
        check_fault(fault, config.run_time_seconds, &format!("spec.faults[{place}]"), &mut found);
    }
    found.0
}

/// Whether it is an address with a host and nothing behind it that the path of OTLP would be put after.
fn is_http(text: &str) -> bool {
    let is_plain = |uri: &Uri| uri.scheme_str() == Some("http") && uri.query().is_none();
    text.parse().is_ok_and(|uri: Uri| is_plain(&uri) && uri.host().is_some_and(|host| !host.is_empty()))
}

fn check_criterion(criterion: &CriterionSpec, path: &str, found: &mut Found) {
    if criterion.name.as_ref().is_some_and(String::is_empty) {
        found.add(format!("{path}.name"), "must not be empty");
    }
    if !criterion.threshold.is_finite() {
        found.add(
            format!("{path}.threshold"),
            format!("must be a finite number, not {}", criterion.threshold),
        );
    }
    let is_sampled =
        matches!(criterion.metric, Metric::ReadyPeers | Metric::MissingEdges | Metric::Components);
    if criterion.aggregation == Some(Aggregation::Last) && !is_sampled {
        let message =
            "must not be last, because only readyPeers, missingEdges and components have a last value";
        found.add(format!("{path}.aggregation"), message);
    }
}

fn check_fault(fault: &FaultSpec, run_time: i32, path: &str, found: &mut Found) {
    let at = fault.at_seconds;
    if !(0..run_time).contains(&at) {
        let message =
            format!("must be from 0 to less than the {run_time} seconds of spec.runTimeSeconds, not {at}");
        found.add(format!("{path}.atSeconds"), message);
    }
    let action = fault.action;
    let mut only = |field: &str, value: Option<i32>, most: i32, used_by: &[FaultAction], told: &str| {
        let Some(value) = value else { return };
        if !used_by.contains(&action) {
            found.add(format!("{path}.{field}"), format!("must not be given: only {told} uses it"));
        } else if !(1..=most).contains(&value) {
            found.add(format!("{path}.{field}"), format!("must be from 1 to {most}, not {value}"));
        }
    };
    let lasting = [FaultAction::Pause, FaultAction::Latency, FaultAction::Partition, FaultAction::Churn];
    only("durationSeconds", fault.duration_seconds, 86_400, &lasting, "pause, latency, partition or churn");
    only("latencyMilliseconds", fault.latency_milliseconds, 60_000, &[FaultAction::Latency], "latency");
    only("everySeconds", fault.every_seconds, 3600, &[FaultAction::Churn], "churn");
    let left = run_time.saturating_sub(at);
    if let Some(lasts) = fault.duration_seconds
        && lasting.contains(&action)
        && (1..lasts).contains(&left)
    {
        let message =
            format!("must be at most {left}, because spec.runTimeSeconds is over then, not {lasts}");
        found.add(format!("{path}.durationSeconds"), message);
    }
    check_chosen(fault, path, found);
}

/// The peers that a fault happens to.
fn check_chosen(fault: &FaultSpec, path: &str, found: &mut Found) {
    if let Some(count) = fault.count {
        found.within(format!("{path}.count"), count, 1, 1000);
        if fault.peers.is_some() {
            found.add(format!("{path}.count"), format!("must not be given together with {path}.peers"));
        }
    }
    let mut taken = BTreeMap::new();
    for (place, peer) in fault.peers.iter().flatten().enumerate() {
        let field = format!("{path}.peers[{place}]");
        found.not_empty(field.as_str(), peer);
        if let Some(first) = taken.insert(peer.as_str(), place) {
            found.add(field, format!("must be another than {peer:?}, which {path}.peers[{first}] is"));
        }
    }
    if fault.peers.as_ref().is_some_and(Vec::is_empty) {
        found.add(format!("{path}.peers"), "must not be empty if it is given");
    }
}
