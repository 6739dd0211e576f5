//! Which volume is for which claim. The same for the same volumes and claims, in whatever order they come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use mainstay::cache::Selector;

use super::{BIND_COMPLETED, SELECTED_NODE, annotation, storage};
use crate::controllers::pods::is_going;
use crate::fit;

/// The provisioner of classes whose volumes are made by hand.
pub(super) const BY_HAND: &str = "kubernetes.io/no-provisioner";
/// Where the class was before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// What claims are matched with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a> {
    pub(crate) volumes: &'a [PersistentVolume],
    pub(crate) classes: &'a [StorageClass],
    pub(crate) nodes: &'a [Node],
}

/// How a volume stands to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is nobody's.
    Free,
    /// It is kept for a claim of this name, whichever that will be.
    Kept,
    /// It is this claim's.
    Own,
    /// It is another's.
    Foreign,
}

/// How a volume stands to a claim.
pub(super) fn standing(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Standing {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
        return Standing::Free;
    };
    if reference.name != claim.metadata.name || reference.namespace != claim.metadata.namespace {
        return Standing::Foreign;
    }
    match reference.uid.as_deref().filter(|uid| !uid.is_empty()) {
        None => Standing::Kept,
        uid if uid == claim.metadata.uid.as_deref() => Standing::Own,
        Some(_) => Standing::Foreign,
    }
}

/// The class that a claim asks for; empty for none.
pub(super) fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    let given = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    annotation(claim, OLD_CLASS).or(given).unwrap_or_default()
}

/// The class that a volume is of; empty for none.
pub(super) fn class_of_volume(volume: &PersistentVolume) -> &str {
    let given = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    annotation(volume, OLD_CLASS).or(given).unwrap_or_default()
}

/// The class of claims that leave it open: of several the newest, as Kubernetes has it.
pub(super) fn default_class(classes: &[StorageClass]) -> Option<&StorageClass> {
    let is_default =
        |class: &&StorageClass| DEFAULT_CLASS.iter().any(|name| annotation(*class, name) == Some("true"));
    let age = |class: &&StorageClass| {
        let created = class.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (Reverse(created), class.name_any())
    };
    classes.iter().filter(is_default).min_by_key(age)
}

/// Whether a claim leaves its class open. An empty class is not open: it means none.
pub(super) fn leaves_class_open(claim: &PersistentVolumeClaim) -> bool {
    let given = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    given.is_none() && annotation(claim, OLD_CLASS).is_none()
}

/// Whether a claim is to wait for a pod that uses it.
pub(crate) fn waits_for_pod(claim: &PersistentVolumeClaim, classes: &[StorageClass]) -> bool {
    let class = class_named(class_of_claim(claim), classes);
    class.and_then(|class| class.volume_binding_mode.as_deref()) == Some("WaitForFirstConsumer")
}

/// Whether a claim waits for a pod that uses it, and still does.
pub(super) fn is_delayed(claim: &PersistentVolumeClaim, classes: &[StorageClass]) -> bool {
    waits_for_pod(claim, classes) && annotation(claim, SELECTED_NODE).is_none()
}

/// Whether a claim that waits for its pod would get a volume if that ran on a node. What is made for it is made anywhere.
pub(crate) fn would_be_served_on(claim: &PersistentVolumeClaim, node: &str, storage: Storage<'_>) -> bool {
    let class = class_named(class_of_claim(claim), storage.classes);
    if class.is_some_and(|class| class.provisioner != BY_HAND) {
        return true;
    }
    let mut placed = claim.clone();
    let annotations = placed.metadata.annotations.get_or_insert_default();
    annotations.insert(SELECTED_NODE.to_owned(), node.to_owned());
    best_volume(&placed, storage.volumes, storage.nodes).is_some()
}

fn class_named<'a>(name: &str, classes: &'a [StorageClass]) -> Option<&'a StorageClass> {
    classes.iter().find(|class| class.metadata.name.as_deref() == Some(name))
}

/// Why a volume that a claim asks for by name cannot be its own, in the words of Kubernetes.
pub(super) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    let spec = claim.spec.clone().unwrap_or_default();
    if is_going(volume) {
        return Some(format!("the volume is marked for deletion {:?}", volume.name_any()));
    }
    let reason = if capacity(volume) < requested(&spec) {
        "requested PV is too small"
    } else if class_of_volume(volume) != class_of_claim(claim) {
        "storageClassName does not match"
    } else if attributes_of(volume) != spec.volume_attributes_class_name.as_deref().unwrap_or_default() {
        "volumeAttributesClassName does not match"
    } else if mode(volume) != spec.volume_mode.as_deref().unwrap_or("Filesystem") {
        "incompatible volumeMode"
    } else if !offers_modes(volume, &spec) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(reason.to_owned())
}

/// Whether a volume that is kept for a claim can serve it. Class and labels do not matter: somebody chose.
pub(super) fn is_large_enough(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.clone().unwrap_or_default();
    capacity(volume) >= requested(&spec)
        && mode(volume) == spec.volume_mode.as_deref().unwrap_or("Filesystem")
        && offers_modes(volume, &spec)
}

/// The free volume that serves a claim best: with the fewest access modes, then the smallest.
pub(super) fn best_volume<'a>(
    claim: &PersistentVolumeClaim,
    free: impl IntoIterator<Item = &'a PersistentVolume>,
    nodes: &[Node],
) -> Option<&'a PersistentVolume> {
    let fitting = free.into_iter().filter(|volume| fits(volume, claim, nodes));
    fitting.min_by_key(|volume| {
        let modes = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_ref()).map_or(0, Vec::len);
        (modes, capacity(volume), volume.name_any())
    })
}

fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim, nodes: &[Node]) -> bool {
    let is_available = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available");
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let labels = volume.metadata.labels.clone().unwrap_or_default();
    // One that cannot be read selects nothing.
    let is_selected = selector
        .is_none_or(|selector| Selector::try_from(selector).is_ok_and(|selector| selector.matches(&labels)));
    is_available
        && is_selected
        && standing(volume, claim) == Standing::Free
        && mismatch(volume, claim).is_none()
        && is_reachable(volume, claim, nodes)
}

/// Whether a volume can be used on the node that was selected for a claim, if one was.
fn is_reachable(volume: &PersistentVolume, claim: &PersistentVolumeClaim, nodes: &[Node]) -> bool {
    let Some(name) = annotation(claim, SELECTED_NODE) else { return true };
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else { return true };
    nodes.iter().any(|node| node.name_any() == name && fit::selects(required, node))
}

/// For each volume that is free and that a claim should get, the claim. Claims that name a volume come first, then the oldest.
pub(super) fn reservations<'a>(
    claims: &'a [PersistentVolumeClaim],
    storage: Storage<'_>,
) -> BTreeMap<String, &'a PersistentVolumeClaim> {
    let is_free = |volume: &&PersistentVolume| claim_uid(volume).is_none() && !is_going(*volume);
    let mut free: BTreeMap<String, &PersistentVolume> =
        storage.volumes.iter().filter(is_free).map(|volume| (volume.name_any(), volume)).collect();
    free.retain(|_, volume| volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none()));
    let served: BTreeSet<&str> = storage.volumes.iter().filter_map(claim_uid).collect();
    let is_kept = |claim: &PersistentVolumeClaim| {
        storage
            .volumes
            .iter()
            .any(|volume| standing(volume, claim) == Standing::Kept && is_large_enough(volume, claim))
    };
    let mut waiting: Vec<_> = claims
        .iter()
        .filter(|claim| !is_going(*claim))
        .filter(|claim| !claim.metadata.uid.as_deref().is_some_and(|uid| served.contains(uid)))
        .collect();
    waiting.sort_by_key(|claim| {
        let created = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (named_volume(claim).is_none(), created, claim.namespace(), claim.name_any())
    });
    let mut reserved = BTreeMap::new();
    for claim in waiting {
        let volume = match named_volume(claim) {
            // One that was bound before gets its volume back as it is.
            Some(name) => free.get(name).copied().filter(|volume| {
                annotation(claim, BIND_COMPLETED).is_some() || mismatch(volume, claim).is_none()
            }),
            None if is_delayed(claim, storage.classes) || is_kept(claim) => None,
            None => best_volume(claim, free.values().copied(), storage.nodes),
        };
        if let Some(volume) = volume {
            free.remove(&volume.name_any());
            reserved.insert(volume.name_any(), claim);
        }
    }
    reserved
}

/// The uid of the claim that a volume is bound to.
pub(super) fn claim_uid(volume: &PersistentVolume) -> Option<&str> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    reference.uid.as_deref().filter(|uid| !uid.is_empty())
}

/// The volume that a claim names.
pub(super) fn named_volume(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

fn capacity(volume: &PersistentVolume) -> i128 {
    storage(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()))
}

fn requested(claim: &PersistentVolumeClaimSpec) -> i128 {
    storage(claim.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

fn mode(volume: &PersistentVolume) -> &str {
    volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()).unwrap_or("Filesystem")
}

fn attributes_of(volume: &PersistentVolume) -> &str {
    let given = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    given.unwrap_or_default()
}

fn offers_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaimSpec) -> bool {
    let offered = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    claim.access_modes.iter().flatten().all(|mode| offered.contains(mode))
}
