//! While there is load: faults, looks at the network, and in the end the verdict.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{ASK, Decision, Desired, Look, NetworkState, Situation, fail, lost, view};
use crate::kinds::{FaultPhase, NetworkSample, SimulationPhase, SimulationStatus, Verdict};
use crate::simulation::criteria::{self, Measures};
use crate::simulation::faults::{self, Step};
use crate::simulation::objects::GRACE_SECONDS;
use crate::simulation::reason::Reason;
use crate::simulation::report::Report;
use crate::time::later;

/// As many samples are kept, or one more.
const SAMPLES: i32 = 60;
/// So long after workers have to be done, faults may take to be over.
const MEND: Duration = Duration::from_mins(1);

pub(super) fn running(situation: &Situation<'_>) -> Decision {
    let Situation { now, config, .. } = *situation;
    let blocked = faults::blocked_addresses(situation.status);
    let before = view(situation, &blocked);
    let mut status = situation.status.clone();
    status.faults = faults::advance(&config.faults, &status.faults, before, situation.outcomes);
    faults::record_addresses(&mut status, situation.status, situation.peers);
    let blocked = faults::blocked_addresses(&status);
    let view = view(situation, &blocked);
    sample(&mut status, situation, view.ends_at);
    if let Some(report) = situation.report.filter(|report| report.run == situation.run) {
        if !report.lost.is_empty() {
            let message = format!("workers that never told: {:?}", report.lost);
            return fail(situation, status, Reason::WorkerLost, message);
        }
        if now >= view.ends_at && status.faults.iter().all(is_settled) {
            return judge(situation, status, report);
        }
    } else if let Some((reason, message)) = lost(situation) {
        return fail(situation, status, reason, message);
    }
    let deadline = later(view.ends_at, Duration::from_secs(GRACE_SECONDS.unsigned_abs().into()) + MEND);
    if now >= deadline {
        let message = format!("there was no report {GRACE_SECONDS} seconds after the load was over");
        return fail(situation, status, Reason::RunDeadlineExceeded, message);
    }
    let message = format!("there is load on {} peers", status.peers.len());
    let tried: Vec<Step> = situation.outcomes.iter().map(|(step, _)| step.clone()).collect();
    let fault = faults::wake_at(&config.faults, &status.faults, view, &tried);
    let look =
        if now >= view.ends_at { later(now, ASK) } else { next_sample(&status, situation).min(view.ends_at) };
    let load = Desired::Load(situation.jobs.manager_url.clone());
    let mut decision = Decision::new(status, Reason::Running, message, load).wake(look);
    if let Some(at) = fault {
        decision = decision.wake(at);
    }
    decision
}

fn is_settled(fault: &crate::kinds::FaultStatus) -> bool {
    matches!(fault.phase, FaultPhase::Over | FaultPhase::Unsupported)
}

fn judge(situation: &Situation<'_>, mut status: SimulationStatus, report: &Report) -> Decision {
    let measures = Measures { report, samples: &status.samples };
    let results = criteria::judge(&situation.config.criteria, measures);
    let verdict = criteria::verdict(&results, measures);
    let met = results.iter().filter(|result| result.met).count();
    let message = match results.iter().find(|result| !result.met) {
        Some(first) => {
            format!("{met} of {} criteria are met; {}: {}", results.len(), first.name, first.message)
        }
        None if verdict == Verdict::Failed => {
            format!("no request was answered: {} were sent", report.total.requests)
        }
        None => format!("{met} of {} criteria are met", results.len()),
    };
    status.criteria = results;
    status.verdict = Some(verdict);
    status.phase = SimulationPhase::Finished;
    status.finished_at = Some(Time(situation.now));
    let decision = Decision::new(status, Reason::Judged, message, Desired::LoadAndReport);
    decision.wake(situation.now)
}

fn interval(situation: &Situation<'_>) -> Duration {
    // Rounded up, or there would be twice as many.
    let seconds = situation.config.run_time_seconds.max(1).saturating_add(SAMPLES - 1) / SAMPLES;
    Duration::from_secs(u64::try_from(seconds).unwrap_or(1))
}

fn next_sample(status: &SimulationStatus, situation: &Situation<'_>) -> Timestamp {
    let last = status.samples.last().map_or(situation.now, |sample| sample.at.0);
    later(last, interval(situation)).max(later(situation.now, ASK / 10))
}

fn sample(status: &mut SimulationStatus, situation: &Situation<'_>, ends_at: Timestamp) {
    let (NetworkState::NotReady(_, look) | NetworkState::Ready(look)) = situation.network else { return };
    let Look { ready_peers, missing_edges, components } = *look;
    let is_due =
        status.samples.last().is_none_or(|last| situation.now >= later(last.at.0, interval(situation)));
    if is_due && situation.now <= ends_at {
        let at = Time(situation.now);
        status.samples.push(NetworkSample { at, ready_peers, missing_edges, components });
    }
}
