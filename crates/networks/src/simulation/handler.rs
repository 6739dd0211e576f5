//! The operator of simulations: what there is becomes a situation, and the decision an answer.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::Client;
use mainstay::conditions::{Conditions, State};
use mainstay::events::Event;
use mainstay::{
    AsyncFinalize, AsyncHandler, ChildKind, Controller, Error, Finalized, SyncRequest, SyncResponse,
};
use serde_json::{Value, json};

use super::decide::{Decision, Desired, JobState, Situation, are_mended, decide, steps};
use super::execute::Faults;
use super::faults;
use super::manager::ManagerClient;
use super::objects::{self, Run, manager_name, report_name, run_of, worker_name};
use super::observe::{Found, peers_of};
use super::reason::Reason;
use super::report::{Progress, Report, Stage};
use crate::check::{Problem, simulation_name_problems, simulation_problems};
use crate::config::{NetworkConfig, SimulationConfig};
use crate::kinds::{FaultPhase, Network, Simulation, SimulationPhase, SimulationStatus, Verdict};
use crate::rpc::Rpc;
use crate::time::later;

/// How long peers that do not answer keep a simulation from being deleted.
const DELETION_PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);

/// What the operator acts by.
#[derive(Clone)]
pub struct Means {
    /// How pods are deleted.
    pub client: Client,
    /// How peers are disturbed.
    pub rpc: Arc<dyn Rpc>,
    /// How managers are asked.
    pub managers: Arc<dyn ManagerClient>,
}

/// The controller of simulations.
pub fn controller(means: Means) -> Controller {
    let Means { client, rpc, managers } = means;
    let simulations = Simulations { faults: Faults { client, rpc, only_looks: false }, managers };
    Controller::of::<Simulation>()
        .child(ChildKind::of::<Job>().recreate_when_immutable().delete_in_foreground())
        .owns::<Service>()
        .owns::<ConfigMap>()
        .reads::<Network>()
        .reads::<ConfigMap>()
        .reads::<Pod>()
        .deletes::<Pod>()
        .finalize_async(simulations.clone())
        .sync_async(simulations)
}

#[derive(Clone)]
struct Simulations {
    faults: Faults,
    managers: Arc<dyn ManagerClient>,
}

impl AsyncHandler for Simulations {
    async fn sync(&self, request: SyncRequest) -> Result<SyncResponse, Error> {
        let simulation: Simulation = request.parent()?;
        let config = SimulationConfig::from(simulation.spec.clone());
        let status = simulation.status.unwrap_or_default();
        let run = run_of(&simulation.spec);
        let found = Found::read(&request, &status, &run)?;
        let mut problems = simulation_name_problems(request.name());
        problems.extend(simulation_problems(&config));
        if !problems.is_empty() {
            return self.refuse(&request, &found, status, &problems).await;
        }
        let (progress, report) = self.ask(&status, &run, &found).await;
        let mut situation = Situation {
            now: request.now(),
            config: &config,
            run: &run,
            status: &status,
            network: &found.network,
            peers: &found.peers,
            pods: &found.pods,
            jobs: &found.jobs,
            has_former_jobs: found.has_former_jobs,
            has_report: found.has_report,
            progress: progress.as_ref(),
            report: report.as_ref(),
            outcomes: &[],
        };
        let namespace = request.namespace().unwrap_or_default();
        let outcomes = self.faults(&request).carry_out(namespace, &found.peers, steps(&situation)).await;
        situation.outcomes = &outcomes;
        let decision = decide(&situation);
        if let (true, Some(manager)) = (decision.dismiss && !request.only_plans(), &found.manager) {
            // Who cannot be told goes by itself after a while.
            let _ = self.managers.dismiss(manager).await;
        }
        answer(&request, &config, &found, &status, decision, report.as_ref())
    }
}

impl Simulations {
    /// What faults are carried out by: nothing is, if somebody only wants to know what would be.
    fn faults(&self, request: &SyncRequest) -> Faults {
        Faults { only_looks: request.only_plans(), ..self.faults.clone() }
    }

    /// Nothing is changed for a spec that cannot be used, but nobody is kept apart for it either.
    async fn refuse(
        &self,
        request: &SyncRequest,
        found: &Found,
        before: SimulationStatus,
        problems: &[Problem],
    ) -> Result<SyncResponse, Error> {
        let namespace = request.namespace().unwrap_or_default();
        let steps = faults::mend(&before, &found.peers);
        let outcomes = self.faults(request).carry_out(namespace, &found.peers, steps).await;
        let mut status = before.clone();
        let parted = status.faults.iter_mut().filter(|fault| faults::is_parted(fault));
        let is_mended = are_mended(&outcomes);
        parted.filter(|_| is_mended).for_each(|fault| fault.phase = FaultPhase::Over);
        if is_mended {
            status.blocked_addresses.clear();
        }
        let message = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let mut response = SyncResponse::new();
        keep(request, &mut response, |_| true)?;
        if !is_mended {
            response = response.requeue_after(AGAIN);
        }
        let news = Some((Reason::InvalidSpec, message));
        let (desired, wake_at) = (Desired::AsIs, None);
        let decision = Decision { status, news, desired, dismiss: false, status_first: false, wake_at };
        tell(request, &before, decision, response)
    }

    async fn ask(
        &self,
        status: &SimulationStatus,
        run: &str,
        found: &Found,
    ) -> (Option<Progress>, Option<Report>) {
        let is_awaited = matches!(status.phase, SimulationPhase::Starting | SimulationPhase::Running);
        let Some(manager) = found.manager.as_ref().filter(|_| is_awaited && status.run == run) else {
            return (None, None);
        };
        // Who does not answer is asked again until the deadline; that is the decision's affair.
        let Ok(progress) = self.managers.progress(manager).await else { return (None, None) };
        let report = match progress.stage {
            Stage::Done => self.managers.report(manager).await.ok(),
            Stage::Waiting | Stage::Running => None,
        };
        (Some(progress), report)
    }
}

impl AsyncFinalize for Simulations {
    async fn finalize(&self, request: SyncRequest) -> Result<Finalized, Error> {
        let simulation: Simulation = request.parent()?;
        let recorded = simulation.status.unwrap_or_default();
        if !recorded.faults.iter().any(faults::is_parted) {
            return Ok(Finalized::Done);
        }
        let namespace = request.namespace().unwrap_or_default();
        let network = namespace.strip_prefix(&NetworkConfig::namespace("")).unwrap_or_default();
        let network: Option<Network> = if network.is_empty() { None } else { request.get(network)? };
        let config = network.map(|network| NetworkConfig::from(network.spec)).unwrap_or_default();
        let peers = peers_of(&request, &config.peers_config_map)?;
        let mended = faults::mend(&recorded, &peers);
        let outcomes = self.faults(&request).carry_out(namespace, &peers, mended).await;
        let since = simulation.metadata.deletion_timestamp.map_or(request.now(), |at| at.0);
        if are_mended(&outcomes) || request.now() >= later(since, DELETION_PATIENCE) {
            return Ok(Finalized::Done);
        }
        Ok(Finalized::NotYet(SyncResponse::new().requeue_after(AGAIN)))
    }
}

fn answer(
    request: &SyncRequest,
    config: &SimulationConfig,
    found: &Found,
    before: &SimulationStatus,
    decision: Decision,
    report: Option<&Report>,
) -> Result<SyncResponse, Error> {
    let mut response = SyncResponse::new();
    let run = Run {
        name: request.name(),
        network: &found.network_name,
        peers_config_map: &found.peers_config_map,
        config,
        status: &decision.status,
    };
    match &decision.desired {
        Desired::Nothing => {}
        Desired::Load(manager) => {
            // What is there stays as it was made: a new operator is no reason to begin anew.
            let manager_job = by_name("batch/v1", "Job", &manager_name(run.name));
            let manager_job = if found.jobs.manager.is_some() { manager_job } else { run.manager() };
            response.add_child(run.service())?.add_child(manager_job)?;
            for worker in 0..run.status.peers.len() {
                // A Job that is there was made for the manager that there is: it would have been lost with any other.
                if found.jobs.workers.contains_key(&worker) {
                    response.add_child(by_name("batch/v1", "Job", &worker_name(run.name, worker)))?;
                } else if let (Some(manager), false) = (manager, is_running(before)) {
                    response.add_child(run.worker(worker, manager))?;
                }
            }
        }
        Desired::LoadAndReport => {
            keep(request, &mut response, |name| name != report_name(run.name))?;
            if let Some(report) = report {
                response.add_child(run.report(report))?;
            }
        }
        Desired::Ended => {
            let jobs = &found.jobs;
            keep(request, &mut response, |name| has_ended(request.name(), jobs, name))?;
        }
        Desired::AsIs => keep(request, &mut response, |_| true)?,
    }
    if decision.status_first {
        response = response.status_first();
    }
    if let Some(at) = decision.wake_at {
        response = response.requeue_after(until(at, request.now()));
    }
    tell(request, before, decision, response)
}

fn is_running(status: &SimulationStatus) -> bool {
    status.phase == SimulationPhase::Running
}

/// Puts status, conditions and events into the answer.
fn tell(
    request: &SyncRequest,
    before: &SimulationStatus,
    decision: Decision,
    mut response: SyncResponse,
) -> Result<SyncResponse, Error> {
    let mut status = decision.status;
    let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
    let (generation, now) = (Some(request.generation()), request.now());
    if let Some((reason, message)) = &decision.news {
        let is_judged = status.phase == SimulationPhase::Finished;
        conditions.set("Ready", is_judged.into(), reason.as_str(), message, generation, now)?;
        let (state, word) = match status.verdict {
            Some(Verdict::Passed) => (State::True, "Passed"),
            Some(Verdict::Failed) => (State::False, "Failed"),
            None => (State::Unknown, "NotJudged"),
        };
        conditions.set("Verdict", state, word, message, generation, now)?;
        let is_new = before.conditions.iter().all(|known| known.reason != reason.as_str());
        if status.phase != before.phase || (is_new && *reason == Reason::InvalidSpec) {
            let is_bad = status.phase == SimulationPhase::Failed
                || status.verdict == Some(Verdict::Failed)
                || *reason == Reason::InvalidSpec;
            let event = if is_bad { Event::warning } else { Event::normal };
            response = response.with_event(event(reason.as_str(), message));
        }
    }
    if status.phase == SimulationPhase::Finished {
        status.report = Some(report_name(request.name()));
    }
    status.conditions = conditions.into();
    response.set_status(&status)?;
    Ok(response)
}

/// Keeps children as they are.
fn keep(
    request: &SyncRequest,
    response: &mut SyncResponse,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    for child in request.all_children().iter().filter(|child| wanted(child.name())) {
        let kind = child.kind();
        response.add_child(by_name(&kind.api_version(), kind.kind(), child.name()))?;
    }
    Ok(())
}

fn by_name(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

/// Whether a child is of the run's manager or workers, and has ended.
fn has_ended(simulation: &str, jobs: &super::decide::Jobs, name: &str) -> bool {
    let is_over = |state: &JobState| !matches!(state, JobState::Active(_));
    let is_manager = name == manager_name(simulation) && jobs.manager.as_ref().is_some_and(is_over);
    let mut workers = jobs.workers.iter();
    is_manager
        || workers.any(|(worker, state)| name == objects::worker_name(simulation, *worker) && is_over(state))
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    // A moment at least: a time that has come already is seen in the next sync.
    Duration::try_from(at.duration_since(now)).unwrap_or_default().max(Duration::from_millis(1))
}
