//! Volumes and claims in use are not deleted: they carry a finalizer that is taken away here when they
//! are being deleted and nobody uses them.

mod users;

use super::engine::{Controller, Shared};
use super::queue::{Outcome, Queue};
use super::{Place, change, garbage, is_deleting, is_pods, read};
use crate::builtin::rules::json::text_at;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object, Revision};
use crate::strategy::Part;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use users::Users;

static CLAIMS: LazyLock<CollectionId> = LazyLock::new(|| CollectionId::new("", "persistentvolumeclaims"));
const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

#[derive(Default)]
pub(super) struct Protection {
    /// Claims and volumes that are being deleted.
    deleting: BTreeSet<Place>,
    users: Users,
    queue: Queue<Place>,
}

impl Protection {
    /// A pod no longer mounts these claims.
    fn freed(&mut self, claims: Vec<Key>) {
        for claim in claims {
            if claim.name.is_empty() {
                // It was not known which ones.
                let of_namespace = self.deleting.iter().filter(|(_, key)| key.namespace == claim.namespace);
                of_namespace.cloned().for_each(|place| self.queue.mark(place));
                continue;
            }
            let place = (CLAIMS.clone(), claim);
            if self.deleting.contains(&place) {
                self.queue.mark(place);
            }
        }
    }
}

impl Controller for Protection {
    type Key = Place;
    const NAME: &'static str = "volume protection";
    const AT_ONCE: usize = 10;

    fn begin(&mut self, revision: Revision) {
        self.users.seen = revision;
    }

    fn see(&mut self, _: &Server, id: &CollectionId, object: &Arc<Object>) {
        self.users.seen = self.users.seen.max(object.revision);
        match id.parts() {
            ("", "persistentvolumeclaims" | "persistentvolumes") if is_deleting(object) => {
                let place = (id.clone(), object.key.clone());
                self.deleting.insert(place.clone());
                self.queue.mark(place);
            }
            ("", "pods") => {
                let freed = self.users.see(object);
                self.freed(freed);
            }
            _ => {}
        }
    }

    fn gone(&mut self, _: &Server, id: &CollectionId, object: &Object) {
        self.users.seen = self.users.seen.max(object.revision);
        let place = (id.clone(), object.key.clone());
        if self.deleting.remove(&place) {
            self.queue.forget(&place);
        }
        if is_pods(id) {
            let freed = self.users.forget(&object.key);
            self.freed(freed);
        }
    }

    fn queue(&mut self) -> &mut Queue<Place> {
        &mut self.queue
    }

    fn work(server: Arc<Server>, shared: Shared<Self>, place: Place) -> BoxFuture<'static, Outcome> {
        async move { Outcome::of(release(&server, &shared, &place).await) }.boxed()
    }
}

/// Takes the finalizer from a claim or a volume that nobody uses. False if it must be tried again.
async fn release(server: &Server, shared: &Shared<Protection>, (id, key): &Place) -> bool {
    let Some(object) = server.store.get(id, key) else { return true };
    let Some(kind) = server.registry.of_collection(id) else { return true };
    let (finalizer, used) = if id.parts().1 == "persistentvolumes" {
        let Some(volume) = read(&object) else { return true };
        (VOLUME, text_at(&volume, "/status/phase") == "Bound")
    } else {
        let Some(used) = shared.lock().users.is_used(&server.store, key) else { return false };
        (CLAIM, used)
    };
    if used || !object.mentions(finalizer) {
        return true;
    }
    let edit = |object: &mut Value| garbage::retain(object, "finalizers", |f| f != finalizer);
    let who = if finalizer == CLAIM { "pvc-protection-controller" } else { "pv-protection-controller" };
    change(server, kind, key, Part::Main, who, &edit).await.is_ok()
}
