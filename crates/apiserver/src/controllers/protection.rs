//! Volumes and claims in use are not deleted: they carry a finalizer that is taken away here when they
//! are being deleted and nobody uses them.

use super::{Work, change, garbage, is_deleting, read};
use crate::builtin::rules::json::text_at;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use serde_json::Value;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

#[derive(Default)]
pub(super) struct Protection {
    /// Claims and volumes that are being deleted.
    deleting: Work,
    /// Something that may free one of them has changed.
    due: bool,
}

impl Protection {
    pub(super) fn is_waiting(&self) -> bool {
        self.due && !self.deleting.is_empty()
    }

    pub(super) fn see(&mut self, id: &CollectionId, object: &Object) {
        match id.parts() {
            ("", "persistentvolumeclaims" | "persistentvolumes") => {
                if is_deleting(object) {
                    self.deleting.insert((id.clone(), object.key.clone()));
                }
                self.due = true;
            }
            ("", "pods") => self.due = true,
            _ => {}
        }
    }

    pub(super) fn gone(&mut self, id: &CollectionId, object: &Object) {
        self.deleting.remove(&(id.clone(), object.key.clone()));
        self.due |= matches!(id.parts(), ("", "pods" | "persistentvolumeclaims"));
    }

    pub(super) async fn act(&mut self, server: &Server) {
        if !std::mem::take(&mut self.due) {
            return;
        }
        for (id, key) in self.deleting.clone() {
            let Some(object) = server.store.get(&id, &key) else { continue };
            let Some(kind) = server.registry.of_collection(&id) else { continue };
            let (finalizer, used) = if id.parts().1 == "persistentvolumes" {
                (VOLUME, read(&object).is_none_or(|volume| text_at(&volume, "/status/phase") == "Bound"))
            } else {
                (CLAIM, is_used(server, &key))
            };
            let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != finalizer);
            let who =
                if finalizer == CLAIM { "pvc-protection-controller" } else { "pv-protection-controller" };
            if !used && change(server, kind, &key, Part::Main, who, &edit).await.is_err() {
                self.due = true;
            }
        }
    }
}

/// Whether a pod that has not ended mounts a claim.
fn is_used(server: &Server, claim: &Key) -> bool {
    let Some(kind) = server.registry.find("", "v1", "pods") else { return false };
    let Ok(pods) = server.store.list(&kind.collection, Some(&claim.namespace), None, None) else {
        return false;
    };
    pods.items.iter().any(|pod| {
        // A pod that cannot be read may mount it.
        let Some(pod) = read(pod) else { return true };
        let ended = matches!(text_at(&pod, "/status/phase"), "Succeeded" | "Failed");
        let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
        let mut claims = volumes.filter_map(|v| v.pointer("/persistentVolumeClaim/claimName")?.as_str());
        !ended && claims.any(|name| name == &*claim.name)
    })
}
