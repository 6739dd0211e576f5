//! Garbage collection: dependents go when their owners have gone.
//!
//! An owner is known by its uid: an object of the same name that was made later is another one. Blocking foreground deletion,
//! orphaning and background deletion behave as in kube-controller-manager.

mod graph;

use super::engine::{Controller, Shared};
use super::queue::{Outcome, Queue};
use super::{Place, change, delete};
use crate::delete::{DeleteOptions, Propagation};
use crate::kind::Kind;
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use graph::{FOREGROUND, Graph, Metadata, ORPHAN, Owner, Task};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const WHO: &str = "generic-garbage-collector";

/// See the [module](self).
#[derive(Default)]
pub(super) struct Garbage {
    graph: Graph,
    queue: Queue<Task>,
}

impl Garbage {
    fn queue_found(&mut self) {
        for task in self.graph.found.drain(..) {
            self.queue.mark(task);
        }
    }
}

impl Controller for Garbage {
    type Key = Task;
    const NAME: &'static str = "garbage collection";
    const AT_ONCE: usize = 20;

    fn see(&mut self, _: &Server, id: &CollectionId, object: &Arc<Object>) {
        if id.parts() == ("apiextensions.k8s.io", "customresourcedefinitions") {
            self.graph.suspect_unknown();
        }
        self.graph.see(id, object);
        self.queue_found();
    }

    fn gone(&mut self, _: &Server, id: &CollectionId, object: &Object) {
        self.graph.forget(id, object);
        self.queue_found();
    }

    fn queue(&mut self) -> &mut Queue<Task> {
        &mut self.queue
    }

    fn work(server: Arc<Server>, shared: Shared<Self>, task: Task) -> BoxFuture<'static, Outcome> {
        async move {
            Outcome::of(match task {
                Task::Owner(place) => release_owner(&server, &shared, &place).await,
                Task::Suspect(place) => collect(&server, &shared, &place).await,
            })
        }
        .boxed()
    }
}

/// Lets an owner go whose dependents are orphaned or deleted. False if it must be tried again.
async fn release_owner(server: &Server, shared: &Shared<Garbage>, (id, key): &Place) -> bool {
    let Some(object) = server.store.get(id, key) else { return true };
    let Some(kind) = server.registry.of_collection(id) else { return true };
    let Some(metadata) = Metadata::of(&object) else { return true };
    let finalizer = if metadata.waits_for(ORPHAN) {
        let dependents = shared.lock().graph.dependents(&metadata.uid);
        let uids = HashSet::from([metadata.uid]);
        for (id, key) in &dependents {
            let Some(kind) = server.registry.of_collection(id) else { continue };
            let edit = |object: &mut Value| drop_owners(object, &uids);
            if change(server, kind, key, Part::Main, WHO, &edit).await.is_err() {
                return false;
            }
        }
        ORPHAN
    } else if metadata.waits_for(FOREGROUND) {
        // The event of the last dependent's removal brings us here again.
        if shared.lock().graph.is_blocked(&metadata.uid) {
            return true;
        }
        FOREGROUND
    } else {
        return true;
    };
    let edit = move |object: &mut Value| drop_finalizer(object, finalizer);
    change(server, kind, key, Part::Main, WHO, &edit).await.is_ok()
}

/// The uids of an object's owners, by how they stand.
#[derive(Default)]
struct Standings {
    solid: usize,
    gone: HashSet<String>,
    waiting: HashSet<String>,
}

/// How all owners of an object stand; none if that cannot be known.
fn standings(
    server: &Server,
    shared: &Shared<Garbage>,
    metadata: &Metadata,
    place: &Place,
) -> Option<Standings> {
    let mut standings = Standings::default();
    // Most owners of an object are of one kind.
    let mut kinds: HashMap<(&str, &str), Option<Arc<Kind>>> = HashMap::new();
    for owner in &metadata.owner_references {
        let kind = kinds.entry((&owner.api_version, &owner.kind)).or_insert_with(|| {
            let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
            server.registry.of_kind(group, version, &owner.kind)
        });
        match standing(server, kind.as_deref(), owner, &place.1) {
            Standing::Solid => standings.solid += 1,
            Standing::Waiting => drop(standings.waiting.insert(owner.uid.clone())),
            Standing::Gone => drop(standings.gone.insert(owner.uid.clone())),
            Standing::Unknown => {
                let mut garbage = shared.lock();
                if !garbage.graph.is_absent(&owner.uid) {
                    // An owner of a kind nobody knows may come to be known.
                    garbage.graph.set_unknown(place);
                    return None;
                }
                standings.gone.insert(owner.uid.clone());
            }
        }
    }
    Some(standings)
}

/// Deletes an object that no owner holds any longer. False if it must be tried again.
async fn collect(server: &Server, shared: &Shared<Garbage>, place: &Place) -> bool {
    let (id, key) = place;
    let Some(object) = server.store.get(id, key) else { return true };
    let Some(kind) = server.registry.of_collection(id) else { return true };
    let Some(metadata) = Metadata::of(&object) else { return true };
    if metadata.owner_references.is_empty() {
        return true;
    }
    let deleting = metadata.deletion_timestamp.is_some();
    if deleting && !metadata.waits_for(FOREGROUND) {
        return true;
    }
    let Some(Standings { solid, gone, waiting }) = standings(server, shared, &metadata, place) else {
        return true;
    };
    if solid > 0 {
        if gone.is_empty() && waiting.is_empty() {
            return true;
        }
        let leave = &gone | &waiting;
        let edit = |object: &mut Value| drop_owners(object, &leave);
        return change(server, kind, key, Part::Main, WHO, &edit).await.is_ok();
    }
    // Of a circle nobody could go first. So this one's owners do not wait for it any more, and the event of that leads here again.
    if !waiting.is_empty() && shared.lock().graph.is_in_circle(place) {
        return change(server, kind, key, Part::Main, WHO, &unblock_owners).await.is_ok();
    }
    if deleting {
        return true;
    }
    let has_dependents = shared.lock().graph.has_dependents(&metadata.uid);
    let propagation = if !waiting.is_empty() && has_dependents {
        Propagation::Foreground
    } else if metadata.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if metadata.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    // Decided on this state, or not at all: one that has changed meanwhile is looked at again.
    let options = DeleteOptions {
        uid: Some(metadata.uid.clone()),
        version: Some(object.revision.to_string()),
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    delete(server, kind, key, WHO, &options).await.is_ok()
}

/// How an owner stands.
enum Standing {
    Solid,
    /// It is being deleted in the foreground and waits for this dependent.
    Waiting,
    Gone,
    /// Its kind is not served, or it cannot own this object.
    Unknown,
}

fn standing(server: &Server, kind: Option<&Kind>, owner: &Owner, dependent: &Key) -> Standing {
    let Some(kind) = kind else { return Standing::Unknown };
    let namespace = if kind.namespaced { &*dependent.namespace } else { "" };
    if kind.namespaced && namespace.is_empty() {
        return Standing::Unknown;
    }
    let Some(object) = server.store.get(&kind.collection, &Key::new(namespace, &owner.name)) else {
        return Standing::Gone;
    };
    let Some(metadata) = Metadata::of(&object) else { return Standing::Solid };
    if metadata.uid != owner.uid {
        Standing::Gone
    } else if metadata.waits_for(FOREGROUND) {
        Standing::Waiting
    } else {
        Standing::Solid
    }
}

fn drop_owners(object: &mut Value, uids: &HashSet<String>) {
    retain(object, "ownerReferences", |owner| {
        !owner.get("uid").and_then(Value::as_str).is_some_and(|uid| uids.contains(uid))
    });
}

/// Lets no owner's deletion wait for this object any more.
fn unblock_owners(object: &mut Value) {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        if owner["blockOwnerDeletion"] == Value::Bool(true) {
            owner["blockOwnerDeletion"] = false.into();
        }
    }
}

fn drop_finalizer(object: &mut Value, finalizer: &str) {
    retain(object, "finalizers", |f| f != finalizer);
}

/// Keeps the entries of a metadata list that pass, and drops a list that becomes empty.
pub(super) fn retain(object: &mut Value, field: &str, keep: impl Fn(&Value) -> bool) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(entries) = metadata.get_mut(field).and_then(Value::as_array_mut) {
        entries.retain(|entry| keep(entry));
        if entries.is_empty() {
            metadata.remove(field);
        }
    }
}
