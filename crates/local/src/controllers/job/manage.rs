//! Which pods a Job that is not over lacks, and which it has too many of.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::backoff::{ended_at, still_to_wait};
use super::members::{Member, Stage, Terms};
use super::tally::Forecast;
use crate::controllers::bounds::{AT_ONCE_MAX, Crowd};
use crate::controllers::pods;

/// What is done about a Job's pods. Either some are made or some go, never both.
#[derive(Debug, Default)]
pub(super) struct Changes<'a> {
    /// Those that go: first they lose the finalizer, which is why they will not be counted, then they are deleted.
    pub(super) surplus: Vec<Member<'a>>,
    pub(super) new: Vec<NewPod>,
    /// When there may be more.
    pub(super) wait: Option<Duration>,
    /// Why none are made, if it is because there are too many already.
    pub(super) held_back: Option<String>,
}

/// A pod to be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NewPod {
    pub(super) index: Option<i32>,
    /// For Jobs with a limit per index: how often the index has failed, counted and ignored.
    pub(super) failures: Option<(i32, i32)>,
}

/// What there is to change.
pub(super) fn manage<'a>(
    members: &[Member<'a>],
    terms: &Terms<'_>,
    forecast: &Forecast,
    waiting: &BTreeMap<i32, Member<'a>>,
    now: Timestamp,
) -> Changes<'a> {
    let active: Vec<Member<'a>> = members.iter().copied().filter(Member::is_active).collect();
    let wanted = wanted(terms, forecast, active.len());
    let mut surplus = surplus(active.clone(), terms, wanted);
    if !surplus.is_empty() || terms.is_suspended {
        surplus.truncate(AT_ONCE_MAX);
        return Changes { surplus, ..Changes::default() };
    }
    let terminating = members.iter().filter(|member| terms.awaits_ends && member.stage == Stage::Terminating);
    let taken = active.len() + terminating.clone().count();
    let crowd = Crowd::of(members.iter().map(|member| member.pod));
    let missing = wanted.saturating_sub(taken);
    let lacking = crowd.room(missing);
    if lacking == 0 {
        return Changes { held_back: crowd.held_back(missing), ..Changes::default() };
    }
    if terms.backoff_limit_per_index.is_none()
        && let Some(wait) = wait_after_failures(members, terms, forecast, now)
    {
        return Changes { wait: Some(wait), ..Changes::default() };
    }
    if !terms.is_indexed {
        return Changes { new: vec![NewPod::default(); lacking], ..Changes::default() };
    }
    let there = active.iter().chain(terminating).filter_map(|member| member.index);
    let mut not_pending = forecast.completed.with(there);
    if let Some(failed) = &forecast.failed_indexes {
        not_pending = not_pending.union(failed);
    }
    by_index(&not_pending.missing(terms.indexes(), lacking), terms, waiting, now)
}

/// How many pods shall be active.
fn wanted(terms: &Terms<'_>, forecast: &Forecast, active: usize) -> usize {
    let wanted = match terms.completions {
        _ if terms.is_suspended => 0,
        Some(completions) => completions.saturating_sub(forecast.succeeded).min(terms.parallelism),
        // When one has succeeded the queue is empty: those that run come to their end, and no other begins.
        None if forecast.succeeded > 0 => return active,
        None => terms.parallelism,
    };
    usize::try_from(wanted).unwrap_or(0)
}

/// Those of the active pods that are too many: the same index twice, none that there is, or whoever loses least.
fn surplus<'a>(mut active: Vec<Member<'a>>, terms: &Terms<'_>, wanted: usize) -> Vec<Member<'a>> {
    active.sort_by_key(|member| Reverse(worth(member)));
    let mut seen = BTreeSet::new();
    let (mut kept, mut surplus) = (Vec::new(), Vec::new());
    for member in active {
        let is_double = terms.is_indexed && member.index.is_none_or(|index| !seen.insert(index));
        // One that has lost the finalizer was to go, or could never be counted.
        if is_double || !member.is_tracked {
            surplus.push(member);
        } else {
            kept.push(member);
        }
    }
    surplus.extend(kept.into_iter().skip(wanted));
    surplus
}

/// What would be lost with a pod: most with one that has long been ready.
fn worth(member: &Member<'_>) -> impl Ord + use<> {
    let pod = member.pod;
    let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let phase = ["Pending", "Unknown", "Running"].iter().position(|phase| *phase == pods::phase(pod));
    let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "True");
    let ready_since = ready.map(|ready| Reverse(ready.last_transition_time.as_ref().map(|time| time.0)));
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    let restarts = statuses.into_iter().flatten().map(|container| container.restart_count).max();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let name = member.name().to_owned();
    (member.is_tracked, has_node, phase, ready_since, Reverse(restarts), Reverse(created), Reverse(name))
}

/// How long to wait since pods have failed and none has succeeded after them.
fn wait_after_failures(
    members: &[Member<'_>],
    terms: &Terms<'_>,
    forecast: &Forecast,
    now: Timestamp,
) -> Option<Duration> {
    let succeeded = members.iter().filter(|member| member.stage == Stage::Succeeded);
    let last_success = succeeded.filter_map(|member| ended_at(member.pod)).max();
    let failed = members.iter().filter(|member| member.has_failed(terms));
    let ends: Vec<Timestamp> =
        failed.filter_map(|member| ended_at(member.pod)).filter(|end| Some(*end) > last_success).collect();
    let seen = i32::try_from(ends.len()).unwrap_or(i32::MAX);
    // Of pods that are gone only the number is known, and not whether a success came after them.
    let failures = if forecast.succeeded == 0 { seen.max(forecast.failed) } else { seen };
    still_to_wait(failures, ends.into_iter().max()?, now)
}

/// New pods for indexes whose last failure is long enough ago; if there are none, when the first will be.
fn by_index<'a>(
    indexes: &[i32],
    terms: &Terms<'_>,
    waiting: &BTreeMap<i32, Member<'_>>,
    now: Timestamp,
) -> Changes<'a> {
    let mut changes = Changes::default();
    for index in indexes {
        let failed = waiting.get(index);
        let wait = failed.and_then(|failed| {
            let (counted, ignored) = failed.failures_before();
            still_to_wait(counted.saturating_add(ignored).saturating_add(1), ended_at(failed.pod)?, now)
        });
        if let Some(wait) = wait {
            changes.wait = Some(changes.wait.map_or(wait, |first| first.min(wait)));
        } else {
            let failures = terms.backoff_limit_per_index.map(|_| failures_after(failed, terms));
            changes.new.push(NewPod { index: Some(*index), failures });
        }
    }
    changes
}

/// How often an index has failed, this last time included.
fn failures_after(failed: Option<&Member<'_>>, terms: &Terms<'_>) -> (i32, i32) {
    let Some(failed) = failed else { return (0, 0) };
    let (counted, ignored) = failed.failures_before();
    if terms.judge(failed).counts() {
        (counted.saturating_add(1), ignored)
    } else {
        (counted, ignored.saturating_add(1))
    }
}

/// By index, the failed pod that another will be made for: it stays until then, because it knows how often its index has failed.
pub(super) fn waiting_for_another<'a>(
    members: &[Member<'a>],
    terms: &Terms<'_>,
    forecast: &Forecast,
) -> BTreeMap<i32, Member<'a>> {
    let mut waiting: BTreeMap<i32, Member<'a>> = BTreeMap::new();
    let Some(failed_indexes) = &forecast.failed_indexes else { return waiting };
    let active: BTreeSet<i32> =
        members.iter().filter(|member| member.is_active()).filter_map(|member| member.index).collect();
    let is_over =
        |index: i32| forecast.completed.has(index) || failed_indexes.has(index) || active.contains(&index);
    for member in members.iter().filter(|member| member.is_tracked && member.has_failed(terms)) {
        let Some(index) = member.index.filter(|index| !is_over(*index)) else { continue };
        let age = |member: &Member<'_>| {
            let (counted, ignored) = member.failures_before();
            (counted.saturating_add(ignored), ended_at(member.pod))
        };
        if waiting.get(&index).is_none_or(|known| age(known) <= age(member)) {
            waiting.insert(index, *member);
        }
    }
    waiting
}
