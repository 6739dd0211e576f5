//! A `ReplicaSet` keeps so many pods of one template.
//!
//! ```text
//! its pods, and those that fit its selector ─▶ adopt, release ─▶ too few: new ones; too many: order says which go ─▶ status
//! ```
//!
//! - A pod that has ended is no longer one of its pods: another takes its place, and it stays where it is.
//! - Pods that fit the selector and are nobody's are adopted first, all of them. Only then is counted.
//! - No pod is ever changed, whatever becomes of the template.

mod order;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use mainstay::events::Event;
use mainstay::plan::Waiting;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};
use serde_json::Value;

use super::bounds::{CONDITION, Crowd, REASON};
use super::names::{Gone, Names};
use super::pods::{self, Availability, Claimed};
use crate::time::whole_seconds;

pub(super) fn controller(gone: Gone) -> Controller {
    let pods = ChildKind::of::<Pod>().adopt(|set| {
        let selector: LabelSelector =
            serde_json::from_value(set["spec"]["selector"].clone()).unwrap_or_default();
        pods::selector_text(&selector)
    });
    Controller::of::<ReplicaSet>()
        .child(pods)
        .reads::<Pod>()
        .reads::<ReplicaSet>()
        .problem_condition(CONDITION, failure)
        .until_gone()
        .sync(move |request: &SyncRequest| sync(request, &gone))
}

/// What a set says that cannot have its pods, or cannot be rid of them.
fn failure(problem: &Waiting) -> Option<(String, String)> {
    match problem {
        Waiting::Forbidden { verb, message, .. } if verb == "delete" => {
            Some(("FailedDelete".to_owned(), message.clone()))
        }
        Waiting::Forbidden { message, .. } | Waiting::Rejected { message, .. } => {
            Some(("FailedCreate".to_owned(), message.clone()))
        }
        _ => None,
    }
}

fn sync(request: &SyncRequest, gone: &Gone) -> Result<SyncResponse, Error> {
    let set: ReplicaSet = request.parent()?;
    let spec = set.spec.clone().unwrap_or_default();
    let claimed = pods::claim(request, &spec.selector)?;
    let active: Vec<Pod> = claimed.own.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let going = pods::count(&claimed.own, |pod| pods::is_going(pod) && !pods::has_ended(pod));
    let mut status = status(&spec, &active, going, request.now());
    status.conditions =
        held_back(&set, missing(&spec, &claimed, &active), &active, request.now()).map(|told| vec![told]);
    let mut response = SyncResponse::from_status(status)?;
    if let Some(wait) = next_available(&active, spec.min_ready_seconds, request.now()) {
        response = response.requeue_after(wait);
    }
    if request.is_deleting() {
        return Ok(response);
    }
    decide((request, gone), &set, &spec, &claimed, &active, response)
}

/// Which pods stay, which are made and which go.
fn decide(
    (request, gone): (&SyncRequest, &Gone),
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    claimed: &Claimed,
    active: &[Pod],
    mut response: SyncResponse,
) -> Result<SyncResponse, Error> {
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
    let adopts = claimed.free.iter().any(pods::is_active);
    let missing = missing(spec, claimed, active);
    let surplus = if adopts { 0 } else { active.len().saturating_sub(wanted) };
    let leaving = match surplus {
        0 => Vec::new(),
        all if all == active.len() => active.iter().collect(),
        some => order::first_to_go(active, some, &neighbours(request, set)?, request.now()),
    };
    for name in leaving.iter().map(|pod| pod.name_any()) {
        response = response.with_event(Event::normal("SuccessfulDelete", &format!("Deleted pod: {name}")));
    }
    let leaving: BTreeSet<String> = leaving.into_iter().map(Pod::name_any).collect();
    let staying =
        claimed.own.iter().filter(|pod| !pods::is_going(*pod) && !leaving.contains(&pod.name_any()));
    let adopted = claimed.free.iter().filter(|pod| pods::is_active(pod));
    for pod in staying.chain(adopted) {
        response.add_child(pods::kept::<Pod>(&pod.name_any()))?;
    }
    for pod in &claimed.strayed {
        response = response.release(pod.clone());
    }
    let prefix = format!("{}-", request.name());
    let template = spec.template.clone().unwrap_or_default();
    let names = Names::of(request, &claimed.own);
    // A name that any pod has is passed over, also one whose labels do not fit: it may have been released.
    let is_there = |name: &str| request.get::<Pod>(name).is_ok_and(|pod| pod.is_some());
    let is_taken = |name: &str| claimed.taken.contains(name) || gone.had(request, name) || is_there(name);
    let room = Crowd::of(active).room(missing);
    let new: Vec<String> = names.new_names(|_| prefix.clone(), is_taken).take(room).collect();
    for name in &new {
        response = response.with_event(Event::normal("SuccessfulCreate", &format!("Created pod: {name}")));
        response.add_child(new_pod(&template, &prefix, name))?;
    }
    Ok(names.record(response, new.first().map(String::as_str)))
}

/// How many pods are lacking. Those that are adopted now count from the next sync on.
fn missing(spec: &ReplicaSetSpec, claimed: &Claimed, active: &[Pod]) -> usize {
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
    if claimed.free.iter().any(pods::is_active) { 0 } else { wanted.saturating_sub(active.len()) }
}

/// The condition of a set that asks for more pods than it gets.
fn held_back(
    set: &ReplicaSet,
    missing: usize,
    active: &[Pod],
    now: Timestamp,
) -> Option<ReplicaSetCondition> {
    let message = Crowd::of(active).held_back(missing)?;
    let known = set.status.as_ref().and_then(|status| status.conditions.as_ref());
    let known = known.into_iter().flatten().find(|known| known.type_ == CONDITION && known.status == "True");
    Some(ReplicaSetCondition {
        type_: CONDITION.to_owned(),
        status: "True".to_owned(),
        reason: Some(REASON.to_owned()),
        message: Some(message),
        last_transition_time: known
            .map_or_else(|| Some(whole_seconds(now)), |known| known.last_transition_time.clone()),
    })
}

fn new_pod(template: &PodTemplateSpec, prefix: &str, name: &str) -> Value {
    let mut pod = pods::pod_from(template, name);
    pod.metadata.generate_name = Some(prefix.to_owned());
    serde_json::json!(pod)
}

/// How many active pods there are on each node of this set and those that have the same controller: a Deployment's other sets.
fn neighbours(request: &SyncRequest, set: &ReplicaSet) -> Result<BTreeMap<String, usize>, Error> {
    let mut on_node = BTreeMap::new();
    let Some(controller) = pods::controller_uid(set) else { return Ok(on_node) };
    let sets: Vec<ReplicaSet> = request.select("")?;
    for set in sets.iter().filter(|set| pods::controller_uid(*set) == Some(controller)) {
        let Some(spec) = &set.spec else { continue };
        let pods: Vec<Pod> = request.select(&pods::selector_text(&spec.selector))?;
        for pod in pods.iter().filter(|pod| pods::is_active(pod)) {
            *on_node.entry(order::node_of(pod).to_owned()).or_default() += 1;
        }
    }
    Ok(on_node)
}

fn status(spec: &ReplicaSetSpec, active: &[Pod], going: i32, now: Timestamp) -> ReplicaSetStatus {
    let labels = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let is_fully_labelled =
        |pod: &Pod| labels.into_iter().flatten().all(|(name, value)| pod.labels().get(name) == Some(value));
    let is_available =
        |pod: &Pod| pods::availability(pod, spec.min_ready_seconds, now) == Availability::Available;
    ReplicaSetStatus {
        replicas: pods::count(active, |_| true),
        fully_labeled_replicas: pods::unless_zero(pods::count(active, is_fully_labelled)),
        ready_replicas: pods::unless_zero(pods::count(active, pods::is_ready)),
        available_replicas: pods::unless_zero(pods::count(active, is_available)),
        terminating_replicas: Some(going),
        conditions: None,
        observed_generation: None,
    }
}

/// When the next of the pods that are ready will have been so for long enough.
fn next_available(active: &[Pod], min_ready_seconds: Option<i32>, now: Timestamp) -> Option<Duration> {
    let waits = active.iter().filter_map(|pod| match pods::availability(pod, min_ready_seconds, now) {
        Availability::After(wait) => Some(wait),
        Availability::Available | Availability::Unready => None,
    });
    waits.min()
}
