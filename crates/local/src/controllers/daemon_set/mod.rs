//! `DaemonSets`: one pod on every node that wants one.
//!
//! ```text
//! set, nodes, its pods, revisions ─▶ pod (which nodes want one, which pod is for which) ─▶ sites
//!                                 ─▶ decide (where one is made, which ones go) ─▶ pods
//!                                 ─▶ status
//! ```
//!
//! A pod is made for a node by its affinity; the scheduler binds it. Nothing else is ever changed about it.

mod decide;
mod pod;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use mainstay::events::Event;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};

use self::decide::{Acts, Daemon, Health, Site, State, Update, decide};
use self::pod::Edition;
use super::bounds::AT_ONCE_MAX;
use super::names::{Gone, Names};
use super::pods::{self, Availability, availability};
use super::revisions::{self, Revisions};
use super::share::{Round, share};

/// A pod that failed is replaced when it is this old: a node that refuses pods is not asked again at once.
const REST: Duration = Duration::from_secs(1);

/// The controller.
pub(super) fn controller(gone: Gone) -> Controller {
    Controller::of::<DaemonSet>()
        .child(revisions::child_kind())
        .child(ChildKind::of::<Pod>().adopt(revisions::parent_selector))
        .reads::<ControllerRevision>()
        .reads::<Node>()
        .reads::<Pod>()
        .sync(move |request: &SyncRequest| sync(request, &gone))
}

fn sync(request: &SyncRequest, gone: &Gone) -> Result<SyncResponse, Error> {
    let set: DaemonSet = request.parent()?;
    let spec = set.spec.unwrap_or_default();
    let known_collisions = set.status.and_then(|status| status.collision_count);
    let revisions = revisions::observe(request, &spec.selector, pod::HASH, known_collisions)?;
    let edition = Edition::new(hash(revisions.update()), set.metadata.annotations.as_ref());
    let pods::Claimed { own, free, strayed, taken } = pods::claim(request, &spec.selector)?;
    let free_names: BTreeSet<String> = free.iter().map(Pod::name_any).collect();
    let pods: Vec<Pod> = own.into_iter().chain(free).collect();
    let sites = sites(&spec, &request.select("")?, &pods, &edition, request.now());
    let acts = decide(&sites, update(&spec, &sites));

    let collisions = pods::unless_zero(revisions.collisions()).or(known_collisions);
    let mut response = SyncResponse::from_status(status::status(&sites, collisions))?;
    for revision in revisions.children(&surplus(&revisions, &spec, &pods)) {
        response.add_child(revision)?;
    }
    for pod in &pods {
        let name = pod.name_any();
        // What is taken over is first made the set's own; then it is as any other.
        if free_names.contains(&name) || !acts.delete.contains(&name) {
            response.add_child(pods::kept::<Pod>(&name))?;
        } else {
            response = tell_deletion(response, pod);
        }
    }
    response = make((request, gone), &spec, &edition, (&acts, &pods, &taken), response)?;
    for pod in strayed {
        response = response.release(pod);
    }
    Ok(match next_look(&spec, &pods, request.now()) {
        Some(after) => response.requeue_after(after),
        None => response,
    })
}

/// Adds the pods that are to be made.
fn make(
    (request, gone): (&SyncRequest, &Gone),
    spec: &DaemonSetSpec,
    edition: &Edition,
    (acts, pods, taken): (&Acts, &[Pod], &BTreeSet<String>),
    mut response: SyncResponse,
) -> Result<SyncResponse, Error> {
    let set = request.name();
    let prefix = format!("{set}-");
    let names = Names::of(request, pods);
    let new: Vec<String> = {
        let is_taken = |name: &str| taken.contains(name) || gone.had(request, name);
        let new = names.new_names(|_| prefix.clone(), is_taken);
        new.take(acts.make.len().min(AT_ONCE_MAX)).collect()
    };
    for (node, name) in acts.make.iter().zip(&new) {
        response.add_child(pod::new_pod(set, &spec.template, edition, name, node))?;
        response = response.with_event(Event::normal("SuccessfulCreate", &format!("Created pod: {name}")));
    }
    Ok(names.record(response, new.first().map(String::as_str)))
}

/// Why a pod goes, and that it does.
fn tell_deletion(response: SyncResponse, pod: &Pod) -> SyncResponse {
    let name = pod.name_any();
    let (namespace, node) = (pod.namespace().unwrap_or_default(), pod::node_of(pod).unwrap_or_default());
    let place = format!("daemon pod {namespace}/{name} on node {node}");
    let response = match pods::phase(pod) {
        "Failed" => response.with_event(Event::warning(
            "FailedDaemonPod",
            &format!("Found failed {place}, will try to kill it"),
        )),
        "Succeeded" => response.with_event(Event::normal(
            "SucceededDaemonPod",
            &format!("Found succeeded {place}, will try to delete it"),
        )),
        _ => response,
    };
    response.with_event(Event::normal("SuccessfulDelete", &format!("Deleted pod: {name}")))
}

/// The hash that pods of a revision carry.
fn hash(revision: &ControllerRevision) -> &str {
    let label = revision.metadata.labels.as_ref().and_then(|labels| labels.get(pod::HASH));
    label.or(revision.metadata.name.as_ref()).map_or("", String::as_str)
}

/// All nodes, and those that only pods know of, by name.
fn sites(spec: &DaemonSetSpec, nodes: &[Node], pods: &[Pod], edition: &Edition, now: Timestamp) -> Vec<Site> {
    let mut sites: BTreeMap<String, Site> = BTreeMap::new();
    let empty = |node: &str| Site { node: node.to_owned(), place: None, pods: Vec::new() };
    for node in nodes {
        let name = node.name_any();
        let site = Site { place: Some(pod::place(&spec.template, node)), ..empty(&name) };
        sites.insert(name, site);
    }
    let mut pods: Vec<&Pod> = pods.iter().collect();
    pods.sort_by_cached_key(|pod| {
        let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        (!is_bound, pod.creation_timestamp().map(|time| time.0), pod.name_any())
    });
    for pod in pods {
        // One that has ended and goes is as good as gone.
        let is_over = pods::has_ended(pod) && pods::is_going(pod);
        if let Some(node) = pod::node_of(pod).filter(|_| !is_over) {
            let site = sites.entry(node.to_owned()).or_insert_with(|| empty(node));
            site.pods.push(daemon(pod, spec, edition, now));
        }
    }
    sites.into_values().collect()
}

fn daemon(pod: &Pod, spec: &DaemonSetSpec, edition: &Edition, now: Timestamp) -> Daemon {
    let state = if pods::is_going(pod) {
        State::Going
    } else if rest(pod, now).is_some() {
        State::Resting
    } else if pods::has_ended(pod) {
        State::Ended
    } else {
        State::Live
    };
    Daemon {
        name: pod.name_any(),
        state,
        is_updated: edition.includes(pod),
        health: match availability(pod, spec.min_ready_seconds, now) {
            Availability::Available => Health::Available,
            Availability::After(_) => Health::Ready,
            Availability::Unready => Health::Unready,
        },
        is_bound: pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()),
    }
}

/// How long a pod that failed is left alone.
fn rest(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let made = pod.creation_timestamp()?.0;
    let age = Duration::try_from(now.duration_since(made)).unwrap_or_default();
    REST.checked_sub(age).filter(|rest| pods::phase(pod) == "Failed" && !rest.is_zero())
}

/// When time alone changes something.
fn next_look(spec: &DaemonSetSpec, pods: &[Pod], now: Timestamp) -> Option<Duration> {
    let available = |pod: &Pod| match availability(pod, spec.min_ready_seconds, now) {
        Availability::After(time) => Some(time),
        _ => None,
    };
    pods.iter().filter_map(|pod| available(pod).or(rest(pod, now))).min()
}

fn update(spec: &DaemonSetSpec, sites: &[Site]) -> Update {
    let strategy = spec.update_strategy.clone().unwrap_or_default();
    if strategy.type_.as_deref() == Some("OnDelete") {
        return Update::OnDelete;
    }
    let rolling = strategy.rolling_update.unwrap_or_default();
    let wanted = pods::count(sites, |site| site.place == Some(pod::Place::Wanted));
    let count = |value: Option<_>| {
        let count = value.map_or(0, |value| share(&value, wanted, Round::Up));
        usize::try_from(count).unwrap_or(0)
    };
    match (count(rolling.max_surge), count(rolling.max_unavailable)) {
        // Nothing could ever be updated.
        (0, 0) => Update::Rolling { surge: 0, unavailable: 1 },
        (surge, unavailable) => Update::Rolling { surge, unavailable },
    }
}

/// Revisions that nothing needs any more.
fn surplus<'a>(revisions: &'a Revisions, spec: &DaemonSetSpec, pods: &[Pod]) -> Vec<&'a str> {
    let label = |pod: &Pod| pod.metadata.labels.as_ref().and_then(|labels| labels.get(pod::HASH)).cloned();
    let live: BTreeSet<String> = pods.iter().filter_map(label).collect();
    revisions.surplus(spec.revision_history_limit, true, |revision| live.contains(hash(revision)))
}
