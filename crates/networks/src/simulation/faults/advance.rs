//! What is recorded next.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::choose::choose;
use super::{EVERY_SECONDS, MEND_PATIENCE, Outcome, Step, View, end, seconds};
use crate::kinds::{DoomedPod, FaultAction, FaultPhase, FaultSpec, FaultStatus};
use crate::rpc::Disturbance;
use crate::time::later;

/// As many peers are named in a message.
const NAMED_MAX: usize = 5;

/// What is recorded after steps came to these outcomes: for each declared fault one status, in the same order.
pub fn advance(
    specs: &[FaultSpec],
    recorded: &[FaultStatus],
    view: View<'_>,
    outcomes: &[(Step, Outcome)],
) -> Vec<FaultStatus> {
    let mut by_fault: BTreeMap<usize, Vec<&(Step, Outcome)>> = BTreeMap::new();
    for outcome in outcomes {
        by_fault.entry(outcome.0.fault()).or_default().push(outcome);
    }
    let one = |(place, spec): (usize, &FaultSpec)| {
        let known = recorded.get(place).filter(|status| status.action == spec.action);
        let mut status = known.cloned().unwrap_or_else(|| waiting(spec.action));
        let own = by_fault.get(&place).map(Vec::as_slice).unwrap_or_default();
        match status.phase {
            FaultPhase::Waiting => begin(&mut status, place, spec, view),
            FaultPhase::Active => go_on(&mut status, place, spec, view, own),
            FaultPhase::Over | FaultPhase::Unsupported => {}
        }
        status
    };
    specs.iter().enumerate().map(one).collect()
}

fn waiting(action: FaultAction) -> FaultStatus {
    FaultStatus {
        action,
        phase: FaultPhase::Waiting,
        peers: Vec::new(),
        started_at: None,
        rounds: 0,
        pods: Vec::new(),
        addresses: Vec::new(),
        told: Vec::new(),
        message: String::new(),
    }
}

fn begin(status: &mut FaultStatus, place: usize, spec: &FaultSpec, view: View<'_>) {
    let due = later(view.began_at, seconds(spec.at_seconds));
    if view.now >= view.ends_at {
        status.phase = FaultPhase::Over;
        status.message = "the load was over before its time came".into();
    } else if view.now >= due {
        status.started_at = Some(Time(view.now));
        status.phase = FaultPhase::Active;
        round(status, place, spec, 1, view);
        if status.peers.is_empty() {
            status.phase = FaultPhase::Over;
            status.message = "there is no peer that it could happen to".into();
        }
    }
}

/// Chooses the peers of a round, and what is known of them is recorded.
fn round(status: &mut FaultStatus, place: usize, spec: &FaultSpec, number: i32, view: View<'_>) {
    status.peers = choose(spec, place, number, view.seed, view.names);
    match spec.action {
        FaultAction::Kill | FaultAction::Churn => {
            status.rounds = number;
            let there = |name: &String| {
                let uid = view.pods.get(name)?.clone();
                Some(DoomedPod { name: name.clone(), uid })
            };
            status.pods = status.peers.iter().filter_map(there).collect();
            let is_gone = |name: &&String| !view.pods.contains_key(*name);
            status.message = told("has no pod", status.peers.iter().filter(is_gone));
        }
        FaultAction::Partition | FaultAction::Pause | FaultAction::Latency => {}
    }
}

fn go_on(
    status: &mut FaultStatus,
    place: usize,
    spec: &FaultSpec,
    view: View<'_>,
    outcomes: &[&(Step, Outcome)],
) {
    let by_peer: BTreeMap<&str, &Outcome> =
        outcomes.iter().map(|(step, outcome)| (step.peer(), outcome)).collect();
    let is_done = |name: &str, wanted: fn(&Outcome) -> bool| by_peer.get(name).is_some_and(|of| wanted(of));
    let ended = view.now >= end(Some(spec), status, view);
    match status.action {
        FaultAction::Kill | FaultAction::Churn => {
            status.pods.retain(|pod| !is_done(&pod.name, |outcome| *outcome == Outcome::Done));
            note_failures(status, outcomes);
            if status.action == FaultAction::Kill {
                if status.pods.is_empty() {
                    status.phase = FaultPhase::Over;
                }
            } else if ended {
                status.phase = FaultPhase::Over;
                status.pods.clear();
            } else {
                let began = status.started_at.as_ref().map_or(view.now, |at| at.0);
                let every = i64::from(spec.every_seconds.unwrap_or(EVERY_SECONDS).max(1));
                // Rounds that nobody was there for are left out, not made up for.
                let number = i32::try_from(view.now.duration_since(began).as_secs() / every)
                    .unwrap_or(0)
                    .saturating_add(1);
                if number > status.rounds {
                    round(status, place, spec, number, view);
                }
            }
        }
        FaultAction::Partition if ended => mend(status, spec, view, outcomes),
        FaultAction::Partition => {
            note_failures(status, outcomes);
            if is_unsupported(outcomes) {
                status.phase = FaultPhase::Unsupported;
            }
        }
        FaultAction::Pause | FaultAction::Latency => {
            note_failures(status, outcomes);
            if status.told.is_empty() && is_unsupported(outcomes) {
                status.phase = FaultPhase::Unsupported;
                return;
            }
            let known: BTreeSet<&String> = status.told.iter().collect();
            let names = status.peers.iter().filter(|name| !known.contains(name));
            let settled =
                names.filter(|name| is_done(name, |outcome| !matches!(outcome, Outcome::Failed(_))));
            let settled: Vec<String> = settled.cloned().collect();
            status.told.extend(settled);
            if ended {
                status.phase = FaultPhase::Over;
                let known: BTreeSet<&String> = status.told.iter().collect();
                let untold = status.peers.iter().filter(|name| !known.contains(name));
                let untold = told("could not be reached", untold);
                if !untold.is_empty() {
                    status.message = untold;
                }
            }
        }
    }
}

/// A partition is over once everybody has been told so, or has had time enough to answer.
fn mend(status: &mut FaultStatus, spec: &FaultSpec, view: View<'_>, outcomes: &[&(Step, Outcome)]) {
    let is_settled = |(step, outcome): &&&(Step, Outcome)| {
        matches!(step, Step::Disturb { disturbance: Disturbance::Unblock(_), .. })
            && !matches!(outcome, Outcome::Failed(_))
    };
    let settled: BTreeSet<&str> = outcomes.iter().filter(is_settled).map(|(step, _)| step.peer()).collect();
    let everybody = view.names.iter().chain(view.peers.iter().map(|peer| &peer.name));
    let left: BTreeSet<&String> = everybody.filter(|name| !settled.contains(name.as_str())).collect();
    if left.is_empty() || view.blocked.is_empty() {
        status.phase = FaultPhase::Over;
    } else if view.now >= later(end(Some(spec), status, view), MEND_PATIENCE) {
        status.phase = FaultPhase::Over;
        status.message = told("may still keep others out: it did not answer at the end", left.into_iter());
    }
}

/// Whether nobody knows how.
fn is_unsupported(outcomes: &[&(Step, Outcome)]) -> bool {
    !outcomes.is_empty() && outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Unsupported)
}

fn note_failures(status: &mut FaultStatus, outcomes: &[&(Step, Outcome)]) {
    if outcomes.is_empty() {
        return;
    }
    let unsupported = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Unsupported);
    let mut message = vec![told("does not know how", unsupported.map(|(step, _)| step.peer()))];
    let first_failure = outcomes.iter().find_map(|(step, outcome)| match outcome {
        Outcome::Failed(why) => Some(format!("{}: {why}", step.peer())),
        Outcome::Done | Outcome::DoneWithoutEnd | Outcome::Unsupported => None,
    });
    message.extend(first_failure);
    let endless = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::DoneWithoutEnd);
    message.push(told("does not end it by itself", endless.map(|(step, _)| step.peer())));
    message.retain(|part| !part.is_empty());
    // What was not possible before is still to be read at the end.
    if !message.is_empty() || status.action == FaultAction::Partition {
        status.message = message.join("; ");
    }
}

/// `a, b and 3 more: what`. Empty without any.
fn told(what: &str, names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<String> = names.map(|name| name.as_ref().to_owned()).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    let first = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("{first}: {what}"),
        (false, more) => format!("{first} and {more} more: {what}"),
    }
}
