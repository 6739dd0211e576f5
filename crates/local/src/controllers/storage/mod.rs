//! Claims and volumes: each claim gets one volume, no volume two claims.
//!
//! ```text
//! claim ─▶ no volume fits ─▶ a new volume that names the claim        claims.rs
//! volume ─▶ a claim that it is the best for ─▶ its claimRef           volumes.rs
//! claim ─▶ a volume names it, with its uid ─▶ its volumeName, Bound   claims.rs
//! volume ─▶ the claim that it names is gone ─▶ Released, or deleted   volumes.rs
//! ```
//!
//! The lock is `spec.claimRef` of the volume, with the claim's uid. Only the volume's own handler sets it, and only on the very version
//! that it looked at: of two claims that want a volume one gets it, whatever crashes in between. It cannot be the claim's
//! `spec.volumeName`: that can never be changed again, and a claim that named a volume which another one then got would be stuck. So a
//! claim names a volume only once the volume names the claim, and a claim that several volumes name takes one of them; the others see
//! that it is bound elsewhere, and let go.
//!
//! Volumes are made for classes of the provisioner [`PROVISIONER`]. Such a volume is a `hostPath` below [`VOLUMES`]. That path is only a
//! name: the node puts the data wherever its own directory is, under the volume's name, and makes and removes it there. Nothing of it is
//! ever at that path of the machine.

mod claims;
mod matching;
#[cfg(test)]
mod tests;
mod volumes;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::Resource;
use mainstay::diff::quantity_in_billionths;
use mainstay::{ChildKind, Controller};

pub(crate) use matching::{Storage, waits_for_pod, would_be_served_on};

/// The provisioner of volumes on this machine, as storage classes name it.
pub const PROVISIONER: &str = "mainstay.dev/local";
/// Below which the volumes of [`PROVISIONER`] say they are. Not a place on the machine.
pub const VOLUMES: &str = "/var/lib/mainstay/volumes";

/// On claims: they have been bound once.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On claims and volumes: they were bound by their controller, not by a user.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On volumes: who made them.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On claims that wait for a pod: where that pod will run.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The controller of claims.
pub(super) fn claims() -> Controller {
    Controller::of::<PersistentVolumeClaim>()
        .child(ChildKind::of::<PersistentVolume>().unowned())
        .reads::<PersistentVolume>()
        .reads::<StorageClass>()
        .reads::<Node>()
        .writes_parents()
        .sync(claims::sync)
}

/// The controller of volumes.
pub(super) fn volumes(client: kube::Client) -> Controller {
    Controller::of::<PersistentVolume>()
        .reads::<PersistentVolume>()
        .reads::<PersistentVolumeClaim>()
        .reads::<StorageClass>()
        .reads::<Node>()
        .writes_parents()
        .until_gone()
        .sync_async(move |request| volumes::sync(request, client.clone()))
}

/// An annotation of an object.
pub(crate) fn annotation<'a>(object: &'a impl Resource, name: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(name).map(String::as_str)
}

/// How much storage a list of resources has.
fn storage(
    resources: Option<
        &std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    >,
) -> i128 {
    let storage = resources.and_then(|resources| resources.get("storage"));
    storage.and_then(|storage| quantity_in_billionths(&storage.0)).unwrap_or_default()
}
