//! What there is for a simulation: its network, peers, Jobs and pods.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use mainstay::{Error, SyncRequest};

use super::decide::{JobState, Jobs, Look, NetworkState};
use super::manager::ManagerPlace;
use super::objects::{MANAGER_PORT, report_name, worker_name};
use crate::config::NetworkConfig;
use crate::kinds::labels::{self, role};
use crate::kinds::{Network, SimulationStatus};
use crate::peers::{self, PEERS_KEY, Peer};

/// Containers of a cluster on one machine. Their pods are processes at loopback addresses, or simulated at others.
const LOCAL_CONTAINER: &str = "mainstay://";

/// What there is.
pub(super) struct Found {
    pub(super) network_name: String,
    pub(super) peers_config_map: String,
    pub(super) network: NetworkState,
    pub(super) peers: Vec<Peer>,
    pub(super) pods: BTreeMap<String, String>,
    pub(super) jobs: Jobs,
    pub(super) has_former_jobs: bool,
    pub(super) has_report: bool,
    pub(super) manager: Option<ManagerPlace>,
}

impl Found {
    pub(super) fn read(request: &SyncRequest, status: &SimulationStatus, run: &str) -> Result<Self, Error> {
        let namespace = request.namespace().unwrap_or_default();
        let network_name =
            namespace.strip_prefix(&NetworkConfig::namespace("")).unwrap_or_default().to_owned();
        let network: Option<Network> =
            if network_name.is_empty() { None } else { request.get(&network_name)? };
        let network = network.filter(|network| network.metadata.deletion_timestamp.is_none());
        let config = network.as_ref().map(|network| NetworkConfig::from(network.spec.clone()));
        let peers_config_map = config.unwrap_or_default().peers_config_map;
        let own = format!("{}={}", labels::SIMULATION, request.name());
        let manager_pods: Vec<Pod> = request.select(&format!("{own},{}={}", labels::ROLE, role::MANAGER))?;
        let peer_pods: Vec<Pod> = request.select(&format!("{}={}", labels::ROLE, role::PEER))?;
        let manager = manager_pods.iter().find_map(|pod| place(pod, run));
        let (jobs, has_former_jobs) = read_jobs(request, status, run, manager.as_ref())?;
        let reports: Vec<ConfigMap> = request.children::<ConfigMap>().iter().collect::<Result<_, _>>()?;
        let is_report = |map: &ConfigMap| {
            map.name_any() == report_name(request.name())
                && map.annotations().get(labels::RUN).is_some_and(|of| of == run)
        };
        Ok(Self {
            peers: peers_of(request, &peers_config_map)?,
            network_name,
            peers_config_map,
            network: stands(network.as_ref()),
            pods: uids(&peer_pods),
            jobs,
            has_former_jobs,
            has_report: reports.iter().any(is_report),
            manager,
        })
    }
}

/// The peers that answer, as the network has published them.
pub(super) fn peers_of(request: &SyncRequest, config_map: &str) -> Result<Vec<Peer>, Error> {
    let map: Option<ConfigMap> = request.get(config_map)?;
    let text = map.and_then(|map| map.data?.remove(PEERS_KEY)).unwrap_or_else(|| "[]".into());
    // Nobody but the operator writes it; what somebody else made of it is put right soon.
    Ok(peers::read(&text).unwrap_or_default())
}

fn uids(pods: &[Pod]) -> BTreeMap<String, String> {
    let there = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    there.filter_map(|pod| Some((pod.name_any(), pod.uid()?))).collect()
}

fn stands(network: Option<&Network>) -> NetworkState {
    let Some(network) = network else { return NetworkState::Missing };
    let Some(status) = &network.status else {
        return NetworkState::NotReady("nothing is known of it yet".into(), Look::default());
    };
    let look = Look {
        ready_peers: status.ready_replicas,
        missing_edges: status.edges.as_ref().map_or(0, |edges| edges.missing),
        components: status.components.unwrap_or_default(),
    };
    let is_current = status.observed_generation == network.metadata.generation;
    match status.conditions.iter().find(|condition| condition.type_ == "Ready") {
        Some(ready) if ready.status == "True" && is_current => NetworkState::Ready(look),
        Some(ready) if ready.status == "True" => {
            NetworkState::NotReady("it has been changed just now".into(), look)
        }
        Some(ready) => NetworkState::NotReady(format!("{}: {}", ready.reason, ready.message), look),
        None => NetworkState::NotReady("nothing is known of it yet".into(), look),
    }
}

fn read_jobs(
    request: &SyncRequest,
    status: &SimulationStatus,
    run: &str,
    manager: Option<&ManagerPlace>,
) -> Result<(Jobs, bool), Error> {
    let mut jobs = Jobs { manager_url: manager.map(|place| place.url.clone()), ..Jobs::default() };
    let mut has_former = false;
    let places: BTreeMap<String, usize> =
        (0..status.peers.len()).map(|worker| (worker_name(request.name(), worker), worker)).collect();
    for job in request.children::<Job>().iter() {
        let job = job?;
        if job.annotations().get(labels::RUN).is_none_or(|of| of != run) {
            has_former = true;
        } else if job.metadata.deletion_timestamp.is_some() {
            // It is as good as gone.
        } else if job.labels().get(labels::ROLE).is_some_and(|is| is == role::MANAGER) {
            jobs.manager = Some(state(&job));
        } else if let Some(worker) = places.get(&job.name_any()) {
            jobs.workers.insert(*worker, state(&job));
        }
    }
    Ok((jobs, has_former))
}

fn state(job: &Job) -> JobState {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    for condition in conditions.filter(|condition| condition.status == "True") {
        match condition.type_.as_str() {
            "Complete" | "SuccessCriteriaMet" => return JobState::Succeeded,
            "Failed" | "FailureTarget" => {
                let words =
                    [&condition.reason, &condition.message].map(|word| word.clone().unwrap_or_default());
                return JobState::Failed(words.join(": "));
            }
            _ => {}
        }
    }
    let created = job.metadata.creation_timestamp.as_ref();
    JobState::Active(created.map_or(Timestamp::UNIX_EPOCH, |at| at.0))
}

/// Where a manager can be asked: its pod is ready.
fn place(pod: &Pod, run: &str) -> Option<ManagerPlace> {
    let status = pod.status.as_ref()?;
    let of_run = pod.annotations().get(labels::RUN).is_some_and(|of| of == run);
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready")?;
    if !of_run || pod.metadata.deletion_timestamp.is_some() || ready.status != "True" {
        return None;
    }
    let address: IpAddr = status.pod_ip.as_deref()?.parse().ok()?;
    let ids =
        status.container_statuses.iter().flatten().filter_map(|container| container.container_id.as_deref());
    let is_local = ids.into_iter().any(|id| id.starts_with(LOCAL_CONTAINER));
    let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
    let url = format!("http://{host}:{MANAGER_PORT}");
    Some(ManagerPlace { url, is_simulated: is_local && !address.is_loopback() })
}
