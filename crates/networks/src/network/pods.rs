//! Which pods are peers, and which of these can be asked. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt as _;

use super::reason::Unready;
use crate::config::NetworkConfig;
use crate::kinds::labels;
use crate::rpc::Endpoint;
use crate::rpc::multiaddr::Announced;

/// Containers of a cluster on one machine. Their pods are processes at loopback addresses, or simulated at others.
const LOCAL_CONTAINER: &str = "mainstay://";

/// So much is told of what a node says of a container: it may say it of thousands of peers, and the status holds all of that.
const TOLD_CHARS_MAX: usize = 160;

/// A pod that is a peer, or will be.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerPod {
    /// Its name, which is the peer's.
    pub name: String,
    /// The place of its group.
    pub group: usize,
    /// Whether it can be asked.
    pub standing: Result<Asked, Unready>,
}

/// A pod that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Where.
    pub endpoint: Endpoint,
    /// The addresses that its peer may announce.
    pub announced: Announced,
    /// Which run of which pod: a peer can be another one after each start.
    pub run: String,
}

/// The peers among pods, by the place of their group and then by ordinal.
pub fn peer_pods(pods: &[Pod], config: &NetworkConfig, asks_simulated: bool) -> Vec<PeerPod> {
    let groups: BTreeMap<String, usize> =
        (0..config.peers.len()).map(|place| (config.group_name(place), place)).collect();
    let mut found: Vec<(u32, PeerPod)> = pods
        .iter()
        .filter_map(|pod| {
            let group = groups.get(pod.labels().get(labels::GROUP)?)?;
            let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
            if owner.kind != "StatefulSet" || owner.name != config.group_name(*group) {
                return None;
            }
            let name = pod.name_any();
            let ordinal = name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX);
            let standing = standing(pod, config, *group, asks_simulated);
            Some((ordinal, PeerPod { name, group: *group, standing }))
        })
        .collect();
    found.sort_by(|(one, a), (other, b)| (a.group, one, &a.name).cmp(&(b.group, other, &b.name)));
    found.into_iter().map(|(_, pod)| pod).collect()
}

/// What holds a container up, in the words of its node. For one that ends again and again they are about the next attempt, and its last end tells more.
fn held_up(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    let ended = |ended: &ContainerStateTerminated| format!("it ended with code {}", ended.exit_code);
    let (reason, more) = match (&state.waiting, &state.terminated) {
        (Some(waiting), _) => {
            let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
            (waiting.reason.clone()?, last.map(ended).or_else(|| waiting.message.clone()))
        }
        (None, Some(last)) => (last.reason.clone()?, Some(ended(last))),
        (None, None) => return None,
    };
    let more = more.filter(|more| !more.is_empty()).unwrap_or_default();
    let told: String = more.chars().take(TOLD_CHARS_MAX).collect();
    let rest = if told.len() < more.len() { "…" } else { "" };
    Some(if told.is_empty() { reason } else { format!("{reason}: {told}{rest}") })
}

fn standing(pod: &Pod, config: &NetworkConfig, group: usize, asks_simulated: bool) -> Result<Asked, Unready> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Err(Unready::PodTerminating);
    }
    let status = pod.status.clone().unwrap_or_default();
    let phase = status.phase.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let condition = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    if condition("Ready").is_none_or(|ready| ready.status != "True") {
        let (steps, containers) = (status.init_container_statuses, status.container_statuses);
        let has_ended_well = |step: &&ContainerStatus| {
            let ended = step.state.as_ref().and_then(|state| state.terminated.as_ref());
            ended.is_some_and(|ended| ended.exit_code == 0)
        };
        let steps = steps.iter().flatten().filter(|step| !has_ended_well(step));
        let why = steps.chain(containers.iter().flatten()).find_map(held_up);
        let unscheduled = condition("PodScheduled").filter(|scheduled| scheduled.status == "False");
        let why = why.or_else(|| unscheduled.and_then(|scheduled| scheduled.message.clone()));
        let why = why.unwrap_or_default();
        return Err(match phase.as_str() {
            "Running" => Unready::PodNotReady(why),
            "Succeeded" | "Failed" => Unready::PodEnded,
            _ => Unready::PodPending(why),
        });
    }
    let Some(address) = status.pod_ip.and_then(|ip| ip.parse::<IpAddr>().ok()) else {
        return Err(Unready::PodPending("it has no address".into()));
    };
    let further = status.pod_ips.unwrap_or_default().into_iter().filter_map(|ip| ip.ip.parse().ok());
    let own = std::iter::once(address).chain(further.filter(|ip| *ip != address)).collect();
    let containers = status.container_statuses.unwrap_or_default();
    let ids: Vec<String> = containers.iter().filter_map(|container| container.container_id.clone()).collect();
    let is_local = ids.iter().any(|id| id.starts_with(LOCAL_CONTAINER));
    if is_local && !address.is_loopback() && !asks_simulated {
        return Err(Unready::Simulated);
    }
    let group = config.peers.get(group).cloned().unwrap_or_default();
    let host = match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let endpoint = Endpoint {
        adapter: group.rpc.adapter,
        url: format!("http://{host}:{}", group.rpc.port),
        timeout: Duration::from_millis(u64::try_from(group.rpc.timeout_milliseconds).unwrap_or_default()),
    };
    let run = format!("{} {} {}", pod.uid().unwrap_or_default(), ids.join(" "), endpoint.url);
    let announced = Announced { own, others: group.allow_other_addresses };
    Ok(Asked { endpoint, announced, run })
}
