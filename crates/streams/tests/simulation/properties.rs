//! What is true of streams in every state that a cluster is ever in.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_streams::kinds::{ActiveRun, labels};
use mainstay_testkit::simulation::{Check, State};
use serde_json::Value;

use crate::simulation::world::{GENERATION, feeds};

/// How many past runs a status has room for, unless a class says otherwise.
const HISTORY: usize = 5;

pub(crate) fn always(check: Check) -> Check {
    check
        .always("a stream has one Job at most", one_job)
        .always("the pods of one run at most are alive", one_run)
        .always("a stream that is said to be suspended has no Job", suspended_has_no_job)
        .always("a Job is gone only when it is recorded how it ended", no_outcome_is_lost)
        .always("only the user changes the spec of a stream", spec_is_the_users)
}

fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn stream_of(object: &Value) -> Option<&str> {
    label(object, labels::STREAM_UID)
}

/// Jobs and `CronJob`s that the operator made, with the uid of their stream. Those that a `CronJob` made are not among them.
fn made(state: &State) -> impl Iterator<Item = (&str, &Value)> {
    let all = state.of(&Kind::of::<Job>()).chain(state.of(&Kind::of::<CronJob>()));
    let is_made = |object: &&Value| !object["metadata"]["annotations"][labels::RUN].is_null();
    all.filter(is_made).filter_map(|object| Some((stream_of(object)?, object)))
}

/// Not even one that is being deleted beside one that is not: the next run waits until the last is gone.
fn one_job(state: &State) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (stream, object) in made(state) {
        if let Some(other) = seen.insert(stream, name(object)) {
            return Err(format!("{other} and {}", name(object)));
        }
    }
    Ok(())
}

fn one_run(state: &State) -> Result<(), String> {
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pod in state.of(&Kind::of::<Pod>()) {
        let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if let (Some(stream), Some(job), false) =
            (stream_of(pod), label(pod, "batch.kubernetes.io/job-name"), is_over)
        {
            seen.entry(stream).or_default().insert(job);
        }
    }
    match seen.values().find(|jobs| jobs.len() > 1) {
        Some(jobs) => Err(format!("those of {jobs:?}")),
        None => Ok(()),
    }
}

/// A stream that was suspended a moment ago may get a Job of which the operator had decided before; but once its status says that it is
/// suspended, and is about the present spec, there is none and none comes.
fn suspended_has_no_job(state: &State) -> Result<(), String> {
    for stream in state.of(&feeds()) {
        let (metadata, status) = (&stream["metadata"], &stream["status"]);
        let is_told = status["phase"] == "Suspended"
            && status["observedGeneration"] == metadata["generation"]
            && stream["spec"]["suspended"] == true;
        let is_live = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
        let mut jobs = made(state).filter(|(of, job)| metadata["uid"] == **of && is_live(job));
        if let (true, Some((_, job))) = (is_told, jobs.next()) {
            return Err(format!("{} has {}", name(stream), name(job)));
        }
    }
    Ok(())
}

/// Each run that the status knows to have been is told of in it, or is still there to be told of.
fn no_outcome_is_lost(state: &State) -> Result<(), String> {
    for stream in state.of(&feeds()) {
        let status = mainstay_streams::record::read(stream);
        let mut known: BTreeSet<u64> = status.history.iter().map(|past| past.number).collect();
        let oldest = known.first().copied().unwrap_or_default();
        let first = if status.history.len() < HISTORY { 1 } else { oldest };
        known.extend(status.run.as_ref().map(|run| run.number));
        let jobs = made(state).filter(|(of, _)| stream["metadata"]["uid"] == **of);
        known.extend(jobs.filter_map(|(_, job)| {
            let run = job["metadata"]["annotations"][labels::RUN].as_str()?;
            serde_json::from_str::<ActiveRun>(run).ok().map(|run| run.number)
        }));
        if let Some(lost) = (first..=status.runs_started).find(|number| !known.contains(number)) {
            return Err(format!("nobody knows what became of run {lost} of {}", name(stream)));
        }
    }
    Ok(())
}

/// The user says which generation a change makes.
fn spec_is_the_users(state: &State) -> Result<(), String> {
    for stream in state.of(&feeds()) {
        let metadata = &stream["metadata"];
        let said = metadata["annotations"][GENERATION].as_str().unwrap_or_default();
        if metadata["generation"].as_u64() != said.parse().ok() {
            return Err(format!("{} is generation {}, not {said}", name(stream), metadata["generation"]));
        }
    }
    Ok(())
}
