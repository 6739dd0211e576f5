//! The controller of networks.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use mainstay::conditions::{Conditions, State};
use mainstay::events::Event;
use mainstay::{
    AsyncHandler, ChildKind, Controller, Effect, Error, Kind, Related, SyncRequest, SyncResponse,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::decide::{Decision, JobState, Situation, decide, expiration};
use super::execute::{Outcome, execute};
use super::observe::{Memory, Seen, observe};
use super::pods::peer_pods;
use super::reason::Reason;
use super::tell::READY;
use crate::check::problems;
use crate::config::NetworkConfig;
use crate::graph::{Cut, Dial};
use crate::kinds::{Network, NetworkSpec, NetworkStatus, Simulation, labels};
use crate::metrics::NetworkMetrics;
use crate::objects::{self, Parts, SECRET};
use crate::rpc::Rpc;
use crate::simulation::partitions;

/// Peers may take their time, and then some have to dial.
const DEADLINE: Duration = Duration::from_mins(5);
/// Dials that a plan tells one by one.
const DIALS_TOLD: usize = 50;
/// Problems of a spec that a condition names; there can be one for each edge.
const PROBLEMS_TOLD: usize = 20;
/// Bytes that the keys of peers are made from.
const SECRET_BYTES: usize = 32;

/// The controller of networks, which asks peers by this.
pub(crate) fn controller(rpc: Arc<dyn Rpc>, metrics: NetworkMetrics) -> Controller {
    let networks = Arc::new(Networks { rpc, memory: Memory::default(), metrics });
    let gone = Arc::clone(&networks);
    Controller::of::<Network>()
        .owns::<Namespace>()
        .owns::<ConfigMap>()
        .owns::<Secret>()
        .child(ChildKind::of::<Service>().recreate_when_immutable())
        // The next one's pods have the names of the last one's.
        .child(ChildKind::of::<StatefulSet>().recreate_when_immutable().delete_in_foreground())
        .child(ChildKind::of::<Job>().recreate_when_immutable().delete_in_foreground())
        .reads::<Namespace>()
        .reads::<Pod>()
        .reads::<Simulation>()
        .writes_parents()
        .deadline(DEADLINE)
        .when_gone(move |_, uid| {
            gone.memory.forget(uid);
            gone.metrics.forget(uid);
        })
        .sync_async(Handler(networks))
}

struct Networks {
    rpc: Arc<dyn Rpc>,
    memory: Memory,
    metrics: NetworkMetrics,
}

struct Handler(Arc<Networks>);

impl AsyncHandler for Handler {
    async fn sync(&self, request: SyncRequest) -> Result<SyncResponse, Error> {
        self.0.sync(&request).await
    }
}

/// Why nothing is done for a network.
struct Halt {
    reason: Reason,
    message: String,
}

impl Networks {
    async fn sync(self: &Arc<Self>, request: &SyncRequest) -> Result<SyncResponse, Error> {
        let network: Network = request.parent()?;
        let config = NetworkConfig::from(&network.spec);
        let created = network.metadata.creation_timestamp.map_or(request.now(), |time| time.0);
        let known = network.status.unwrap_or_default();
        let expires = expiration(&config, created);
        if expires.is_some_and(|at| at <= request.now()) {
            let message = format!("it was made at {created} to live {} seconds", seconds(&config));
            let halt = Halt { reason: Reason::Expired, message };
            return Ok(stand_still(request, &known, &config, &halt)?.delete_parent());
        }
        if let Some(halt) = obstacle(request, &network.spec, &config)? {
            let response = stand_still(request, &known, &config, &halt)?;
            return Ok(match expires {
                Some(at) => response
                    .requeue_after(Duration::try_from(at.duration_since(request.now())).unwrap_or_default()),
                None => response,
            });
        }
        let pods = related::<Pod>(request, &format!("{}={}", labels::NETWORK, request.name()))?;
        let parted = partitions(&related::<Simulation>(request, "")?);
        let partitions: Vec<Cut> = parted.into_iter().map(Cut::around).collect();
        let conditions = Conditions::of_status(&request.parent_json()["status"]);
        let began = Instant::now();
        let pods = peer_pods(&pods, &config, self.rpc.asks_simulated());
        let seen = observe(&*self.rpc, &self.memory, request.uid(), &pods, request.now()).await;
        self.metrics.looked(began.elapsed());
        let decision = decide(&Situation {
            name: request.name(),
            config: &config,
            created,
            now: request.now(),
            seen: &seen,
            job: job_state(request, &objects::bootstrap_job_name(&config))?,
            conditions: &conditions,
            partitions: &partitions,
            rounds: self.memory.rounds(request.uid()),
        });
        self.metrics.decided(request.uid(), &decision);
        let response = answer(request, &config, &decision, conditions)?;
        Ok(self.dial(request, decision, seen, response))
    }

    /// Has missing connections dialled, once all that is decided is written.
    fn dial(
        self: &Arc<Self>,
        request: &SyncRequest,
        decision: Decision,
        seen: Vec<Seen>,
        response: SyncResponse,
    ) -> SyncResponse {
        // Both ends are asked in the next look, however soon that is.
        self.memory.ask_again(request.uid(), runs_of(&decision.doubtful, &seen));
        if decision.dials.is_empty() {
            if decision.doubtful.is_empty() && seen.iter().any(|seen| seen.is_fresh) {
                self.memory.complete(request.uid());
            }
            return response;
        }
        let told = dials_told(&decision.dials);
        let (networks, uid) = (Arc::clone(self), request.uid().to_owned());
        let given = Arc::new((decision.dials, seen));
        response.with_effect(Effect::new(told, move || {
            let (networks, uid, given) = (Arc::clone(&networks), uid.clone(), Arc::clone(&given));
            async move {
                let outcomes = execute(&*networks.rpc, &given.0, &given.1).await;
                networks.memory.dialled(&uid, runs_of(&given.0, &given.1));
                networks.metrics.dialled(&outcomes);
                Ok(outcomes_told(&outcomes))
            }
        }))
    }
}

/// The runs of those that dialled or were dialled.
fn runs_of<'a>(dials: &[Dial], seen: &'a [Seen]) -> Vec<&'a str> {
    let ends = dials.iter().flat_map(|dial| [dial.from.as_str(), dial.to.as_str()]);
    let ends: BTreeSet<&str> = ends.collect();
    let seen = seen.iter().filter(|seen| ends.contains(seen.name.as_str()));
    seen.filter_map(|seen| Some(seen.answer.as_ref().ok()?.asked.run.as_str())).collect()
}

/// Dials as a plan tells of them.
fn dials_told(dials: &[Dial]) -> String {
    let mut told: Vec<String> =
        dials.iter().take(DIALS_TOLD).map(|dial| format!("{} > {}", dial.from, dial.to)).collect();
    if dials.len() > DIALS_TOLD {
        told.push(format!("and {} more", dials.len() - DIALS_TOLD));
    }
    format!("dial {}", told.join(", "))
}

/// What has to be otherwise before anything is done.
fn obstacle(
    request: &SyncRequest,
    spec: &NetworkSpec,
    config: &NetworkConfig,
) -> Result<Option<Halt>, Error> {
    let problems = problems(spec, config, request.name());
    if !problems.is_empty() {
        let mut all: Vec<String> = problems.iter().take(PROBLEMS_TOLD).map(ToString::to_string).collect();
        if problems.len() > PROBLEMS_TOLD {
            all.push(format!("and {} more", problems.len() - PROBLEMS_TOLD));
        }
        return Ok(Some(Halt { reason: Reason::InvalidSpec, message: all.join("; ") }));
    }
    let name = NetworkConfig::namespace(request.name());
    let Some(there) = request.get::<Namespace>(&name)? else { return Ok(None) };
    if there.metadata.deletion_timestamp.is_some() {
        let message = format!("namespace {name} is being deleted; it is made anew when it is gone");
        return Ok(Some(Halt { reason: Reason::NamespaceTerminating, message }));
    }
    if !request.children::<Namespace>().exists(&name) {
        let message = format!("namespace {name} is not this network's, and is left alone");
        return Ok(Some(Halt { reason: Reason::NamespaceTaken, message }));
    }
    Ok(None)
}

/// What became of dials, as events.
fn outcomes_told(outcomes: &[Outcome]) -> Vec<Event> {
    let (done, failed): (Vec<&Outcome>, Vec<&Outcome>) =
        outcomes.iter().partition(|outcome| outcome.result.is_ok());
    let mut events = Vec::new();
    if let Some(first) = done.first() {
        let first = format!("{} > {}", first.dial.from, first.dial.to);
        let note = match done.len() {
            1 => format!("dialled a missing connection: {first}"),
            several => format!("dialled {several} missing connections: {first}, …"),
        };
        events.push(Event::normal("EdgesRepaired", &note));
    }
    if let Some((first, Err(error))) = failed.first().map(|first| (first, &first.result)) {
        let number = match failed.len() {
            1 => "a connection".to_owned(),
            several => format!("{several} connections"),
        };
        let Dial { from, to } = &first.dial;
        let note = format!("{number} could not be dialled: {from} > {to}: {error}");
        events.push(Event::warning("RepairFailed", &note));
    }
    events
}

/// The answer with all objects and the status.
fn answer(
    request: &SyncRequest,
    config: &NetworkConfig,
    decision: &Decision,
    mut conditions: Conditions,
) -> Result<SyncResponse, Error> {
    let mut response = SyncResponse::new();
    let secret = secret(request)?;
    let parts = Parts {
        secret: Some(&secret),
        peers: Some((&decision.peers, &decision.edges)),
        bootstrap: decision.bootstrap,
    };
    for object in objects::all(request.name(), config, &parts) {
        response.add_child(object)?;
    }
    for told in &decision.told {
        let before = conditions.get(told.condition).map(|before| before.status.clone());
        let (reason, state) = (told.reason.as_str(), told.state);
        let generation = Some(request.generation());
        conditions.set(told.condition, state, reason, &told.message, generation, request.now())?;
        // What was never so is no news when it still is not.
        let is_news = before.as_deref().map_or(state == State::True, |before| before != state.as_str());
        if is_news && state != State::Unknown {
            let event = if state == State::True { Event::normal } else { Event::warning };
            let reason = format!("{}{}", if state == State::True { "" } else { "Not" }, told.condition);
            response = response.with_event(event(&reason, &told.message));
        }
    }
    let status = NetworkStatus { conditions: conditions.into(), ..decision.status.clone() };
    response.set_status(status)?;
    Ok(response.requeue_after(decision.wake))
}

/// Leaves everything as it is, and tells why.
fn stand_still(
    request: &SyncRequest,
    known: &NetworkStatus,
    config: &NetworkConfig,
    halt: &Halt,
) -> Result<SyncResponse, Error> {
    let mut response = SyncResponse::new();
    for child in request.all_children().iter().filter(|child| !child.is_deleting()) {
        let kind = child.kind();
        let mut metadata = json!({"name": child.name()});
        if let Some(namespace) = child.namespace() {
            metadata["namespace"] = json!(namespace);
        }
        response.add_child(
            json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": metadata}),
        )?;
    }
    let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
    let reason = halt.reason.as_str();
    let is_news = conditions.get(READY).is_none_or(|ready| ready.reason != reason);
    conditions.set(READY, State::False, reason, &halt.message, Some(request.generation()), request.now())?;
    if is_news {
        response = response.with_event(Event::warning(reason, &halt.message));
    }
    let created: Network = request.parent()?;
    let created = created.metadata.creation_timestamp.map_or(request.now(), |time| time.0);
    let status = NetworkStatus {
        conditions: conditions.into(),
        namespace: NetworkConfig::namespace(request.name()),
        expiration_time: expiration(config, created)
            .map(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time),
        ..known.clone()
    };
    response.set_status(status)?;
    Ok(response)
}

fn seconds(config: &NetworkConfig) -> i64 {
    match config.ttl_seconds {
        crate::config::Lifetime::Endless => i64::MAX,
        crate::config::Lifetime::Seconds(seconds) => seconds,
    }
}

/// Objects of the network's namespace.
fn related<T>(request: &SyncRequest, selector: &str) -> Result<Vec<T>, Error>
where
    T: kube::Resource<DynamicType = ()> + DeserializeOwned,
    T::Scope: 'static,
{
    let namespace = NetworkConfig::namespace(request.name());
    let found = request.related(&Related::selected(&Kind::of::<T>(), Some(&namespace), selector))?;
    // What does not fit its type is nothing that the operator made.
    Ok(found.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect())
}

fn job_state(request: &SyncRequest, name: &str) -> Result<JobState, Error> {
    let namespace = NetworkConfig::namespace(request.name());
    let Some(job) = request.children::<Job>().get_in(&namespace, name)? else {
        return Ok(JobState::Absent);
    };
    let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
    let is = |type_: &str| {
        conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
    };
    Ok(match () {
        () if is("Complete") => JobState::Succeeded,
        () if is("Failed") => JobState::Failed,
        () => JobState::Running,
    })
}

/// What the keys of peers are made from: what it was before, or else by chance.
fn secret(request: &SyncRequest) -> Result<String, Error> {
    let namespace = NetworkConfig::namespace(request.name());
    let (name, key) = SECRET;
    let there = request.children::<Secret>().get_in(&namespace, name)?;
    let text =
        there.and_then(|secret| secret.data?.remove(key)).and_then(|text| String::from_utf8(text.0).ok());
    if let Some(text) = text {
        return Ok(text);
    }
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::new("the machine has no randomness to give"))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
