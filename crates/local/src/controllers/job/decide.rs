//! From a Job and its pods to what is done next. Pure.
//!
//! ```text
//! pods ─▶ forecast (what all that is over comes to) ─▶ end of the Job?
//!                                          no ─▶ manage: pods that are lacking or too many
//!                                         yes ─▶ all that are left go
//!      ─▶ take in: who is counted, who may lose the finalizer ─▶ status
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mainstay::events::Event;

use super::conditions::{self, COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED};
use super::manage::{NewPod, manage, waiting_for_another};
use super::members::{Member, Stage, Terms};
use super::policy::{Verdict, success};
use super::tally::{End, Ending, Forecast, Tally};
use crate::controllers::pods::{count, unless_zero};
use crate::time::whole_seconds;

/// What is done about a Job.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    pub(super) status: JobStatus,
    /// The status records what the rest is done by.
    pub(super) status_first: bool,
    /// These lose the finalizer.
    pub(super) let_go: Vec<Member<'a>>,
    /// These are deleted; all others stay.
    pub(super) deleted: Vec<Member<'a>>,
    pub(super) new: Vec<NewPod>,
    pub(super) again_after: Option<Duration>,
    pub(super) events: Vec<Event>,
}

/// Decides about a Job that is neither finished nor being deleted.
pub(super) fn decide<'a>(job: &Job, pods: &'a [Pod], now: Timestamp) -> Decision<'a> {
    let Some(spec) = &job.spec else { return Decision::default() };
    let terms = Terms::from(spec);
    let mut members: Vec<Member<'a>> = pods.iter().map(|pod| Member::new(pod, &terms)).collect();
    members.sort_by_key(|member| (member.index, member.name()));
    let status = job.status.clone().unwrap_or_default();
    let mut tally = Tally::of(&status, &terms);
    let forecast = tally.forecast(&members, &terms);
    let start = started(&status, &terms, now);

    let mut decision = Decision::default();
    let mut end = known_end(&status)
        .or_else(|| failure(&members, &terms, &forecast, start, now))
        .or_else(|| enough(&terms, &forecast));
    let waiting = waiting_for_another(&members, &terms, &forecast);
    let mut held_back = None;
    if end.is_some() {
        decision.deleted = members.iter().copied().filter(Member::is_active).collect();
    } else {
        let changes = manage(&members, &terms, &forecast, &waiting, now);
        let (tracked, rest) = changes.surplus.into_iter().partition(|member| member.is_tracked);
        (decision.let_go, decision.deleted, decision.new) = (tracked, rest, changes.new);
        held_back = changes.held_back;
        decision.again_after = earliest(changes.wait, deadline_left(&terms, start, now));
        let is_idle = members.iter().all(|member| !member.is_active());
        if is_idle && decision.new.is_empty() && is_complete(&terms, &forecast) {
            let message = "Reached expected number of succeeded pods";
            end = Some(Ending::new(End::Success, "CompletionsReached", message));
        }
    }
    // An apply that takes the last name out of a list takes the list along. So the status that says that the Job is finished comes
    // after the one that counts its last pods, and has all that finished Jobs have.
    let was_settled = tally.is_settled();
    let kept: BTreeSet<&str> = waiting.values().map(Member::uid).collect();
    // A pod that is deleted now is let go when it is seen to go: by then it is another version of it.
    let counted = tally.take_in(&members, &terms, end.as_ref(), &kept);
    let counted = counted.into_iter().filter(|member| end.is_none() || !member.is_active());
    let before = decision.let_go.len();
    decision.let_go.extend(counted);
    decision.status_first = end.as_ref().is_some_and(|end| !end.is_known) || decision.let_go.len() > before;
    // Pods that go because the Job is over fail no index.
    let is_known = end.as_ref().is_some_and(|end| end.is_known);
    let failed_indexes = if is_known { &tally.failed_indexes } else { &forecast.failed_indexes };
    decision.status = describe(&status, &members, &tally, failed_indexes.as_ref());
    conditions::tell_held_back(&mut decision.status, held_back.as_deref(), now);
    let is_settled = was_settled && tally.is_settled();
    conclude(&mut decision, &terms, &tally, is_settled, end, start, now);
    decision
}

/// What the status says of how the Job is over.
fn known_end(status: &JobStatus) -> Option<Ending> {
    let known =
        |type_, end| conditions::is_true(status, type_).map(|condition| Ending::known(end, condition));
    known(SUCCESS_CRITERIA_MET, End::Success).or_else(|| known(FAILURE_TARGET, End::Failure))
}

fn failure(
    members: &[Member<'_>],
    terms: &Terms<'_>,
    forecast: &Forecast,
    start: Option<Timestamp>,
    now: Timestamp,
) -> Option<Ending> {
    let failure = |reason, message| Some(Ending::new(End::Failure, reason, message));
    let failed = members.iter().filter(|member| terms.failure_policy.is_some() && member.has_failed(terms));
    for member in failed {
        if let Verdict::FailsJob(message) = terms.judge(member) {
            return failure("PodFailurePolicy", &message);
        }
    }
    if forecast.failed > terms.backoff_limit || has_restarted_too_often(members, terms) {
        return failure("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline_left(terms, start, now).is_some_and(|left| left.is_zero()) {
        return failure("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    let lost = forecast.failed_indexes.as_ref().map_or(0, super::indexes::Indexes::count);
    if terms.max_failed_indexes.is_some_and(|max| lost > max) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return failure("MaxFailedIndexesExceeded", message);
    }
    if lost > 0 && lost.saturating_add(forecast.completed.count()) >= terms.indexes() {
        return failure("FailedIndexes", "Job has failed indexes");
    }
    None
}

/// Whether containers that are started again in their pods have failed too often.
fn has_restarted_too_often(members: &[Member<'_>], terms: &Terms<'_>) -> bool {
    let running = members.iter().filter(|member| matches!(member.stage, Stage::Active | Stage::Terminating));
    let statuses = running.filter_map(|member| member.pod.status.as_ref());
    let containers =
        statuses.flat_map(|status| [&status.init_container_statuses, &status.container_statuses]).flatten();
    let counts = containers.flatten().map(|container| container.restart_count);
    let restarts = counts.fold(0, i32::saturating_add);
    terms.restart_limit.is_some_and(|limit| restarts >= limit)
}

/// Whether the Job's own rules for success are met.
fn enough(terms: &Terms<'_>, forecast: &Forecast) -> Option<Ending> {
    let message = success(terms.success_policy, &forecast.completed, terms.indexes())?;
    terms.is_indexed.then(|| Ending::new(End::Success, "SuccessPolicy", &message))
}

fn is_complete(terms: &Terms<'_>, forecast: &Forecast) -> bool {
    match terms.completions {
        Some(completions) => forecast.succeeded >= completions,
        None => forecast.succeeded > 0,
    }
}

/// When it began to be active; now, if nobody has said so yet.
fn started(status: &JobStatus, terms: &Terms<'_>, now: Timestamp) -> Option<Timestamp> {
    let resumes = conditions::is_true(status, SUSPENDED).is_some();
    let known = status.start_time.as_ref().map(|start| start.0).filter(|_| !resumes);
    (!terms.is_suspended).then(|| known.unwrap_or_else(|| whole_seconds(now).0))
}

/// How long it may still be active; zero if no longer.
fn deadline_left(terms: &Terms<'_>, start: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let left = SignedDuration::from_secs(terms.deadline_seconds?).saturating_sub(now.duration_since(start?));
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

fn earliest(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

/// The numbers of a status; conditions and times are as they were.
fn describe(
    before: &JobStatus,
    members: &[Member<'_>],
    tally: &Tally,
    failed_indexes: Option<&super::indexes::Indexes>,
) -> JobStatus {
    let completed = tally.completed.to_string();
    JobStatus {
        active: unless_zero(count(members, Member::is_active)),
        ready: Some(count(members, Member::is_ready)),
        terminating: Some(count(members, |member| member.stage == Stage::Terminating)),
        succeeded: unless_zero(tally.succeeded),
        failed: unless_zero(tally.failed),
        uncounted_terminated_pods: Some(tally.uncounted()),
        completed_indexes: (!completed.is_empty()).then_some(completed),
        failed_indexes: failed_indexes.map(ToString::to_string),
        start_time: before.start_time.clone(),
        completion_time: before.completion_time.clone(),
        conditions: before.conditions.clone(),
    }
}

/// Conditions and times, and the events that go with them.
fn conclude(
    decision: &mut Decision<'_>,
    terms: &Terms<'_>,
    tally: &Tally,
    is_settled: bool,
    end: Option<Ending>,
    start: Option<Timestamp>,
    now: Timestamp,
) {
    let is_idle = decision.let_go.is_empty() && decision.deleted.is_empty() && decision.new.is_empty();
    let status = &mut decision.status;
    let Some(Ending { end, reason, message, is_known }) = end else {
        let says = terms.is_suspended;
        let was = conditions::is_true(status, SUSPENDED).is_some();
        let changes = if says { !was } else { was };
        if changes {
            let (reason, message) =
                if says { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
            conditions::set(status, SUSPENDED, says, reason, message, now);
            // Said once, in the sync that has nothing else to do.
            if is_idle {
                let reason = if says { "Suspended" } else { "Resumed" };
                decision.events.push(Event::normal(reason, message));
            }
        }
        status.start_time = start.map(Time);
        return;
    };
    let never_starts = terms.is_suspended && terms.completions == Some(0);
    if status.start_time.is_none() && !never_starts {
        status.start_time = Some(whole_seconds(now));
    }
    let (interim, last) = match end {
        End::Success => (SUCCESS_CRITERIA_MET, COMPLETE),
        End::Failure => (FAILURE_TARGET, FAILED),
    };
    conditions::set(status, interim, true, &reason, &message, now);
    if !is_known || !is_idle || !is_settled || status.terminating != Some(0) {
        return;
    }
    conditions::set(status, last, true, &reason, &message, now);
    if end == End::Success {
        // A clock that was set back does not make it end before it began.
        status.completion_time = Some(whole_seconds(now)).max(status.start_time.clone());
        let too_many = terms.completions.is_some_and(|completions| tally.succeeded > completions);
        if too_many {
            let message = "Too many succeeded pods running after completion count reached";
            decision.events.push(Event::warning("TooManySucceededPods", message));
        }
        decision.events.push(Event::normal("Completed", "Job completed"));
    } else {
        decision.events.push(Event::warning(&reason, &message));
    }
}
