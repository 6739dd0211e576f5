//! What becomes of a claim: it waits, has a volume made, is bound to the one that names it, or has lost its own.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use mainstay::events::Event;
use mainstay::{Error, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::matching::{
    BY_HAND, Standing, Storage, best_volume, class_of_claim, default_class, is_delayed, is_large_enough,
    leaves_class_open, mismatch, named_volume, standing,
};
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, PROVISIONER, SELECTED_NODE, VOLUMES, annotation,
};

/// On claims: whoever is to make their volumes.
const MAKER: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

pub(super) fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let claim: PersistentVolumeClaim = request.parent()?;
    let fate = match (annotation(&claim, BIND_COMPLETED), named_volume(&claim)) {
        // Only its own volume matters to it.
        (Some(_), Some(name)) => decide_bound(&claim, request.get(name)?.as_ref()),
        (Some(_), None) => decide_bound(&claim, None),
        (None, _) => {
            let volumes: Vec<PersistentVolume> = request.select("")?;
            let classes: Vec<StorageClass> = request.select("")?;
            let is_placed = annotation(&claim, SELECTED_NODE).is_some();
            let nodes: Vec<Node> = if is_placed { request.select("")? } else { Vec::new() };
            decide_unbound(&claim, Storage { volumes: &volumes, classes: &classes, nodes: &nodes })
        }
    };
    answer(&claim, fate)
}

/// What becomes of a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    /// This volume is its own.
    Bound(Box<PersistentVolume>),
    /// It was bound, and is no longer.
    Lost { reason: &'static str, message: &'static str },
    /// It is of this class from now on.
    Classed(String),
    /// This volume is made for it.
    Provisioned(Box<PersistentVolume>),
    /// It waits for somebody else's volume.
    Awaited { provisioner: String },
    /// It waits.
    Pending(Option<Event>),
}

/// What becomes of a claim that was bound before.
pub(super) fn decide_bound(claim: &PersistentVolumeClaim, volume: Option<&PersistentVolume>) -> Fate {
    let Some(volume) = volume else {
        let message = match named_volume(claim) {
            None => "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            Some(_) => "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        };
        return Fate::Lost { reason: "ClaimLost", message };
    };
    match standing(volume, claim) {
        // A volume that names nobody any more takes its claim back.
        Standing::Own | Standing::Free | Standing::Kept => Fate::Bound(Box::new(volume.clone())),
        Standing::Foreign => Fate::Lost {
            reason: "ClaimMisbound",
            message: "Two claims are bound to the same volume, this one is bound incorrectly",
        },
    }
}

/// What becomes of a claim that was never bound.
pub(super) fn decide_unbound(claim: &PersistentVolumeClaim, storage: Storage<'_>) -> Fate {
    let Storage { volumes, classes, nodes } = storage;
    if let Some(name) = named_volume(claim) {
        return decide_named(claim, volumes.iter().find(|volume| volume.name_any() == name));
    }
    let own = volumes.iter().filter(|volume| standing(volume, claim) == Standing::Own);
    // Of several, the one that was not made for it: it is somebody's intention.
    let made = volume_name(claim);
    if let Some(volume) = own.min_by_key(|volume| (volume.name_any() == made, volume.name_any())) {
        return Fate::Bound(Box::new(volume.clone()));
    }
    let is_kept = |volume: &PersistentVolume| {
        standing(volume, claim) == Standing::Kept && is_large_enough(volume, claim)
    };
    let will_be_reserved = volumes.iter().any(is_kept)
        || !is_delayed(claim, classes) && best_volume(claim, volumes, nodes).is_some();
    if will_be_reserved {
        return Fate::Pending(None);
    }
    if leaves_class_open(claim)
        && let Some(class) = default_class(classes)
    {
        return Fate::Classed(class.name_any());
    }
    if is_delayed(claim, classes) {
        let message = "waiting for first consumer to be created before binding";
        return Fate::Pending(Some(Event::normal("WaitForFirstConsumer", message)));
    }
    decide_provisioning(claim, classes)
}

/// A claim that names a volume.
fn decide_named(claim: &PersistentVolumeClaim, volume: Option<&PersistentVolume>) -> Fate {
    let Some(volume) = volume else { return Fate::Pending(None) };
    let name = volume.name_any();
    match (standing(volume, claim), mismatch(volume, claim)) {
        (Standing::Own, _) => Fate::Bound(Box::new(volume.clone())),
        (Standing::Kept, _) | (Standing::Free, None) => Fate::Pending(None),
        (Standing::Free, Some(reason)) => {
            let message = format!("Cannot bind to requested volume {name:?}: {reason}");
            Fate::Pending(Some(Event::warning("VolumeMismatch", &message)))
        }
        (Standing::Foreign, _) => {
            let message = format!("volume {name:?} already bound to a different claim.");
            Fate::Pending(Some(Event::warning("FailedBinding", &message)))
        }
    }
}

/// A claim for which there is no volume.
fn decide_provisioning(claim: &PersistentVolumeClaim, classes: &[StorageClass]) -> Fate {
    let name = class_of_claim(claim);
    let failed = |message: &str| Fate::Pending(Some(Event::warning("ProvisioningFailed", message)));
    if name.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        return Fate::Pending(Some(Event::normal("FailedBinding", message)));
    }
    let Some(class) = classes.iter().find(|class| class.name_any() == name) else {
        return failed(&format!("storageclass.storage.k8s.io {name:?} not found"));
    };
    let spec = claim.spec.clone().unwrap_or_default();
    let unsupported = if spec.selector.is_some() {
        Some("claim Selector is not supported")
    } else if spec.data_source.is_some() || spec.data_source_ref.is_some() {
        Some("data sources are not supported")
    } else if spec.volume_mode.as_deref() == Some("Block") {
        Some("block volumes are not supported")
    } else {
        None
    };
    match (class.provisioner.as_str(), unsupported) {
        (PROVISIONER, None) => Fate::Provisioned(Box::new(volume_for(claim, class))),
        (PROVISIONER, Some(reason)) => {
            failed(&format!("failed to provision volume with StorageClass {name:?}: {reason}"))
        }
        (BY_HAND, _) => failed(&format!("no volume plugin matched name: {BY_HAND}")),
        (other, _) => Fate::Awaited { provisioner: other.to_owned() },
    }
}

/// The name of the volume that is made for a claim.
fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

/// A claim, as volumes name it.
pub(super) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The volume that is made for a claim. It names the claim from the start, and can be nobody else's.
fn volume_for(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let name = volume_name(claim);
    let spec = claim.spec.clone().unwrap_or_default();
    let capacity = spec.resources.and_then(|resources| resources.requests);
    let capacity = capacity.unwrap_or_default().into_iter().filter(|(resource, _)| resource == "storage");
    let host_path = HostPathVolumeSource {
        path: format!("{VOLUMES}/{name}"),
        type_: Some("DirectoryOrCreate".to_owned()),
    };
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some(BTreeMap::from([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: Some(capacity.collect()),
            claim_ref: Some(reference(claim)),
            host_path: Some(host_path),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".to_owned())),
            storage_class_name: class.metadata.name.clone(),
            volume_attributes_class_name: spec.volume_attributes_class_name,
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

fn answer(claim: &PersistentVolumeClaim, fate: Fate) -> Result<SyncResponse, Error> {
    let status = |phase: &str, volume: Option<&PersistentVolume>| status(claim, phase, volume);
    match fate {
        Fate::Bound(volume) => SyncResponse::from_status(status("Bound", Some(&volume)))?
            .with_parent(bound_fields(claim, &volume.name_any())),
        Fate::Lost { reason, message } => {
            let response = SyncResponse::from_status(status("Lost", None))?;
            let is_news = phase(claim) != "Lost";
            Ok(if is_news { response.with_event(Event::warning(reason, message)) } else { response })
        }
        Fate::Classed(class) => SyncResponse::from_status(status("Pending", None))?
            .with_parent(json!({"spec": {"storageClassName": class}})),
        Fate::Provisioned(volume) => {
            let message = format!("Successfully provisioned volume {}", volume.name_any());
            SyncResponse::from_status(status("Pending", None))?
                .with_parent(maker_fields(PROVISIONER))?
                .with_event(Event::normal("ProvisioningSucceeded", &message))
                .with_child(volume)
        }
        Fate::Awaited { provisioner } => {
            let message = format!(
                "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
                 administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
            );
            Ok(SyncResponse::from_status(status("Pending", None))?
                .with_parent(maker_fields(&provisioner))?
                .with_event(Event::normal("ExternalProvisioning", &message)))
        }
        Fate::Pending(event) => {
            let response = SyncResponse::from_status(status("Pending", None))?;
            Ok(event.into_iter().fold(response, SyncResponse::with_event))
        }
    }
}

/// What a bound claim has. Whoever named the volume, the user or this controller, is told by an annotation.
fn bound_fields(claim: &PersistentVolumeClaim, volume: &str) -> Value {
    let mut annotations = json!({BIND_COMPLETED: "yes"});
    if named_volume(claim).is_none() {
        annotations[BOUND_BY_CONTROLLER] = json!("yes");
    }
    json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}})
}

fn maker_fields(provisioner: &str) -> Value {
    let annotations: BTreeMap<_, _> = MAKER.into_iter().map(|name| (name, provisioner)).collect();
    json!({"metadata": {"annotations": annotations}})
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The status as it is, with another phase, and what follows from the volume.
fn status(claim: &PersistentVolumeClaim, phase_now: &str, volume: Option<&PersistentVolume>) -> Value {
    let mut status = claim.status.clone().unwrap_or_default();
    let spec = volume.and_then(|volume| volume.spec.clone());
    // A bound claim's capacity may lag behind its volume's while that grows.
    let becomes = phase(claim) != phase_now;
    status.phase = Some(phase_now.to_owned());
    if let Some(spec) = spec {
        status.access_modes = spec.access_modes;
        if becomes {
            status.capacity = spec.capacity;
            status.current_volume_attributes_class_name = spec.volume_attributes_class_name;
        }
    } else {
        status.access_modes = None;
        status.capacity = None;
        status.current_volume_attributes_class_name = None;
    }
    // A status is plain data; it always serialises.
    serde_json::to_value(status).unwrap_or_default()
}
