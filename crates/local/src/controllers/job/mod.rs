//! A Job runs pods to their end: as many at once as it allows, until enough have succeeded or too many have failed.
//!
//! - Each pod that is over is counted once, whatever happens in between: see [`tally`].
//! - Pods that have ended stay until the Job goes. The Job goes by itself if it says how long after its end.
//! - A Job that another controller manages is left alone.

pub(super) mod conditions;

mod backoff;
mod decide;
mod indexes;
mod make;
mod manage;
mod members;
mod policy;
mod tally;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use mainstay::events::Event;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};
use serde_json::Value;

use super::names::{Gone, Names};
use super::pods::{claim, kept, reference, selector_text};
use decide::decide;
use members::is_tracked;

/// The finalizer of pods that are not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label of pods of indexed Jobs.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often a pod's index had failed before.
const FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// And how often that was ignored.
const IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The value of `managedBy` that means this controller.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The controller of Jobs.
pub(super) fn controller(gone: Gone) -> Controller {
    let pods = ChildKind::of::<Pod>().adopt(|job: &Value| {
        let selector = serde_json::from_value(job["spec"]["selector"].clone()).unwrap_or_default();
        selector_text(&selector)
    });
    let pods = pods.finalizer_when_adopted(TRACKING);
    Controller::of::<Job>()
        .child(pods)
        .reads::<Pod>()
        .until_gone()
        .writes_parents()
        .sync(move |request: &SyncRequest| sync(request, &gone))
}

fn sync(request: &SyncRequest, gone: &Gone) -> Result<SyncResponse, Error> {
    let job: Job = request.parent()?;
    let is_ours = managed_by(&job).is_none_or(|manager| manager == MANAGER);
    if conditions::finished(&job).is_some() || request.is_deleting() || !is_ours {
        return leave(request, &job, is_ours);
    }
    let Some(selector) = job.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else {
        return Err(Error::terminal("the Job has no selector"));
    };
    let claimed = claim(request, selector)?;
    let mut decision = decide(&job, &claimed.own, request.now());
    if !claimed.free.is_empty() {
        // Those that are adopted count from the next sync on; until then nobody knows what is lacking.
        decision.new.clear();
    }
    let names = Names::of(request, &claimed.own);
    let is_taken = |name: &str| claimed.taken.contains(name) || gone.had(request, name);
    let new = make::new_pods(&job, &decision.new, &names, is_taken);
    let mut response = SyncResponse::from_status(&decision.status)?;
    response = names.record(response, new.first().and_then(|pod| pod.metadata.name.as_deref()));
    for pod in &claimed.own {
        if decision.deleted.iter().all(|deleted| deleted.name() != pod.name_any()) {
            response.add_child(kept::<Pod>(&pod.name_any()))?;
        }
    }
    for pod in &claimed.free {
        response.add_child(kept::<Pod>(&pod.name_any()))?;
    }
    let created = |pod: &Pod| Event::normal("SuccessfulCreate", &format!("Created pod: {}", pod.name_any()));
    let deleted = |name: &str| Event::normal("SuccessfulDelete", &format!("Deleted pod: {name}"));
    let mut events: Vec<Event> = new.iter().map(created).collect();
    events.extend(decision.deleted.iter().map(|pod| deleted(pod.name())));
    events.extend(decision.events);
    for pod in new {
        response.add_child(pod)?;
    }
    for member in &decision.let_go {
        response = response.let_go(reference(member.pod), TRACKING);
    }
    for pod in claimed.strayed {
        response = response.release(pod);
    }
    if decision.status_first {
        response = response.status_first();
    }
    if let Some(after) = decision.again_after {
        response = response.requeue_after(after);
    }
    Ok(events.into_iter().fold(response, SyncResponse::with_event))
}

/// A Job that nothing more is made for. Its pods have nobody to wait for; it goes when its time is up.
fn leave(request: &SyncRequest, job: &Job, is_ours: bool) -> Result<SyncResponse, Error> {
    let mut response = SyncResponse::new();
    let mut is_awaited = false;
    for pod in request.children::<Pod>().iter() {
        let pod = pod?;
        response.add_child(kept::<Pod>(&pod.name_any()))?;
        if is_ours && is_tracked(&pod) {
            is_awaited = true;
            response = response.let_go(reference(&pod), TRACKING);
        }
    }
    match time_left(job, request.now()).filter(|_| !is_awaited && !request.is_deleting()) {
        Some(Duration::ZERO) => Ok(response.delete_parent()),
        Some(left) => Ok(response.requeue_after(left)),
        None => Ok(response),
    }
}

/// How long a finished Job stays, if it says so; zero if no longer.
fn time_left(job: &Job, now: Timestamp) -> Option<Duration> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let finished = conditions::finished(job)?.last_transition_time.as_ref()?.0;
    let left = SignedDuration::from_secs(ttl.into()).saturating_sub(now.duration_since(finished));
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

fn managed_by(job: &Job) -> Option<&str> {
    job.spec.as_ref()?.managed_by.as_deref()
}
