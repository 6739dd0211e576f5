//! Volumes and claims in use are not deleted: they carry a finalizer that is taken away here when they
//! are being deleted and nobody uses them.

use super::engine::{Controller, Shared};
use super::queue::{Outcome, Queue};
use super::{Place, change, garbage, is_deleting, read};
use crate::builtin::rules::json::text_at;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

#[derive(Default)]
pub(super) struct Protection {
    /// Claims and volumes that are being deleted.
    deleting: BTreeSet<Place>,
    queue: Queue<Place>,
}

impl Protection {
    /// Something has changed that may free claims of a namespace, or volumes.
    fn mark(&mut self, namespace: &str) {
        let freed = self.deleting.iter().filter(|(_, key)| *key.namespace == *namespace);
        freed.cloned().for_each(|place| self.queue.mark(place));
    }
}

impl Controller for Protection {
    type Key = Place;
    const NAME: &'static str = "volume protection";
    const AT_ONCE: usize = 10;

    fn see(&mut self, _: &Server, id: &CollectionId, object: &Arc<Object>) {
        match id.parts() {
            ("", "persistentvolumeclaims" | "persistentvolumes") if is_deleting(object) => {
                let place = (id.clone(), object.key.clone());
                self.deleting.insert(place.clone());
                self.queue.mark(place);
            }
            ("", "pods") if !self.deleting.is_empty() => self.mark(&object.key.namespace),
            _ => {}
        }
    }

    fn gone(&mut self, _: &Server, id: &CollectionId, object: &Object) {
        let place = (id.clone(), object.key.clone());
        if self.deleting.remove(&place) {
            self.queue.forget(&place);
        }
        if id.parts() == ("", "pods") && !self.deleting.is_empty() {
            self.mark(&object.key.namespace);
        }
    }

    fn queue(&mut self) -> &mut Queue<Place> {
        &mut self.queue
    }

    fn work(server: Arc<Server>, _: Shared<Self>, place: Place) -> BoxFuture<'static, Outcome> {
        async move { Outcome::of(release(&server, &place).await) }.boxed()
    }
}

/// Takes the finalizer from a claim or a volume that nobody uses. False if it must be tried again.
async fn release(server: &Server, (id, key): &Place) -> bool {
    let Some(object) = server.store.get(id, key) else { return true };
    let Some(kind) = server.registry.of_collection(id) else { return true };
    let (finalizer, used) = if id.parts().1 == "persistentvolumes" {
        let Some(volume) = read(&object) else { return true };
        (VOLUME, text_at(&volume, "/status/phase") == "Bound")
    } else {
        (CLAIM, is_used(server, key))
    };
    if used || !object.mentions(finalizer) {
        return true;
    }
    let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != finalizer);
    let who = if finalizer == CLAIM { "pvc-protection-controller" } else { "pv-protection-controller" };
    change(server, kind, key, Part::Main, who, &edit).await.is_ok()
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
