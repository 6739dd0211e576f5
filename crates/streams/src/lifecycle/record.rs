//! What the end of a run does to the status.

use jiff::{SignedDuration, Timestamp};

use super::facts::is_open;
use super::{Happened, JobState, Situation};
use crate::config::RestartConfig;
use crate::kinds::{
    ActiveRun, BackfillOutcome, BackfillPhase, BegunBackfill, Outcome, PastRun, Purpose, StreamStatus,
};

impl JobState {
    /// When it ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Running => None,
            Self::Completed { at } | Self::Failed { at, .. } => Some(*at),
        }
    }

    fn past(&self) -> Option<(Outcome, Timestamp, Option<i32>, &str)> {
        match self {
            Self::Running => None,
            Self::Completed { at } => Some((Outcome::Completed, *at, None, "Completed")),
            Self::Failed { at, exit_code, reason, is_disrupted } => {
                let reason = if *is_disrupted { DISRUPTED } else { reason };
                Some((Outcome::Failed, *at, *exit_code, reason))
            }
        }
    }
}

/// Why a run failed that was evicted, preempted, or ended with its node.
const DISRUPTED: &str = "Disrupted";

/// What the end of a failed run means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Retryable,
    Fatal,
    AsksForBackfill,
    /// It is not the program's fault.
    Disrupted,
    Counted,
}

/// A Job has ended by itself. Returns what there is to tell.
pub(super) fn ended(
    status: &mut StreamStatus,
    on: &Situation<'_>,
    run: &ActiveRun,
    state: &JobState,
) -> Vec<Happened> {
    let Some((outcome, at, exit_code, reason)) = state.past() else { return Vec::new() };
    remember(status, on, run, (outcome, at, exit_code, reason));
    if outcome == Outcome::Completed {
        return vec![completed(status, on, run, at)];
    }
    let told = told(exit_code, reason);
    let is_backfill = run.purpose.is_backfill();
    let event = if is_backfill { "BackfillFailed" } else { "StreamingJobFailed" };
    let mut happened = vec![bad(event, format!("Job {} failed: {told}", run.job))];
    if failed(status, on, run, at, failure(on.policy(), &run.purpose, state)) {
        crash(status, run, at, &told);
        happened.push(crash_loop(&run.job, &told));
    }
    happened
}

/// A Job or `CronJob` was ended by somebody. Returns what there is to tell.
pub(super) fn stopped(
    status: &mut StreamStatus,
    on: &Situation<'_>,
    run: &ActiveRun,
    reason: &'static str,
) -> Vec<Happened> {
    remember(status, on, run, (Outcome::Stopped, on.now, None, reason));
    if let Some(uid) = run.purpose.request()
        && is_open(on, status, uid)
    {
        begin(status, run, uid);
    }
    let note = format!("{} {} was stopped: {reason}", run.purpose.kind(), run.job);
    match reason {
        "Suspended" => Vec::new(),
        "BackfillCancelled" => vec![good("BackfillCancelled", note)],
        _ => vec![good("StreamRestarting", note)],
    }
}

/// A Job of the stream's `CronJob` has ended. Returns what there is to tell.
pub(super) fn slot(
    status: &mut StreamStatus,
    on: &Situation<'_>,
    (name, started_at, state): &(String, Timestamp, JobState),
) -> Vec<Happened> {
    let Some((outcome, ended_at, exit_code, reason)) = state.past() else { return Vec::new() };
    let of_schedule = on.schedule.and_then(|schedule| schedule.run.as_ref()).or(status.run.as_ref());
    let of_slot = of_schedule.map(|run| ActiveRun { started_at: *started_at, ..run.clone() });
    let past = PastRun {
        number: of_slot.as_ref().map_or(status.runs_started, |run| run.number),
        kind: Purpose::Schedule.kind().to_owned(),
        job: name.clone(),
        started_at: *started_at,
        ended_at,
        outcome,
        exit_code,
        reason: reason.to_owned(),
    };
    let told = told(exit_code, reason);
    push(status, on, past);
    if outcome == Outcome::Completed {
        status.failures = 0;
        return Vec::new();
    }
    let mut happened = vec![bad("ScheduleFailed", format!("Job {name} failed: {told}"))];
    let Some(run) = of_slot.filter(|_| status.crashed.is_none()) else { return happened };
    if failed(status, on, &run, ended_at, failure(on.policy(), &run.purpose, state)) {
        crash(status, &run, ended_at, &told);
        happened.push(crash_loop(name, &told));
    }
    // The schedule says when the next one is due.
    status.next_attempt = None;
    happened
}

fn told(exit_code: Option<i32>, reason: &str) -> String {
    exit_code.map_or_else(|| reason.to_owned(), |code| format!("{reason}, exit code {code}"))
}

fn crash_loop(job: &str, told: &str) -> Happened {
    let then =
        "no more is started until its spec changes, a restart is asked for, or it is suspended and resumed";
    bad("CrashLoopDetected", format!("Job {job} failed: {told}; {then}"))
}

/// A request is over, unless it was before. That it was completed outweighs that it was cancelled meanwhile.
pub(super) fn settle(
    status: &mut StreamStatus,
    uid: &str,
    phase: BackfillPhase,
    at: Timestamp,
    message: &str,
    reason: Option<&str>,
) {
    let is_known = status.backfills.iter().any(|outcome| outcome.request == uid);
    if is_known && phase != BackfillPhase::Completed {
        return;
    }
    status.backfills.retain(|outcome| outcome.request != uid);
    let begun = status.begun.take_if(|begun| begun.request == uid);
    let running = status.run.as_ref().filter(|run| run.purpose.request() == Some(uid));
    let attempts = begun.as_ref().map_or(0, |begun| begun.attempts);
    status.backfills.push(BackfillOutcome {
        request: uid.to_owned(),
        phase,
        attempts: running.map_or(attempts, |run| run.attempt.max(attempts)),
        started_at: begun.map(|begun| begun.started_at).or(running.map(|run| run.started_at)),
        ended_at: at,
        message: message.to_owned(),
        reason: reason.map(ToOwned::to_owned),
    });
}

fn completed(status: &mut StreamStatus, on: &Situation<'_>, run: &ActiveRun, at: Timestamp) -> Happened {
    status.failures = 0;
    // What completes is as good as ready.
    status.rollout = None;
    let Purpose::Backfill { request, reload, .. } = &run.purpose else {
        status.next_attempt = later(run.started_at, on.policy().minimum_interval_seconds, on.now);
        return good("StreamRestarting", format!("Job {} completed", run.job));
    };
    status.next_attempt = None;
    if let Some(uid) = request {
        begin(status, run, uid);
        settle(status, uid, BackfillPhase::Completed, at, &format!("Job {} completed", run.job), None);
    }
    (status.initialised, status.backfill_asked) = (true, false);
    if reload.is_some() {
        status.reloaded.clone_from(reload);
    }
    good("BackfillCompleted", format!("Job {} completed", run.job))
}

fn failure(policy: &RestartConfig, purpose: &Purpose, state: &JobState) -> Failure {
    let exit_code = match state {
        JobState::Failed { is_disrupted: true, .. } => return Failure::Disrupted,
        JobState::Failed { exit_code, .. } => *exit_code,
        JobState::Running | JobState::Completed { .. } => None,
    };
    let codes = &policy.exit_codes;
    let is_in = |list: &[i32]| exit_code.is_some_and(|code| list.contains(&code));
    if is_in(&codes.fatal) {
        Failure::Fatal
    } else if is_in(&codes.backfill) && !purpose.is_backfill() {
        // A backfill that asks for a backfill would go on for ever: it has failed as with any other code.
        Failure::AsksForBackfill
    } else if is_in(&codes.retryable) {
        Failure::Retryable
    } else {
        Failure::Counted
    }
}

/// Counts a failure, and sets the time of the next attempt. Whether there is none, and this is a crash loop.
fn failed(
    status: &mut StreamStatus,
    on: &Situation<'_>,
    run: &ActiveRun,
    at: Timestamp,
    failure: Failure,
) -> bool {
    let policy = on.policy();
    let request = run.purpose.request();
    if let Some(uid) = request {
        if !is_open(on, status, uid) {
            // Nobody wants it any more, so its failure is nobody's loss.
            return false;
        }
        begin(status, run, uid);
    }
    let (count, most) = match (failure, request) {
        (Failure::Fatal, _) => return true,
        (Failure::AsksForBackfill, _) => {
            status.backfill_asked = true;
            status.next_attempt = later(run.started_at, policy.minimum_interval_seconds, on.now);
            return false;
        }
        (Failure::Disrupted, _) => {
            status.next_attempt = later(run.started_at, policy.minimum_interval_seconds, on.now);
            return false;
        }
        (Failure::Retryable, _) => (1, 1),
        (Failure::Counted, Some(uid)) => {
            let failed = status.begun.as_mut().map_or(1, |begun| {
                begun.failed = begun.failed.saturating_add(1);
                begun.failed
            });
            let request = on.requests.iter().find(|request| request.uid == uid);
            (u64::from(failed), u64::from(request.map_or(0, |request| request.retries)))
        }
        (Failure::Counted, None) => {
            if at.duration_since(run.started_at) >= SignedDuration::from_secs(policy.healthy_seconds.into()) {
                status.failures = 0;
            }
            status.failures = status.failures.saturating_add(1);
            (status.failures, u64::from(policy.budget))
        }
    };
    status.next_attempt = later(at, backoff(policy, count), on.now);
    count > most
}

/// No more runs are started from what this one was made from.
fn crash(status: &mut StreamStatus, run: &ActiveRun, at: Timestamp, told: &str) {
    (status.crashed, status.next_attempt) = (Some(run.made_from.clone()), None);
    let Purpose::Backfill { request, reload, .. } = &run.purpose else { return };
    if let Some(uid) = request {
        settle(status, uid, BackfillPhase::Failed, at, &format!("Job {} failed: {told}", run.job), None);
    }
    if reload.is_some() {
        // The same value must not mend what it led to; what it asked for is still to be done.
        status.reloaded.clone_from(reload);
        status.backfill_asked = true;
    }
}

/// A Job for this request has been, and the request is not over.
fn begin(status: &mut StreamStatus, run: &ActiveRun, uid: &str) {
    let before = status.begun.take_if(|begun| begun.request == uid);
    status.begun = Some(BegunBackfill {
        request: uid.to_owned(),
        attempts: run.attempt.max(before.as_ref().map_or(0, |begun| begun.attempts)),
        failed: before.as_ref().map_or(0, |begun| begun.failed),
        started_at: before.map_or(run.started_at, |begun| begun.started_at),
    });
}

fn remember(
    status: &mut StreamStatus,
    on: &Situation<'_>,
    run: &ActiveRun,
    (outcome, ended_at, exit_code, reason): (Outcome, Timestamp, Option<i32>, &str),
) {
    status.run.take_if(|known| known.job == run.job);
    status.runs_started = status.runs_started.max(run.number);
    status.initialised |= !run.purpose.is_backfill();
    let past = PastRun {
        number: run.number,
        kind: run.purpose.kind().to_owned(),
        job: run.job.clone(),
        started_at: run.started_at,
        ended_at,
        outcome,
        exit_code,
        reason: reason.to_owned(),
    };
    push(status, on, past);
}

fn push(status: &mut StreamStatus, on: &Situation<'_>, past: PastRun) {
    status.history.insert(0, past);
    status.history.truncate(on.class.history.max(1) as usize);
}

/// The seconds to wait after so many failures: twice as long after each.
fn backoff(policy: &RestartConfig, failures: u64) -> u32 {
    let doubled = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 2_u32.checked_pow(doubled).unwrap_or(u32::MAX);
    policy.backoff_seconds.saturating_mul(factor).min(policy.max_backoff_seconds)
}

/// So many seconds after a time, if that has not come yet.
fn later(from: Timestamp, seconds: u32, now: Timestamp) -> Option<Timestamp> {
    from.checked_add(SignedDuration::from_secs(seconds.into())).ok().filter(|at| *at > now)
}

fn good(reason: &'static str, note: String) -> Happened {
    Happened { is_warning: false, reason, note }
}

fn bad(reason: &'static str, note: String) -> Happened {
    Happened { is_warning: true, reason, note }
}
