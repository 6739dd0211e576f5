//! Which containers start, and when all of them have to stop.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::containers::{self, Container, Role, Standing};
use super::{backoff, ended_phase};

/// The grace of pods that say nothing of it.
const GRACE_SECONDS: i64 = 30;

/// A container that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Start {
    /// Which.
    pub(in super::super) container: String,
    /// Which attempt this is.
    pub(in super::super) attempt: u32,
    /// Since when it is to run, but for what it has to wait. Recorded, and so in the future if the clock was set back.
    pub(in super::super) since: Timestamp,
    /// When it has waited long enough.
    pub(super) due: Timestamp,
    /// How long it had to wait, if it has run before.
    pub(super) delay: Duration,
}

#[cfg(test)]
impl Start {
    /// The first attempt of a container.
    pub(in super::super) fn first(container: &str, since: Timestamp) -> Self {
        Self { container: container.to_owned(), attempt: 0, since, due: since, delay: Duration::ZERO }
    }
}

/// All containers of a pod have to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Stop {
    /// Since when; `None` if nobody knows.
    pub(in super::super) since: Option<Timestamp>,
    /// How long they may take.
    pub(in super::super) grace: Duration,
}

impl Stop {
    /// How much of the grace is left.
    pub(in super::super) fn grace_left(&self, now: Timestamp) -> Duration {
        let Some(since) = self.since else { return self.grace };
        Duration::try_from(now.duration_since(since))
            .map_or(self.grace, |passed| self.grace.saturating_sub(passed))
    }
}

/// The containers that are to run and do not. Some may be due later.
pub(super) fn plan_starts(pod: &Pod, containers: &[Container<'_>], now: Timestamp) -> Vec<Start> {
    let begun = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let Some(begun) = begun.map(|time| time.0) else { return Vec::new() };
    let is_initialized =
        containers.iter().any(|container| container.role == Role::Main && container.was_started());
    let mut starts = Vec::new();
    let mut since = begun;
    for container in containers.iter().filter(|container| container.role != Role::Main) {
        if !(is_initialized && container.role == Role::Init) {
            starts.extend(start(pod, container, since, now));
            if !is_initialized && !container.lets_others_start() {
                return starts;
            }
        }
        since = done_at(container).map_or(since, |done| since.max(done));
    }
    let main = containers.iter().filter(|container| container.role == Role::Main);
    starts.extend(main.filter_map(|container| start(pod, container, since, now)));
    starts
}

fn start(pod: &Pod, container: &Container<'_>, since: Timestamp, now: Timestamp) -> Option<Start> {
    let name = container.spec.name.clone();
    match &container.standing {
        Standing::Never => {
            Some(Start { container: name, attempt: 0, since, due: since.min(now), delay: Duration::ZERO })
        }
        Standing::Ended(end) if end.recorded && container.restarts_after(pod, end.code()) => {
            let delay = backoff::delay(end, container.record);
            let due = backoff::due(end, delay, now);
            let since = end.finished_at().unwrap_or(now);
            Some(Start { container: name, attempt: end.attempt.saturating_add(1), since, due, delay })
        }
        Standing::Ended(_) | Standing::Running { .. } => None,
    }
}

/// When an init container let the next one start.
fn done_at(container: &Container<'_>) -> Option<Timestamp> {
    match &container.standing {
        Standing::Ended(end) => end.finished_at(),
        Standing::Running { since, .. } => Some(*since),
        Standing::Never => None,
    }
}

/// Whether all containers of a pod have to end, as the recorded status has it: the pod is deleted, its time is up, it is over, or only
/// sidecars are left.
pub(in super::super) fn stopping(pod: &Pod, now: Timestamp) -> Option<Stop> {
    let spec = pod.spec.as_ref()?;
    let grace = seconds(spec.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS));
    if let Some(deleted) = &pod.metadata.deletion_timestamp {
        let grace = seconds(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
        let since = deleted.0.checked_sub(grace).unwrap_or(deleted.0);
        return Some(Stop { since: Some(since), grace });
    }
    if let Some(deadline) = deadline(pod).filter(|deadline| *deadline <= now) {
        return Some(Stop { since: Some(deadline), grace });
    }
    let unknown = ended_phase(pod).map(|_| Stop { since: None, grace });
    finished(pod, grace).or(unknown)
}

/// When the pod may be active no longer.
pub(super) fn deadline(pod: &Pod) -> Option<Timestamp> {
    let limit = pod.spec.as_ref()?.active_deadline_seconds?;
    let begun = pod.status.as_ref()?.start_time.as_ref()?.0;
    begun.checked_add(seconds(limit)).ok()
}

/// The end of a pod that has nothing left to do but to end its sidecars: all of its main containers have ended for good, or an init
/// container has failed for good.
fn finished(pod: &Pod, grace: Duration) -> Option<Stop> {
    let recorded = containers::all(pod, &BTreeMap::new());
    let ended = |container: &Container<'_>| match &container.standing {
        Standing::Ended(end) if end.recorded && !container.restarts_after(pod, end.code()) => {
            Some(end.clone())
        }
        _ => None,
    };
    let mut init = recorded.iter().filter(|container| container.role == Role::Init).filter_map(ended);
    if let Some(failed) = init.find(|end| end.code() != 0) {
        return Some(Stop { since: failed.finished_at(), grace });
    }
    let mut last = None;
    for container in recorded.iter().filter(|container| container.role == Role::Main) {
        last = last.max(ended(container)?.finished_at());
    }
    Some(Stop { since: last, grace })
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.try_into().unwrap_or_default())
}
