//! Garbage collection: dependents go when their owners have gone.
//!
//! The graph of owners is kept from the store's events. An owner is known by its uid: an object of the
//! same name that was made later is another one. Blocking foreground deletion, orphaning and background
//! deletion behave as in kube-controller-manager.

use super::{Work, change, delete};
use crate::delete::{DeleteOptions, Propagation};
use crate::server::Server;
use crate::store::{CollectionId, Key, Object};
use crate::strategy::Part;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

const WHO: &str = "generic-garbage-collector";

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    block_owner_deletion: Option<bool>,
}

/// What the collector needs to know of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    uid: String,
    owner_references: Vec<Owner>,
    finalizers: Vec<String>,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

impl Metadata {
    /// None, and a line in the log, if the object cannot be read. Nothing may be collected on account of that.
    fn of(object: &Object) -> Option<Metadata> {
        let head = object.read::<Head>().inspect_err(|error| tracing::error!("{error}"));
        head.ok().map(|head| head.metadata)
    }

    fn waits_for(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|f| f == finalizer)
    }
}

/// Whether an object may have owners or be in deletion.
fn may_matter(object: &Object) -> bool {
    object.mentions("\"ownerReferences\"") || object.mentions("\"deletionTimestamp\"")
}

/// Where an object is.
type Place = (CollectionId, Key);

struct Node {
    uid: String,
    owners: Vec<Owner>,
}

/// Only objects that have owners, and owners that wait, are kept track of: of most objects there is
/// nothing to know.
#[derive(Default)]
pub(super) struct Garbage {
    /// Objects that have owners.
    nodes: HashMap<Place, Node>,
    /// By the owner's uid.
    dependents: HashMap<String, BTreeSet<Place>>,
    /// Owners that were seen to go before their dependents, by uid: their kind may go too before anybody looks.
    absent: HashSet<String>,
    /// Owners that are being deleted and wait for their dependents, by uid.
    waiting: HashMap<String, Place>,
    /// Objects whose owners may be gone.
    suspects: Work,
    /// Owners that wait for their dependents, to be looked at.
    owners: Work,
}

impl Garbage {
    pub(super) fn is_waiting(&self) -> bool {
        !self.suspects.is_empty() || !self.owners.is_empty()
    }

    pub(super) fn see(&mut self, id: &CollectionId, object: &Arc<Object>) {
        let place = (id.clone(), object.key.clone());
        if !may_matter(object) && !self.nodes.contains_key(&place) {
            return;
        }
        let Some(metadata) = Metadata::of(object) else { return };
        let before = self.nodes.remove(&place).map(|node| node.owners).unwrap_or_default();
        for owner in before.iter().filter(|owner| !metadata.owner_references.contains(owner)) {
            self.unlink(&owner.uid, &place);
            self.look_at_owner(&owner.uid);
        }
        for owner in &metadata.owner_references {
            self.dependents.entry(owner.uid.clone()).or_default().insert(place.clone());
        }
        if !metadata.owner_references.is_empty() && before != metadata.owner_references {
            self.suspects.insert(place.clone());
        }
        if metadata.waits_for("orphan") || metadata.waits_for("foregroundDeletion") {
            self.waiting.insert(metadata.uid.clone(), place.clone());
            self.owners.insert(place.clone());
            if metadata.waits_for("foregroundDeletion") {
                self.suspect_dependents(&metadata.uid);
            }
        }
        if !metadata.owner_references.is_empty() {
            self.nodes.insert(place, Node { uid: metadata.uid, owners: metadata.owner_references });
        }
    }

    pub(super) fn forget(&mut self, id: &CollectionId, object: &Object) {
        let place = (id.clone(), object.key.clone());
        let node = self.nodes.remove(&place);
        let uid = match &node {
            Some(node) => node.uid.clone(),
            None if self.dependents.is_empty() && self.waiting.is_empty() => return,
            None => match Metadata::of(object) {
                Some(metadata) => metadata.uid,
                None => return,
            },
        };
        self.waiting.remove(&uid);
        self.suspect_dependents(&uid);
        if self.dependents.contains_key(&uid) {
            self.absent.insert(uid);
        }
        for owner in node.into_iter().flat_map(|node| node.owners) {
            self.unlink(&owner.uid, &place);
            self.look_at_owner(&owner.uid);
        }
    }

    fn unlink(&mut self, owner: &str, dependent: &Place) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
                self.absent.remove(owner);
            }
        }
    }

    /// An owner that waits for its dependents may have one less to wait for.
    fn look_at_owner(&mut self, uid: &str) {
        if let Some(place) = self.waiting.get(uid) {
            self.owners.insert(place.clone());
        }
    }

    fn suspect_dependents(&mut self, uid: &str) {
        self.suspects.extend(self.dependents.get(uid).into_iter().flatten().cloned());
    }

    pub(super) async fn act(&mut self, server: &Server) {
        for (id, key) in std::mem::take(&mut self.owners) {
            if !self.release_owner(server, &id, &key).await {
                self.owners.insert((id, key));
            }
        }
        for (id, key) in std::mem::take(&mut self.suspects) {
            if !self.collect(server, &id, &key).await {
                self.suspects.insert((id, key));
            }
        }
    }

    /// Lets an owner go whose dependents are orphaned or deleted. False if it must be tried again.
    async fn release_owner(&self, server: &Server, id: &CollectionId, key: &Key) -> bool {
        let Some(object) = server.store.get(id, key) else { return true };
        let Some(kind) = server.registry.of_collection(id) else { return true };
        let Some(metadata) = Metadata::of(&object) else { return true };
        let dependents: Vec<&Place> = self.dependents.get(&metadata.uid).into_iter().flatten().collect();
        let finalizer = if metadata.waits_for("orphan") {
            for (id, key) in &dependents {
                let Some(kind) = server.registry.of_collection(id) else { continue };
                let uid = metadata.uid.clone();
                let edit = move |object: &mut Value| drop_owners(object, std::slice::from_ref(&uid));
                if change(server, kind, key, Part::Main, WHO, &edit).await.is_err() {
                    return false;
                }
            }
            "orphan"
        } else if metadata.waits_for("foregroundDeletion") {
            let blocks = |node: &Node| {
                let mut owners = node.owners.iter();
                owners.any(|o| o.uid == metadata.uid && o.block_owner_deletion == Some(true))
            };
            // The event of a dependent's removal brings us here again.
            if dependents.iter().filter_map(|place| self.nodes.get(*place)).any(blocks) {
                return true;
            }
            "foregroundDeletion"
        } else {
            return true;
        };
        let edit = move |object: &mut Value| drop_finalizer(object, finalizer);
        change(server, kind, key, Part::Main, WHO, &edit).await.is_ok()
    }

    /// Deletes an object that no owner holds any longer. False if it must be tried again.
    async fn collect(&self, server: &Server, id: &CollectionId, key: &Key) -> bool {
        let Some(object) = server.store.get(id, key) else { return true };
        let Some(kind) = server.registry.of_collection(id) else { return true };
        let Some(metadata) = Metadata::of(&object) else { return true };
        if metadata.owner_references.is_empty() {
            return true;
        }
        let deleting = metadata.deletion_timestamp.is_some();
        if deleting && !metadata.waits_for("foregroundDeletion") {
            return true;
        }
        let (mut solid, mut gone, mut waiting) = (0, Vec::new(), Vec::new());
        for owner in &metadata.owner_references {
            match standing(server, owner, key) {
                Standing::Solid => solid += 1,
                Standing::Waiting => waiting.push(owner.uid.clone()),
                Standing::Gone => gone.push(owner.uid.clone()),
                Standing::Unknown if self.absent.contains(&owner.uid) => gone.push(owner.uid.clone()),
                // An owner of a kind nobody knows may come to be known.
                Standing::Unknown => return true,
            }
        }
        if solid > 0 {
            if gone.is_empty() && waiting.is_empty() {
                return true;
            }
            let leave: Vec<String> = gone.into_iter().chain(waiting).collect();
            let edit = move |object: &mut Value| drop_owners(object, &leave);
            return change(server, kind, key, Part::Main, WHO, &edit).await.is_ok();
        }
        if deleting {
            return true;
        }
        let has_dependents = self.dependents.contains_key(&metadata.uid);
        let propagation = if !waiting.is_empty() && has_dependents {
            Propagation::Foreground
        } else if metadata.finalizers.iter().any(|f| f == "orphan") {
            Propagation::Orphan
        } else if metadata.finalizers.iter().any(|f| f == "foregroundDeletion") {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            uid: Some(metadata.uid.clone()),
            version: Some(object.revision.to_string()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        delete(server, kind, key, WHO, &options).await.is_ok()
    }
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

fn standing(server: &Server, owner: &Owner, dependent: &Key) -> Standing {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let Some(kind) = server.registry.of_kind(group, version, &owner.kind) else { return Standing::Unknown };
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
    } else if metadata.waits_for("foregroundDeletion") {
        Standing::Waiting
    } else {
        Standing::Solid
    }
}

fn drop_owners(object: &mut Value, uids: &[String]) {
    retain(object, "ownerReferences", |owner| {
        !owner.get("uid").and_then(Value::as_str).is_some_and(|uid| uids.iter().any(|u| u == uid))
    });
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
