//! What the rules do. Each fills in a decision that says: nothing shall be there, and the status is as it follows from what there is.

use super::facts::{Facts, Wanted};
use super::{Decision, Desired, Permit, record};
use crate::job::LAYOUT;
use crate::kinds::{ActiveRun, Phase, Purpose, Rollout};

pub(super) fn phase_of(purpose: &Purpose) -> Phase {
    match purpose {
        Purpose::Stream => Phase::Running,
        Purpose::Schedule => Phase::Scheduled,
        Purpose::Backfill { .. } => Phase::Backfilling,
    }
}

fn say(decision: &mut Decision, phase: Phase, message: impl Into<String>) {
    decision.status.phase = Some(phase);
    decision.message = message.into();
}

/// Nothing shall be there, and something will be again.
pub(super) fn stop(decision: &mut Decision, message: &str) {
    say(decision, Phase::Pending, message);
}

pub(super) fn record_outcome(facts: &Facts<'_>, decision: &mut Decision) {
    let Some((job, run)) = facts.ended() else { return };
    decision.happened = record::ended(&mut decision.status, facts.on, run, &job.state);
    decision.let_go.push(job.name.clone());
    written_first(facts, decision);
    let crashed = decision.status.crashed.is_some();
    let message = decision.happened.last().map(|happened| happened.note.clone()).unwrap_or_default();
    say(decision, if crashed { Phase::CrashLoopDetected } else { Phase::Pending }, message);
}

pub(super) fn record_stop(facts: &Facts<'_>, decision: &mut Decision) {
    let Some(run) = facts.stopped() else { return };
    let reason = facts.stop_reason(run);
    decision.happened = record::stopped(&mut decision.status, facts.on, run, reason);
    if facts.on.jobs.iter().any(|job| job.name == run.job) {
        decision.let_go.push(run.job.clone());
    }
    written_first(facts, decision);
    if facts.is_suspended() {
        say(decision, Phase::Suspended, facts.suspended_by());
    } else {
        say(decision, Phase::Pending, format!("Run {} was stopped: {reason}", run.number));
    }
}

pub(super) fn record_slots(facts: &Facts<'_>, decision: &mut Decision) {
    let slots = facts.slots();
    for slot in &slots {
        decision.happened.extend(record::slot(&mut decision.status, facts.on, slot));
        decision.let_go.push(slot.0.clone());
    }
    written_first(facts, decision);
    let failed = decision.happened.last().map(|happened| happened.note.clone());
    decision.message = failed.unwrap_or_else(|| format!("{} scheduled Jobs have ended", slots.len()));
    if decision.status.crashed.is_some() {
        decision.status.phase = Some(Phase::CrashLoopDetected);
    }
}

/// What is recorded is in the status before anything can go, and is looked at again once it is.
fn written_first(facts: &Facts<'_>, decision: &mut Decision) {
    decision.status_first = true;
    decision.wake_at = Some(facts.on.now);
    // What else runs is another rule's business.
    if let [live] = facts.live[..] {
        decision.desired = Desired::AsIs(live.name.to_owned());
    }
}

pub(super) fn suspend(facts: &Facts<'_>, decision: &mut Decision) {
    let status = &mut decision.status;
    (status.crashed, status.failures, status.next_attempt) = (None, 0, None);
    status.rollout = None;
    say(decision, Phase::Suspended, facts.suspended_by());
}

pub(super) fn keep_newest(facts: &Facts<'_>, decision: &mut Decision) {
    let known = facts.live.iter().filter_map(|live| Some((live.run?.number, live.name)));
    if let Some((_, newest)) = known.max() {
        decision.desired = Desired::AsIs(newest.to_owned());
    }
    let names: Vec<&str> = facts.live.iter().map(|live| live.name).collect();
    let phase = facts.status.phase.unwrap_or(Phase::Pending);
    say(
        decision,
        phase,
        format!("There are several Jobs at once, of which one may stay: {}", names.join(", ")),
    );
}

pub(super) fn run_on_despite_problem(facts: &Facts<'_>, decision: &mut Decision) {
    let (Some(run), Some(problem)) = (facts.run(), facts.problem()) else { return };
    decision.desired = Desired::AsIs(run.job.clone());
    decision.problem = Some(problem.clone());
    say(decision, phase_of(&run.purpose), format!("It runs on as it was before this: {problem}"));
}

pub(super) fn fail(facts: &Facts<'_>, decision: &mut Decision) {
    let Some(problem) = facts.problem() else { return };
    decision.problem = Some(problem.clone());
    // Its class goes on without it.
    decision.status.rollout = None;
    say(decision, Phase::Failed, problem.to_string());
}

pub(super) fn stay_crashed(facts: &Facts<'_>, decision: &mut Decision) {
    let last = facts.status.history.iter().find(|past| past.outcome == crate::kinds::Outcome::Failed);
    let what = last.map_or_else(String::new, |past| {
        let code = past.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        format!("Job {} failed ({}{code}). ", past.job, past.reason)
    });
    let until =
        "No more is started until its spec changes, a restart is asked for, or it is suspended and resumed";
    say(decision, Phase::CrashLoopDetected, format!("{what}{until}"));
}

pub(super) fn wait_for_rollout(facts: &Facts<'_>, decision: &mut Decision) {
    let Some(run) = facts.run() else { return };
    let (at, message) = match facts.rollout() {
        Permit::Granted => return,
        Permit::At(at) => (
            at,
            "A template or a Secret has changed: it waits for its turn to be restarted, and runs on meanwhile",
        ),
        Permit::Halted(at) => (
            at,
            "A template or a Secret has changed, and streams that were restarted for it fail: the roll-out is halted, and it runs on as it is",
        ),
    };
    decision.desired = Desired::AsIs(run.job.clone());
    decision.wake_at = Some(at);
    say(decision, phase_of(&run.purpose), message);
}

/// That the stream takes part is in the status before its run is stopped: another operator goes on from there.
pub(super) fn roll_out(facts: &Facts<'_>, decision: &mut Decision) {
    let Some(run) = facts.run() else { return };
    decision.status.rollout = Some(Rollout { stopped: run.number, ready_since: None });
    decision.status_first = true;
    stop(decision, "A template or a Secret has changed: the run is stopped");
}

pub(super) fn run_on(facts: &Facts<'_>, decision: &mut Decision) {
    let Some(run) = facts.run() else { return };
    let on = facts.on.schedule.filter(|schedule| schedule.name == run.job);
    decision.let_go.extend(on.into_iter().flat_map(|on| &on.ended).map(|(name, ..)| name.clone()));
    decision.desired = Desired::Run(run.clone());
    // It was to be stopped for a change that was undone before.
    decision.status.rollout.take_if(|rollout| rollout.stopped >= run.number);
    let what = match &run.purpose {
        Purpose::Stream => "Job",
        Purpose::Schedule => "CronJob",
        Purpose::Backfill { .. } => "Backfill",
    };
    say(decision, phase_of(&run.purpose), format!("{what} {} runs", run.job));
}

pub(super) fn wait_for_pods(facts: &Facts<'_>, decision: &mut Decision) {
    let pods = facts.lingering();
    let all: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    let deleted = match facts.left_behind().join(", ") {
        none if none.is_empty() => none,
        some => format!("; deleted, as their Job is gone: {some}"),
    };
    say(
        decision,
        Phase::Pending,
        format!("Pods of a former run have not ended: {}{deleted}", all.join(", ")),
    );
}

pub(super) fn wait_for_attempt(facts: &Facts<'_>, decision: &mut Decision) {
    let Some(at) = facts.pause() else { return };
    decision.wake_at = Some(at);
    let why = match facts.status.failures {
        0 => String::new(),
        failures => format!(", after {failures} failures in a row"),
    };
    say(decision, Phase::Pending, format!("The next attempt is at {at}{why}"));
}

pub(super) fn wait_for_start(facts: &Facts<'_>, decision: &mut Decision) {
    if let Permit::At(at) | Permit::Halted(at) = facts.start() {
        decision.wake_at = Some(at);
    }
    say(decision, Phase::Pending, "Its class starts no more Jobs for now: it waits for its turn");
}

pub(super) fn start_backfill(facts: &Facts<'_>, decision: &mut Decision) {
    let (request, id) = match facts.wanted() {
        Some(Wanted::Request(request)) => (Some(request.uid.clone()), request.name.clone()),
        Some(Wanted::Own) | None => (None, format!("run-{}", facts.status.runs_started.saturating_add(1))),
    };
    let begun = facts.status.begun.as_ref().filter(|begun| Some(&begun.request) == request.as_ref());
    let attempt = match request {
        Some(_) => begun.map_or(0, |begun| begun.attempts),
        None => u32::try_from(facts.status.failures).unwrap_or(u32::MAX),
    };
    let reload = if request.is_none() { facts.reload().map(ToOwned::to_owned) } else { None };
    start(facts, decision, Purpose::Backfill { request, id, reload }, attempt.saturating_add(1));
}

/// The status is left without the run and says `Pending`: both come in once the Job is there. The server may refuse it.
pub(super) fn start(facts: &Facts<'_>, decision: &mut Decision, purpose: Purpose, attempt: u32) {
    // A rule before has seen to it that there are some.
    let Ok(made_from) = facts.hashes(purpose.is_backfill()) else { return };
    let number = facts.status.runs_started.saturating_add(1);
    let job = (facts.on.names)(&purpose, number);
    say(decision, Phase::Pending, format!("{} {job} is started", purpose.kind()));
    let (made_from, started_at) = (made_from.clone(), facts.on.now);
    let layout = LAYOUT;
    decision.desired =
        Desired::Run(ActiveRun { number, purpose, made_from, attempt, job, started_at, layout });
}
