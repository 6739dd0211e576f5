//! The first rule that fits, and what is the same for all.

use super::facts::Facts;
use super::rules::RULES;
use super::{Decision, Desired, Happened, Health, Seat, Situation};
use crate::kinds::{Phase, Purpose};

/// Decides what becomes of a stream. Asks nothing but what the situation's [`Asks`](super::Asks) answers, and each question once at most.
///
/// What was decided and half carried out is decided again: whatever it rests on is in the status or on the Jobs themselves.
pub fn decide(situation: &Situation<'_>) -> Decision {
    let facts = Facts::of(situation);
    let mut decision = Decision {
        rule: "",
        message: String::new(),
        status: facts.status.clone(),
        desired: Desired::Nothing,
        status_first: false,
        let_go: facts.spent().map(|job| job.name.clone()).collect(),
        left_behind: Vec::new(),
        problem: None,
        unready: None,
        seat: Seat::None,
        wake_at: None,
        happened: Vec::new(),
    };
    if let Some(rule) = RULES.iter().find(|rule| (rule.holds)(&facts)) {
        decision.rule = rule.name;
        (rule.act)(&facts, &mut decision);
    }
    // Where nothing shall run, nothing runs that has no Job either.
    if decision.desired == Desired::Nothing && situation.jobs.is_empty() && situation.schedule.is_none() {
        decision.left_behind = facts.left_behind();
    }
    decision.unready = unready(situation, &decision.desired);
    decision.seat = seat(&facts, &decision);
    if let Some(at) = facts.settles_at(&decision.status) {
        decision.wake_at = Some(decision.wake_at.map_or(at, |known| known.min(at)));
    }
    let run = decision.status.run.as_ref();
    decision.status.configuration_hash = run.map(|run| run.made_from.short());
    tell(&facts, &mut decision);
    decision
}

/// Why the Job that stays is of no use yet.
fn unready(on: &Situation<'_>, desired: &Desired) -> Option<String> {
    let name = match desired {
        Desired::Nothing => return None,
        Desired::AsIs(name) | Desired::Run(crate::kinds::ActiveRun { job: name, .. }) => name,
    };
    match &on.jobs.iter().find(|job| job.name == *name)?.health {
        Health::Ready => None,
        Health::NotYet { why, .. } if why.is_empty() => Some(format!("The pods of Job {name} are not ready")),
        Health::NotYet { why, .. } => Some(format!("The pods of Job {name} are not ready: {why}")),
    }
}

fn seat(facts: &Facts<'_>, decision: &Decision) -> Seat {
    let status = &decision.status;
    if status.rollout.is_some() {
        let is_failing = status.crashed.is_some() || status.failures > 0 || facts.is_stuck();
        return Seat::Held { is_failing };
    }
    if decision.rule == "RolloutWaits" { Seat::Waits } else { Seat::None }
}

/// Adds what can be seen from the change of the status alone.
fn tell(facts: &Facts<'_>, decision: &mut Decision) {
    if !decision.status_first && !is_there(facts.on, &decision.desired) {
        decision.happened.clear();
        return;
    }
    let (before, after) = (facts.on.status, &decision.status);
    let mut add = |is_warning, reason, note| decision.happened.push(Happened { is_warning, reason, note });
    let changed = before.phase != after.phase;
    if changed && before.phase == Some(Phase::Suspended) {
        add(false, "StreamResumed", "The stream is not suspended any more".to_owned());
    }
    match after.phase {
        Some(Phase::Suspended) if changed => add(false, "StreamSuspended", decision.message.clone()),
        Some(Phase::Failed) if changed => {
            let reason = decision.problem.as_ref().map_or(decision.rule, |problem| problem.reason);
            add(true, reason, decision.message.clone());
        }
        _ => {}
    }
    if let (None, Some(run)) = (&before.run, &after.run) {
        let reason = match run.purpose {
            Purpose::Stream => "StreamStarted",
            Purpose::Schedule => "StreamScheduled",
            Purpose::Backfill { .. } => "BackfillStarted",
        };
        add(false, reason, format!("{} {} was started", run.purpose.kind(), run.job));
    }
}

/// Whether there is nothing to create or delete.
fn is_there(on: &Situation<'_>, desired: &Desired) -> bool {
    let jobs = on.jobs.iter().filter(|job| !job.is_deleting).map(|job| &job.name);
    let schedule = on.schedule.filter(|schedule| !schedule.is_deleting).map(|schedule| &schedule.name);
    let there: Vec<&String> = jobs.chain(schedule).collect();
    match desired {
        Desired::Nothing => there.is_empty(),
        Desired::AsIs(name) | Desired::Run(crate::kinds::ActiveRun { job: name, .. }) => there == [name],
    }
}
