//! A Deployment's conditions: `Available`, `Progressing` and, if a set cannot have its pods, `ReplicaFailure`.
//!
//! `Progressing` is a memory: its time is that of the last step forward. When there was none for `progressDeadlineSeconds`, the
//! rollout counts as failed, until it gets on after all.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, ReplicaSet, ReplicaSetCondition,
};
use kube::ResourceExt as _;

use super::annotations;
use super::limits::Wish;
use super::sets::Revisions;
use super::status::Progress;
use crate::time::whole_seconds;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";

const FOUND: &str = "FoundNewReplicaSet";
const CREATED: &str = "NewReplicaSetCreated";
const UPDATED: &str = "ReplicaSetUpdated";
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";

/// What a Deployment is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// It rolls out, or has.
    Rolling,
    /// It is paused or scaled, or it goes: how a rollout gets on is not looked at.
    Else,
}

/// What conditions depend on besides the sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) spec: &'a DeploymentSpec,
    pub(super) wish: &'a Wish,
    pub(super) doing: Doing,
    /// The name that a set for the present template is made under.
    pub(super) name: &'a str,
    pub(super) now: Timestamp,
}

/// A Deployment's conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conditions(Vec<DeploymentCondition>);

/// The conditions that a Deployment should have, by those that it has.
pub(super) fn told(of: &Told<'_>, revisions: &Revisions, progress: Progress) -> Conditions {
    let known = of.deployment.status.as_ref().and_then(|status| status.conditions.clone());
    let mut conditions = Conditions(known.unwrap_or_default());
    let deadline = deadline(of.spec);
    if deadline.is_some() {
        conditions.note_pause(of.spec.paused == Some(true), of.now);
    }
    conditions.note_availability(progress.is_available(of.wish), of.now);
    match (of.doing, deadline) {
        (Doing::Else, _) => return conditions,
        (_, None) => conditions.remove(PROGRESSING),
        (Doing::Rolling, Some(deadline)) => conditions.note_progress(of, revisions, progress, deadline),
    }
    conditions.note_failure(revisions);
    conditions
}

/// After how long without a step forward a rollout has failed, if ever.
fn deadline(spec: &DeploymentSpec) -> Option<SignedDuration> {
    let seconds = spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

impl Conditions {
    /// The known ones first, in an order that is always the same.
    pub(super) fn list(&self) -> Vec<DeploymentCondition> {
        let mut list = self.0.clone();
        let place =
            |type_: &str| [AVAILABLE, PROGRESSING, REPLICA_FAILURE].iter().position(|known| *known == type_);
        list.sort_by_key(|condition| place(&condition.type_).unwrap_or(usize::MAX));
        list
    }

    fn get(&self, type_: &str) -> Option<&DeploymentCondition> {
        self.0.iter().find(|condition| condition.type_ == type_)
    }

    fn remove(&mut self, type_: &str) {
        self.0.retain(|condition| condition.type_ != type_);
    }

    /// Sets a condition, unless it says the same already. When it last changed its mind is when its status did.
    fn set(&mut self, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
        let same =
            |known: &&DeploymentCondition| known.status == status && known.reason.as_deref() == Some(reason);
        if self.get(type_).as_ref().is_none_or(|known| !same(known)) {
            self.replace(type_, status, reason, message, now);
        }
    }

    fn replace(&mut self, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
        let now = Some(whole_seconds(now));
        let since = self.get(type_).filter(|known| known.status == status);
        let since = since.map_or_else(|| now.clone(), |known| known.last_transition_time.clone());
        self.remove(type_);
        self.0.push(DeploymentCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: since,
            last_update_time: now,
        });
    }

    /// A Deployment that was paused does not run out of time when it goes on.
    fn note_pause(&mut self, is_paused: bool, now: Timestamp) {
        let reason = self.get(PROGRESSING).and_then(|known| known.reason.as_deref());
        match reason {
            Some(TIMED_OUT) => {}
            Some(PAUSED) if !is_paused => {
                self.set(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now);
            }
            _ if is_paused => self.set(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now),
            _ => {}
        }
    }

    fn note_availability(&mut self, is_available: bool, now: Timestamp) {
        let (status, reason, message) = if is_available {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        self.set(AVAILABLE, status, reason, message, now);
    }

    fn note_progress(
        &mut self,
        of: &Told<'_>,
        revisions: &Revisions,
        progress: Progress,
        deadline: SignedDuration,
    ) {
        let subject = match &revisions.new {
            Some(new) => format!("ReplicaSet \"{}\"", new.name_any()),
            None => format!("Deployment \"{}\"", of.deployment.name_any()),
        };
        let complete = format!("{subject} has successfully progressed.");
        let known = self.get(PROGRESSING).cloned();
        let is_over = |known: &DeploymentCondition| {
            known.reason.as_deref() == Some(COMPLETE) && known.message.as_deref() == Some(&complete)
        };
        // A rollout that is over stays so, whatever becomes of the pods.
        if progress.is_updated() && known.as_ref().is_some_and(is_over) {
            return;
        }
        let before = Progress::of(&of.deployment.status.clone().unwrap_or_default());
        if progress.is_complete(of.wish) {
            self.replace(PROGRESSING, "True", COMPLETE, &complete, of.now);
        } else if progress.is_further_than(before) {
            self.replace(PROGRESSING, "True", UPDATED, &format!("{subject} is progressing."), of.now);
        } else if let Some(new) = revisions.new.as_ref().filter(|new| !is_about(known.as_ref(), new)) {
            let (reason, message) = begun(new, of.name);
            self.replace(PROGRESSING, "True", reason, &message, of.now);
        } else if known.is_some_and(|known| is_overdue(&known, deadline, of.now)) {
            let message = format!("{subject} has timed out progressing.");
            self.set(PROGRESSING, "False", TIMED_OUT, &message, of.now);
        }
    }

    /// Tells of a set that cannot have its pods, of the new one rather than of an old one.
    fn note_failure(&mut self, revisions: &Revisions) {
        let sets = revisions.new.iter().chain(&revisions.old);
        let conditions = sets.filter_map(|set| set.status.as_ref()?.conditions.as_deref()).flatten();
        let mut failures = conditions.filter(|condition| condition.type_ == REPLICA_FAILURE);
        match failures.next() {
            None => self.remove(REPLICA_FAILURE),
            Some(failure) => {
                let same = |known: &DeploymentCondition| {
                    known.status == failure.status && known.reason == failure.reason
                };
                if !self.get(REPLICA_FAILURE).is_some_and(same) {
                    self.remove(REPLICA_FAILURE);
                    self.0.push(passed_on(failure));
                }
            }
        }
    }

    /// When to look whether the rollout has run out of time, if it can.
    pub(super) fn next_look(
        &self,
        spec: &DeploymentSpec,
        is_complete: bool,
        now: Timestamp,
    ) -> Option<Duration> {
        let deadline = deadline(spec)?;
        let known = self.get(PROGRESSING)?;
        let ends = matches!(known.reason.as_deref(), Some(COMPLETE | TIMED_OUT | PAUSED));
        if ends || is_complete {
            return None;
        }
        let since = known.last_update_time.as_ref()?.0;
        let left =
            deadline.saturating_sub(now.duration_since(since)).saturating_add(SignedDuration::from_secs(1));
        Duration::try_from(left.max(SignedDuration::from_secs(1))).ok()
    }
}

/// Whether what is known of progress is about this set, and not about a rollout before.
fn is_about(known: Option<&DeploymentCondition>, new: &ReplicaSet) -> bool {
    let Some(known) = known else { return false };
    let name = format!("\"{}\"", new.name_any());
    known.reason.as_deref() == Some(RESUMED)
        || known.message.as_ref().is_some_and(|message| message.contains(&name))
}

/// How a rollout begins: with a set that was made for it, or one that was there.
fn begun(new: &ReplicaSet, name: &str) -> (&'static str, String) {
    let new_name = new.name_any();
    if new_name == name && !annotations::was_revision_before(new) {
        (CREATED, format!("Created new replica set \"{new_name}\""))
    } else {
        (FOUND, format!("Found new replica set \"{new_name}\""))
    }
}

fn is_overdue(known: &DeploymentCondition, deadline: SignedDuration, now: Timestamp) -> bool {
    match known.reason.as_deref() {
        Some(COMPLETE) => false,
        Some(TIMED_OUT) => true,
        _ => known.last_update_time.as_ref().is_some_and(|time| now.duration_since(time.0) > deadline),
    }
}

fn passed_on(failure: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        last_transition_time: failure.last_transition_time.clone(),
        last_update_time: failure.last_transition_time.clone(),
    }
}
