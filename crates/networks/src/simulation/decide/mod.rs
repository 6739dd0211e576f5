//! How far a simulation is, and what shall be there for it. Pure.
//!
//! ```text
//! Pending ─▶ Starting ─▶ Running ─▶ Finished
//!    ▲           └──────────┴─────▶ Failed
//!    └── another spec or nonce, from anywhere
//! ```

mod running;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::faults::{self, Outcome, Step, View};
use super::objects::START_SECONDS;
use super::reason::Reason;
use super::report::{Progress, Report, Stage};
use crate::config::SimulationConfig;
use crate::kinds::{FaultStatus, SimulationPhase, SimulationStatus};
use crate::peers::Peer;
use crate::time::{earlier, later};

/// How often a manager is asked while something is expected of it.
const ASK: Duration = Duration::from_secs(1);

/// All that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// What time it is.
    pub now: Timestamp,
    /// What was declared.
    pub config: &'a SimulationConfig,
    /// Which run that asks for.
    pub run: &'a str,
    /// What is recorded.
    pub status: &'a SimulationStatus,
    /// How the network stands.
    pub network: &'a NetworkState,
    /// The peers that answer.
    pub peers: &'a [Peer],
    /// The uids of their pods, by name.
    pub pods: &'a BTreeMap<String, String>,
    /// The Jobs of this run.
    pub jobs: &'a Jobs,
    /// Whether there are Jobs of another run.
    pub has_former_jobs: bool,
    /// Whether the report is kept already.
    pub has_report: bool,
    /// What the manager says, if it could be asked.
    pub progress: Option<&'a Progress>,
    /// What it reports, once it can.
    pub report: Option<&'a Report>,
    /// What became of the steps that [`steps`] asked for.
    pub outcomes: &'a [(Step, Outcome)],
}

/// How the network stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkState {
    /// There is none.
    Missing,
    /// It is not ready, for this reason; and what it looks like.
    NotReady(String, Look),
    /// It is ready.
    Ready(Look),
}

/// What a network looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// Peers that answer.
    pub ready_peers: i32,
    /// Declared connections that are not there.
    pub missing_edges: i32,
    /// Islands.
    pub components: i32,
}

/// The Jobs of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jobs {
    /// The manager's.
    pub manager: Option<JobState>,
    /// Where the manager is, once it can be asked.
    pub manager_url: Option<String>,
    /// The workers'.
    pub workers: BTreeMap<usize, JobState>,
}

/// How a Job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It runs, or will; since when it is there.
    Active(Timestamp),
    /// It is done.
    Succeeded,
    /// It is not, and why.
    Failed(String),
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What is recorded, but for conditions.
    pub status: SimulationStatus,
    /// Why it stands as it does. Nothing: as before.
    pub news: Option<(Reason, String)>,
    /// What shall be there.
    pub desired: Desired,
    /// Whether the manager may go.
    pub dismiss: bool,
    /// Whether the status has to be written before anything else is done.
    pub status_first: bool,
    /// When to look again, besides whenever something changes.
    pub wake_at: Option<Timestamp>,
}

/// What shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Desired {
    /// Nothing.
    Nothing,
    /// Service and manager, and workers that find it there.
    Load(Option<String>),
    /// As it is, and the report.
    LoadAndReport,
    /// Whatever has ended, to be looked at.
    Ended,
    /// Whatever is there.
    AsIs,
}

impl Decision {
    fn new(status: SimulationStatus, reason: Reason, message: impl Into<String>, desired: Desired) -> Self {
        let news = Some((reason, message.into()));
        Self { status, news, desired, dismiss: false, status_first: false, wake_at: None }
    }

    fn wake(mut self, at: Timestamp) -> Self {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
        self
    }
}

/// What faults ask for now, from what is recorded. To be carried out before [`decide`] is asked.
pub fn steps(situation: &Situation<'_>) -> Vec<Step> {
    if situation.status.run == situation.run {
        let blocked = faults::blocked_addresses(situation.status);
        faults::steps(&situation.config.faults, &situation.status.faults, view(situation, &blocked))
    } else {
        faults::mend(situation.status, situation.peers)
    }
}

/// What follows from a situation.
pub fn decide(situation: &Situation<'_>) -> Decision {
    if situation.status.run != situation.run {
        return renew(situation);
    }
    match situation.status.phase {
        SimulationPhase::Pending => renew(situation),
        SimulationPhase::Starting => starting(situation),
        SimulationPhase::Running => running::running(situation),
        SimulationPhase::Finished | SimulationPhase::Failed => over(situation),
    }
}

fn view<'a>(situation: &Situation<'a>, blocked: &'a BTreeSet<IpAddr>) -> View<'a> {
    let Situation { now, config, status, .. } = *situation;
    let began_at = status.started_at.as_ref().map_or(now, |at| at.0);
    let run_end =
        later(began_at, Duration::from_secs(u64::try_from(config.run_time_seconds).unwrap_or_default()));
    View {
        now,
        began_at,
        ends_at: status.finished_at.as_ref().map_or(run_end, |at| at.0.min(run_end)),
        seed: config.seed,
        names: &status.peers,
        peers: situation.peers,
        pods: situation.pods,
        blocked,
    }
}

/// Another run is asked for than the one that is recorded, if any is.
fn renew(situation: &Situation<'_>) -> Decision {
    let Situation { now, status, peers, .. } = *situation;
    let pending = SimulationStatus { conditions: status.conditions.clone(), ..SimulationStatus::default() };
    if status.faults.iter().any(faults::is_parted) && !are_mended(situation.outcomes) {
        let message = "peers that a partition keeps apart are told that it is over";
        let decision = Decision::new(status.clone(), Reason::MendingPartition, message, Desired::Nothing);
        return decision.wake(later(now, ASK));
    }
    if situation.has_former_jobs {
        let message = "manager and workers of a former run are stopped";
        return Decision::new(pending, Reason::StoppingFormerRun, message, Desired::Nothing);
    }
    match situation.network {
        NetworkState::Missing => {
            let message =
                "this namespace is no network's: a simulation is made in that of its network, network-NAME";
            Decision::new(pending, Reason::NetworkMissing, message, Desired::Nothing)
        }
        NetworkState::NotReady(why, _) => {
            let message = format!("the network is not ready: {why}");
            Decision::new(pending, Reason::NetworkNotReady, message, Desired::Nothing)
        }
        NetworkState::Ready(_) if peers.is_empty() => {
            Decision::new(pending, Reason::NoPeers, "no peer is told in peers.json", Desired::Nothing)
        }
        NetworkState::Ready(_) => {
            let names = peers.iter().map(|peer| peer.name.clone()).collect();
            let (run, phase) = (situation.run.to_owned(), SimulationPhase::Starting);
            let status = SimulationStatus { run, phase, peers: names, ..pending };
            let message = format!("a manager is started for {} workers", peers.len());
            let mut decision = Decision::new(status, Reason::StartingManager, message, Desired::Load(None));
            decision.status_first = true;
            decision
        }
    }
}

/// Who answers was told that a partition is over. Who does not is not waited for.
pub(super) fn are_mended(outcomes: &[(Step, Outcome)]) -> bool {
    outcomes.iter().all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_)))
}

fn starting(situation: &Situation<'_>) -> Decision {
    let Situation { now, status, jobs, .. } = *situation;
    if let Some((reason, message)) = lost(situation) {
        return fail(situation, status.clone(), reason, message);
    }
    let expected = status.peers.len();
    let own = situation.progress.filter(|progress| progress.run == situation.run);
    if let Some(progress) = own.filter(|progress| progress.stage != Stage::Waiting) {
        let began = earlier(now, Duration::from_millis(progress.elapsed_milliseconds));
        let mut status = status.clone();
        status.phase = SimulationPhase::Running;
        status.started_at = Some(Time(began));
        let message = format!("there is load on {expected} peers");
        let workers = Desired::Load(jobs.manager_url.clone());
        return Decision::new(status, Reason::Running, message, workers).wake(now);
    }
    let deadline = match &jobs.manager {
        Some(JobState::Active(since)) => {
            Some(later(*since, Duration::from_secs(START_SECONDS.unsigned_abs().into())))
        }
        _ => None,
    };
    let come = own.map_or(0, |progress| progress.registered);
    if deadline.is_some_and(|deadline| now >= deadline) {
        let seconds = START_SECONDS;
        let what = if jobs.manager_url.is_none() {
            "the manager did not start".into()
        } else {
            format!("{come} of {expected} workers came")
        };
        let message = format!("{what} within {seconds} seconds");
        return fail(situation, status.clone(), Reason::StartDeadlineExceeded, message);
    }
    let mut decision = if jobs.manager_url.is_some() {
        let message = format!("{expected} workers are started");
        let load = Desired::Load(jobs.manager_url.clone());
        Decision::new(status.clone(), Reason::StartingWorkers, message, load).wake(later(now, ASK))
    } else {
        let message = format!("a manager is started for {expected} workers");
        Decision::new(status.clone(), Reason::StartingManager, message, Desired::Load(None))
    };
    if let Some(deadline) = deadline {
        decision = decision.wake(deadline);
    }
    decision
}

/// Who has ended without having told.
fn lost(situation: &Situation<'_>) -> Option<(Reason, String)> {
    let Situation { jobs, status, .. } = *situation;
    let running = status.phase == SimulationPhase::Running;
    match &jobs.manager {
        Some(JobState::Failed(why)) => {
            return Some((Reason::ManagerLost, format!("the manager failed: {why}")));
        }
        Some(JobState::Succeeded) => {
            return Some((Reason::ManagerLost, "the manager ended before its report was read".into()));
        }
        None if running || !jobs.workers.is_empty() => {
            return Some((Reason::ManagerLost, "the manager's Job was deleted".into()));
        }
        Some(JobState::Active(_)) | None => {}
    }
    for (worker, peer) in status.peers.iter().enumerate() {
        let why = match jobs.workers.get(&worker) {
            Some(JobState::Failed(why)) => why.clone(),
            None if running => "its Job was deleted".into(),
            Some(JobState::Active(_) | JobState::Succeeded) | None => continue,
        };
        return Some((Reason::WorkerLost, format!("worker {worker} of {peer} failed: {why}")));
    }
    None
}

/// It cannot be carried out. What still runs is stopped.
fn fail(
    situation: &Situation<'_>,
    mut status: SimulationStatus,
    reason: Reason,
    message: String,
) -> Decision {
    status.phase = SimulationPhase::Failed;
    status.finished_at = Some(Time(situation.now));
    Decision::new(status, reason, message, Desired::Ended).wake(situation.now)
}

/// There is nothing left to do but to mend partitions and to send the manager home.
fn over(situation: &Situation<'_>) -> Decision {
    let Situation { now, status, jobs, config, .. } = *situation;
    let mut status = status.clone();
    let is_finished = status.phase == SimulationPhase::Finished;
    let blocked = faults::blocked_addresses(situation.status);
    let view_before = view(situation, &blocked);
    let is_open = |fault: &FaultStatus| {
        matches!(fault.phase, crate::kinds::FaultPhase::Waiting | crate::kinds::FaultPhase::Active)
    };
    let mut wake_at = None;
    if status.faults.iter().any(is_open) {
        status.faults = faults::advance(&config.faults, &status.faults, view_before, situation.outcomes);
        faults::record_addresses(&mut status, situation.status, situation.peers);
        let blocked = faults::blocked_addresses(&status);
        let tried: Vec<Step> = situation.outcomes.iter().map(|(step, _)| step.clone()).collect();
        wake_at = faults::wake_at(&config.faults, &status.faults, view(situation, &blocked), &tried);
    }
    let is_active = matches!(jobs.manager, Some(JobState::Active(_)));
    let dismiss = is_finished && is_active && situation.has_report && jobs.manager_url.is_some();
    if dismiss {
        let soon = later(now, ASK * 2);
        wake_at = Some(wake_at.map_or(soon, |at: Timestamp| at.min(soon)));
    }
    let desired = if is_finished { Desired::AsIs } else { Desired::Ended };
    Decision { status, news: None, desired, dismiss, status_first: false, wake_at }
}
