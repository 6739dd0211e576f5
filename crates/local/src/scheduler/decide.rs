//! Where a pod goes, and why it goes nowhere. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec, Taint, Toleration, Volume,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;

use super::placed::Placed;
use super::resources::{Amounts, PODS, allocatable, lacking, requests, used};
use crate::controllers::ephemeral::{self, claim_name};
use crate::controllers::storage::{
    BIND_COMPLETED, SELECTED_NODE, Storage, annotation, waits_for_pod, would_be_served_on,
};
use crate::fit;

/// All that a decision looks at.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    /// Those of all namespaces that have a node.
    pub(super) pods: Vec<Placed>,
    /// What pods ask of nodes, where that is known without looking at them.
    pub(super) used: BTreeMap<String, Amounts>,
    /// The claims that the pod names; `None` for those that there are not.
    pub(super) claims: BTreeMap<String, Option<PersistentVolumeClaim>>,
    pub(super) volumes: Vec<PersistentVolume>,
    pub(super) classes: Vec<StorageClass>,
}

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It goes to this node.
    Bind(String),
    /// It will go to this node, once its claims have volumes. These claims do not know of it yet.
    Await { node: String, claims: Vec<String> },
    /// It goes nowhere, for this reason.
    Unschedulable(String),
}

/// Where a pod goes.
pub(super) fn decide(pod: &Pod, world: &World) -> Decision {
    let spec = pod.spec.clone().unwrap_or_default();
    if world.nodes.is_empty() {
        return Decision::Unschedulable("no nodes available to schedule pods".to_owned());
    }
    let count = world.nodes.len();
    let waiting = match waiting_claims(pod, world) {
        Ok(waiting) => waiting,
        Err(reason) => return Decision::Unschedulable(format!("0/{count} nodes are available: {reason}.")),
    };
    let wanted = requests(&spec);
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for node in &world.nodes {
        let known = world.used.get(&node.name_any()).cloned();
        let (all, used) = (allocatable(node), known.unwrap_or_else(|| used(&node.name_any(), &world.pods)));
        let reasons = refuse(&spec, node, &lacking(&wanted, &all, &used), &waiting, world);
        if reasons.is_empty() {
            fitting.push((Reverse(left(&wanted, &all, &used)), node.name_any()));
        }
        for reason in reasons {
            *refusals.entry(reason).or_default() += 1;
        }
    }
    let Some((_, node)) = fitting.into_iter().min() else {
        return Decision::Unschedulable(render_refusals(count, &refusals));
    };
    if waiting.is_empty() {
        return Decision::Bind(node);
    }
    let untold = waiting.iter().filter(|claim| annotation(**claim, SELECTED_NODE).is_none());
    Decision::Await { node, claims: untold.map(|claim| claim.name_any()).collect() }
}

/// As kube-scheduler tells it: each reason with the number of nodes that it holds for.
fn render_refusals(count: usize, refusals: &BTreeMap<String, usize>) -> String {
    let mut reasons: Vec<_> = refusals.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    reasons.sort();
    format!("0/{count} nodes are available: {}.", reasons.join(", "))
}

/// The names of the claims that a pod uses.
pub(super) fn claim_names(pod: &Pod) -> Vec<String> {
    let named = |volume: &Volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone());
    volumes(pod).filter_map(named).chain(own_claim_names(pod)).collect()
}

/// The names of the claims that are made for a pod's ephemeral volumes.
fn own_claim_names(pod: &Pod) -> Vec<String> {
    let name = pod.name_any();
    volumes(pod).filter_map(|volume| claim_name(&name, volume)).collect()
}

fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten())
}

/// The claims that get volumes only once it is known where their pod runs; or why no node will do.
fn waiting_claims<'a>(pod: &Pod, world: &'a World) -> Result<Vec<&'a PersistentVolumeClaim>, String> {
    let own = own_claim_names(pod);
    let mut waiting = Vec::new();
    let mut has_unbound = false;
    for (name, claim) in &world.claims {
        let is_own = own.contains(name);
        let Some(claim) = claim else {
            return Err(if is_own {
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                )
            } else {
                format!("persistentvolumeclaim {name:?} not found")
            });
        };
        if let Some(mismatch) = ephemeral::mismatch(pod, claim).filter(|_| is_own) {
            return Err(mismatch);
        }
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
        if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
            return Err(format!(
                "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
            ));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if volume.is_empty() && waits_for_pod(claim, &world.classes) {
            waiting.push(claim);
        } else if annotation(claim, BIND_COMPLETED).is_none() || volume.is_empty() {
            has_unbound = true;
        }
    }
    if has_unbound {
        return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
    }
    Ok(waiting)
}

/// Why a pod cannot go to a node: all that the first of the filters says which says something.
fn refuse(
    spec: &PodSpec,
    node: &Node,
    lacking: &[String],
    waiting: &[&PersistentVolumeClaim],
    world: &World,
) -> Vec<String> {
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let one = |reason: &str| vec![reason.to_owned()];
    if !tolerates_cordon(tolerations, node) {
        one("node(s) were unschedulable")
    } else if fit::untolerated_taint(tolerations, node).is_some() || !tolerates_state(tolerations, node) {
        one("node(s) had untolerated taint(s)")
    } else if !fit::fits_selector(spec, node) {
        one("node(s) didn't match Pod's node affinity/selector")
    } else if !lacking.is_empty() {
        lacking.to_vec()
    } else {
        refuse_volumes(node, waiting, world).into_iter().map(str::to_owned).collect()
    }
}

fn tolerates_cordon(tolerations: &[Toleration], node: &Node) -> bool {
    let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    !is_cordoned || fit::tolerates(tolerations, &taint("node.kubernetes.io/unschedulable"))
}

/// A node that is not ready has a taint for that, which somebody may not have got round to.
fn tolerates_state(tolerations: &[Toleration], node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    match ready.map(|ready| ready.status.as_str()) {
        Some("True") => true,
        Some("Unknown") => fit::tolerates(tolerations, &taint("node.kubernetes.io/unreachable")),
        _ => fit::tolerates(tolerations, &taint("node.kubernetes.io/not-ready")),
    }
}

fn taint(key: &str) -> Taint {
    Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() }
}

/// Why a node cannot have a pod's volumes.
fn refuse_volumes(node: &Node, waiting: &[&PersistentVolumeClaim], world: &World) -> Option<&'static str> {
    let name = node.name_any();
    let can_be_used = |volume: &str| {
        let volume = world.volumes.iter().find(|known| known.name_any() == volume);
        let affinity =
            volume.and_then(|volume| volume.spec.as_ref()?.node_affinity.as_ref()?.required.as_ref());
        affinity.is_none_or(|required| fit::selects(required, node))
    };
    let bound = world.claims.values().flatten();
    let mut volumes = bound.filter_map(|claim| claim.spec.as_ref()?.volume_name.as_deref());
    let storage = Storage { volumes: &world.volumes, classes: &world.classes, nodes: &world.nodes };
    if !volumes.all(can_be_used) {
        return Some("node(s) didn't match PersistentVolume's node affinity");
    }
    // A claim that was told of another node is being served there.
    let is_served = |claim: &&PersistentVolumeClaim| match annotation(*claim, SELECTED_NODE) {
        Some(selected) => selected == name,
        None => would_be_served_on(claim, &name, storage),
    };
    (!waiting.iter().all(is_served)).then_some("node(s) didn't find available persistent volumes to bind")
}

/// How much of a node would be left, in thousandths: the mean of what is left of cpu, memory and pods.
fn left(wanted: &Amounts, allocatable: &Amounts, used: &Amounts) -> i128 {
    let part = |resource: &str| {
        let all = allocatable.get(resource);
        let left = all.saturating_sub(used.get(resource)).saturating_sub(wanted.get(resource));
        left.max(0).saturating_mul(1000).checked_div(all).unwrap_or_default()
    };
    (part("cpu") + part("memory") + part(PODS)) / 3
}

/// Whether a node has room for a pod beside these.
pub(super) fn has_room(pod: &Pod, world: &World, node: &str, used: &Amounts) -> bool {
    let Some(known) = world.nodes.iter().find(|known| known.name_any() == node) else { return false };
    let spec = pod.spec.clone().unwrap_or_default();
    lacking(&requests(&spec), &allocatable(known), used).is_empty()
}
