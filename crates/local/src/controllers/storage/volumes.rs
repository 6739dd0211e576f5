//! What becomes of a volume: it is available, is reserved for a claim, is bound, or has outlived its claim.
//!
//! A claim that the cache does not have is asked for again before its volume is given up: the cache of claims may be behind that of
//! volumes, and what is deleted here is somebody's data.

use k8s_openapi::api::core::v1::{Node, ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Api, Client, ResourceExt as _};
use mainstay::events::Event;
use mainstay::{Error, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::claims::reference;
use super::matching::{Storage, claim_uid, is_large_enough, named_volume, reservations};
use super::{BOUND_BY_CONTROLLER, PROVISIONED_BY, PROVISIONER, SELECTED_NODE, annotation};
use crate::controllers::pods::is_going;

pub(super) async fn sync(request: SyncRequest, client: Client) -> Result<SyncResponse, Error> {
    let volume: PersistentVolume = request.parent()?;
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.clone());
    let fate = match (reference, claim_uid(&volume)) {
        (None, _) => decide_free(&volume, find_claim(&request)?.as_ref()),
        (Some(reference), None) => decide_kept(&volume, named(&request, &reference)?.as_ref()),
        (Some(reference), Some(uid)) => {
            let known = named(&request, &reference)?.filter(|claim| claim.uid().as_deref() == Some(uid));
            let claim = match known {
                Some(claim) => Some(claim),
                None => ask(client, &reference).await?.filter(|claim| claim.uid().as_deref() == Some(uid)),
            };
            decide_claimed(&volume, claim.as_ref())
        }
    };
    answer(&volume, fate)
}

/// The claim that a volume refers to, as far as the cache knows.
fn named(request: &SyncRequest, reference: &ObjectReference) -> Result<Option<PersistentVolumeClaim>, Error> {
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    request.get_in(namespace, reference.name.as_deref().unwrap_or_default())
}

/// The claim that a volume refers to, as it is.
async fn ask(client: Client, reference: &ObjectReference) -> Result<Option<PersistentVolumeClaim>, Error> {
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, namespace);
    Ok(claims.get_opt(reference.name.as_deref().unwrap_or_default()).await?)
}

/// The claim that a free volume should be for.
fn find_claim(request: &SyncRequest) -> Result<Option<PersistentVolumeClaim>, Error> {
    let claims: Vec<PersistentVolumeClaim> = request.select("")?;
    let volumes: Vec<PersistentVolume> = request.select("")?;
    let classes: Vec<StorageClass> = request.select("")?;
    let with_node = claims.iter().any(|claim| annotation(claim, SELECTED_NODE).is_some());
    let nodes: Vec<Node> = if with_node { request.select("")? } else { Vec::new() };
    let storage = Storage { volumes: &volumes, classes: &classes, nodes: &nodes };
    Ok(reservations(&claims, storage).remove(request.name()).cloned())
}

/// What becomes of a volume.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    /// Nothing yet.
    Available,
    /// It is for this claim from now on.
    Reserved { reference: Box<ObjectReference>, by_user: bool },
    /// It is a claim's.
    Bound,
    /// Its claim is bound to another: it lets go of it.
    Unbound { by_user: bool },
    /// Its claim is gone, and it stays.
    Released,
    /// Its claim is gone, and it goes.
    Deleted,
    /// Its claim is gone, and nobody knows how to make it go.
    Failed { reason: &'static str, message: String },
    /// It goes whenever nobody needs it.
    Going,
}

/// A volume that is nobody's.
pub(super) fn decide_free(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Fate {
    match claim {
        _ if is_going(volume) => Fate::Going,
        Some(claim) => Fate::Reserved { reference: Box::new(reference(claim)), by_user: false },
        None => Fate::Available,
    }
}

/// A volume that a user keeps for the claim of a certain name.
pub(super) fn decide_kept(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Fate {
    let serves = |claim: &&PersistentVolumeClaim| match named_volume(claim) {
        None => is_large_enough(volume, claim),
        Some(name) => name == volume.name_any(),
    };
    match claim.filter(|claim| !is_going(*claim)).filter(serves) {
        _ if is_going(volume) => Fate::Going,
        Some(claim) => Fate::Reserved { reference: Box::new(reference(claim)), by_user: true },
        None => Fate::Available,
    }
}

/// A volume that is a claim's, which may be gone.
pub(super) fn decide_claimed(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Fate {
    let Some(claim) = claim else { return decide_released(volume) };
    match named_volume(claim) {
        Some(name) if name != volume.name_any() => {
            let is_made_for_it = annotation(volume, PROVISIONED_BY).is_some() && policy(volume) == "Delete";
            if is_made_for_it {
                return decide_released(volume);
            }
            Fate::Unbound { by_user: annotation(volume, BOUND_BY_CONTROLLER).is_none() }
        }
        _ => Fate::Bound,
    }
}

/// A volume whose claim is gone.
fn decide_released(volume: &PersistentVolume) -> Fate {
    match (policy(volume), annotation(volume, PROVISIONED_BY)) {
        ("Delete", Some(PROVISIONER)) if is_going(volume) => Fate::Released,
        ("Delete", Some(PROVISIONER)) => Fate::Deleted,
        ("Delete", None) => Fate::Failed {
            reason: "VolumeFailedDelete",
            message: format!(
                "error getting deleter volume plugin for volume {:?}: no deletable volume plugin matched",
                volume.name_any()
            ),
        },
        ("Recycle", _) => Fate::Failed {
            reason: "VolumeFailedRecycle",
            message: "No recycler plugin found for the volume!".to_owned(),
        },
        // Retained, or for whoever made it to delete.
        _ => Fate::Released,
    }
}

fn policy(volume: &PersistentVolume) -> &str {
    let given = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    given.unwrap_or("Retain")
}

fn answer(volume: &PersistentVolume, fate: Fate) -> Result<SyncResponse, Error> {
    let in_phase = |phase: &str| SyncResponse::from_status(status(volume, phase, None));
    match fate {
        Fate::Going => Ok(SyncResponse::new()),
        Fate::Available => in_phase("Available"),
        Fate::Bound => in_phase("Bound"),
        Fate::Released => in_phase("Released"),
        Fate::Deleted => Ok(in_phase("Released")?.delete_parent()),
        Fate::Reserved { reference, by_user } => {
            let mut fields = json!({"spec": {"claimRef": reference}});
            if !by_user {
                fields["metadata"] = json!({"annotations": {BOUND_BY_CONTROLLER: "yes"}});
            }
            in_phase("Bound")?.with_parent(fields)
        }
        Fate::Unbound { by_user: true } => Ok(in_phase("Available")?
            .clear_parent_field("/spec/claimRef/uid")
            .clear_parent_field("/spec/claimRef/resourceVersion")),
        Fate::Unbound { by_user: false } => {
            Ok(in_phase("Available")?.clear_parent_field("/spec/claimRef").clear_parent_field(&format!(
                "/metadata/annotations/{}",
                BOUND_BY_CONTROLLER.replace('/', "~1")
            )))
        }
        Fate::Failed { reason, message } => {
            let is_news = phase(volume) != "Failed";
            let response = SyncResponse::from_status(status(volume, "Failed", Some(&message)))?;
            Ok(if is_news { response.with_event(Event::warning(reason, &message)) } else { response })
        }
    }
}

fn phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The server notes when the phase changes; until then the time stays.
fn status(volume: &PersistentVolume, phase_now: &str, message: Option<&str>) -> Value {
    let since = volume.status.as_ref().and_then(|status| status.last_phase_transition_time.clone());
    let since = since.filter(|_| phase(volume) == phase_now);
    json!({"phase": phase_now, "message": message, "lastPhaseTransitionTime": since})
}
