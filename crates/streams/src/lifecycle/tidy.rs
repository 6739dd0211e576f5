//! What follows for the status from what there is, whichever rule fits. It is worked out anew for each decision, so nothing is lost if
//! it is not written.

use super::facts::{Live, is_open, settles_at, unseen_reload};
use super::{Health, Situation, record};
use crate::kinds::{ActiveRun, BackfillPhase, StreamStatus};
use crate::wish::Wish;

pub(super) fn tidied(on: &Situation<'_>, live: &[Live<'_>]) -> StreamStatus {
    let mut status = on.status.clone();
    let wish = on.wish.as_ref().ok();
    if status.phase.is_none() {
        // What a stream was annotated with when it was made asks for nothing: it begins anyway.
        status.reloaded = wish.and_then(|wish| wish.reload.clone());
    }
    settle_requests(on, &mut status);
    if let Some(wish) = wish
        && is_mended(on, wish, &status)
    {
        (status.crashed, status.failures, status.next_attempt) = (None, 0, None);
    }
    let of_jobs = on.jobs.iter().filter_map(|job| job.run.as_ref());
    let of_schedule = on.schedule.and_then(|schedule| schedule.run.as_ref());
    let numbers = of_jobs.chain(of_schedule).map(|run| run.number);
    status.runs_started = numbers.fold(status.runs_started, u64::max);
    status.restarts = status.restarts.max(status.runs_started.saturating_sub(1));
    if let [Live { run: Some(run), .. }] = live
        && status.run.as_ref().is_none_or(|known| known.job == run.job)
    {
        take_in(&mut status, run);
    }
    follow_rollout(on, live, &mut status);
    status
}

/// A stream takes part in a roll-out until its new run has been ready for long enough. A `CronJob` is as good as ready.
fn follow_rollout(on: &Situation<'_>, live: &[Live<'_>], status: &mut StreamStatus) {
    let Some(rollout) = &mut status.rollout else { return };
    let new = match live {
        [Live { run: Some(run), health, .. }] if run.number > rollout.stopped => Some(*health),
        _ => None,
    };
    let is_ready = matches!(new, Some(Some(Health::Ready)));
    rollout.ready_since = is_ready.then(|| rollout.ready_since.unwrap_or(on.now));
    let is_settled =
        rollout.ready_since.and_then(|since| settles_at(on, since)).is_some_and(|at| at <= on.now);
    if is_settled || new == Some(None) {
        status.rollout = None;
    }
}

/// A run that goes on is in the status.
fn take_in(status: &mut StreamStatus, run: &ActiveRun) {
    status.initialised |= !run.purpose.is_backfill();
    status.next_attempt = None;
    status.run = Some(run.clone());
}

fn settle_requests(on: &Situation<'_>, status: &mut StreamStatus) {
    status.backfills.retain(|outcome| on.requests.iter().any(|request| request.uid == outcome.request));
    for request in on.requests.iter().filter(|request| request.is_cancelled) {
        record::settle(status, &request.uid, BackfillPhase::Cancelled, on.now, "it was cancelled", None);
    }
    for request in on.requests {
        // A Job that is there was made before the template or the stream changed, and runs on.
        let has_job = on
            .jobs
            .iter()
            .filter_map(|job| job.run.as_ref())
            .any(|run| run.purpose.request() == Some(request.uid.as_str()));
        if let Some(problem) = request.problem.as_ref().filter(|_| !has_job) {
            let (message, reason) = (problem.to_string(), Some(problem.reason));
            record::settle(status, &request.uid, BackfillPhase::Failed, on.now, &message, reason);
        }
    }
    let is_over = status.begun.as_ref().is_some_and(|begun| !is_open(on, status, &begun.request));
    if is_over {
        status.begun = None;
    }
}

/// What crashed is not what would be run now, or somebody asks for a backfill since.
fn is_mended(on: &Situation<'_>, wish: &Wish, status: &StreamStatus) -> bool {
    let Some(crashed) = &status.crashed else { return false };
    // Whether the next run is the stream or a backfill: the same configuration has crashed.
    let is_same = [&wish.stream, &wish.backfill].into_iter().flatten().any(|now| now == crashed);
    let is_requested = on.requests.iter().any(|request| is_open(on, status, &request.uid));
    !is_same || is_requested || unseen_reload(wish, status).is_some()
}
