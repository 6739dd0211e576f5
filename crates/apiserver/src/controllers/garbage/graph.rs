//! Who owns whom, kept from the store's events.

use super::super::Place;
use super::super::queue::{Lane, Laned};
use crate::store::{CollectionId, Object};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(default)]
    pub block_owner_deletion: Option<bool>,
}

impl Owner {
    pub(super) fn is_blocked(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

/// What the collector needs to know of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub uid: String,
    pub owner_references: Vec<Owner>,
    pub finalizers: Vec<String>,
    pub deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

impl Metadata {
    /// None, and a line in the log, if the object cannot be read. Nothing may be collected on account of that.
    pub(super) fn of(object: &Object) -> Option<Metadata> {
        let head = object.read::<Head>().inspect_err(|error| tracing::error!("{error}"));
        head.ok().map(|head| head.metadata)
    }

    pub(super) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| f == finalizer)
    }

    pub(super) fn waits_for(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.has_finalizer(finalizer)
    }
}

/// Whether an object may have owners or be in deletion.
fn may_matter(object: &Object) -> bool {
    object.mentions("\"ownerReferences\"") || object.mentions("\"deletionTimestamp\"")
}

struct Node {
    uid: String,
    /// The uid of each owner, and whether the owner's deletion in the foreground waits for this object.
    owners: BTreeMap<String, bool>,
}

/// The objects that have one owner.
#[derive(Default)]
struct Dependents {
    /// With whether the owner's deletion in the foreground waits for it.
    places: BTreeMap<Place, bool>,
    /// How many of them it waits for.
    blocking: usize,
}

/// An owner that is being deleted and waits for its dependents.
struct Waiting {
    place: Place,
    in_foreground: bool,
}

/// What has to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Task {
    /// An owner that waits for its dependents.
    Owner(Place),
    /// An object whose owners may be gone.
    Suspect(Place),
}

impl Laned for Task {
    /// Webhooks are asked about resources, and most often about those of some namespaces.
    fn lane(&self) -> Lane {
        let (Task::Owner((id, key)) | Task::Suspect((id, key))) = self;
        Lane::Objects(id.clone(), key.namespace.clone())
    }
}

/// Only objects that have owners, and owners that wait, are kept track of: of most objects there is
/// nothing to know.
#[derive(Default)]
pub(super) struct Graph {
    /// Objects that have owners.
    nodes: HashMap<Place, Node>,
    /// By the owner's uid.
    dependents: HashMap<String, Dependents>,
    /// Owners that were seen to go before their dependents, by uid: their kind may go too before anybody looks.
    absent: HashSet<String>,
    /// By uid.
    waiting: HashMap<String, Waiting>,
    /// Objects with an owner of a kind that was not known when they were looked at.
    unknown: BTreeSet<Place>,
    /// What has come up since it was last taken.
    pub found: Vec<Task>,
}

impl Graph {
    pub(super) fn see(&mut self, id: &CollectionId, object: &Arc<Object>) {
        let place = (id.clone(), object.key.clone());
        if !may_matter(object) && !self.nodes.contains_key(&place) {
            return;
        }
        let Some(metadata) = Metadata::of(object) else { return };
        let mut owners = BTreeMap::new();
        for owner in &metadata.owner_references {
            *owners.entry(owner.uid.clone()).or_insert(false) |= owner.is_blocked();
        }
        let before = self.nodes.remove(&place).map(|node| node.owners).unwrap_or_default();
        for uid in before.keys().filter(|uid| !owners.contains_key(*uid)) {
            self.unlink(uid, &place);
        }
        for (uid, blocks) in &owners {
            self.link(uid, &place, *blocks);
        }
        if !owners.is_empty() && before != owners {
            self.found.push(Task::Suspect(place.clone()));
        }
        if metadata.waits_for(ORPHAN) || metadata.waits_for(FOREGROUND) {
            let in_foreground = metadata.waits_for(FOREGROUND);
            let waiting = Waiting { place: place.clone(), in_foreground };
            self.waiting.insert(metadata.uid.clone(), waiting);
            self.found.push(Task::Owner(place.clone()));
            if in_foreground {
                self.suspect_dependents(&metadata.uid);
                // It may wait for one that waits for it.
                if !owners.is_empty() {
                    self.found.push(Task::Suspect(place.clone()));
                }
            }
        }
        if owners.is_empty() {
            self.unknown.remove(&place);
        } else {
            self.nodes.insert(place, Node { uid: metadata.uid, owners });
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
        self.unknown.remove(&place);
        self.waiting.remove(&uid);
        self.suspect_dependents(&uid);
        if self.dependents.contains_key(&uid) {
            self.absent.insert(uid);
        }
        for uid in node.iter().flat_map(|node| node.owners.keys()) {
            self.unlink(uid, &place);
        }
    }

    fn link(&mut self, owner: &str, dependent: &Place, blocks: bool) {
        if !self.dependents.contains_key(owner) {
            self.dependents.insert(owner.to_owned(), Dependents::default());
        }
        let Some(dependents) = self.dependents.get_mut(owner) else { return };
        let before = dependents.places.insert(dependent.clone(), blocks);
        dependents.blocking += usize::from(blocks);
        dependents.blocking -= usize::from(before == Some(true));
        if before == Some(true) && !blocks {
            self.look_at_owner(owner);
        }
    }

    fn unlink(&mut self, owner: &str, dependent: &Place) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            let before = dependents.places.remove(dependent);
            dependents.blocking -= usize::from(before == Some(true));
            if dependents.places.is_empty() {
                self.dependents.remove(owner);
                self.absent.remove(owner);
            }
        }
        self.look_at_owner(owner);
    }

    /// An owner that waits for its dependents may have nothing left to wait for.
    fn look_at_owner(&mut self, uid: &str) {
        if self.is_blocked(uid) {
            return;
        }
        if let Some(Waiting { place, .. }) = self.waiting.get(uid) {
            self.found.push(Task::Owner(place.clone()));
        }
    }

    fn suspect_dependents(&mut self, uid: &str) {
        let dependents = self.dependents.get(uid).into_iter().flat_map(|dependents| dependents.places.keys());
        self.found.extend(dependents.cloned().map(Task::Suspect));
    }

    /// Objects whose owners' kinds were not known: some may be now.
    pub(super) fn suspect_unknown(&mut self) {
        self.found.extend(std::mem::take(&mut self.unknown).into_iter().map(Task::Suspect));
    }

    pub(super) fn set_unknown(&mut self, place: &Place) {
        self.unknown.insert(place.clone());
    }

    pub(super) fn is_absent(&self, uid: &str) -> bool {
        self.absent.contains(uid)
    }

    /// Whether an owner's deletion in the foreground has something to wait for.
    pub(super) fn is_blocked(&self, uid: &str) -> bool {
        self.dependents.get(uid).is_some_and(|dependents| dependents.blocking > 0)
    }

    pub(super) fn has_dependents(&self, uid: &str) -> bool {
        self.dependents.contains_key(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents
            .get(uid)
            .map(|dependents| dependents.places.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Whether the deletion of an object in the foreground waits, through others, for itself: the object blocks an owner that
    /// waits in the foreground, that one blocks another, and so on, until one of them has it as an owner.
    pub(super) fn is_in_circle(&self, place: &Place) -> bool {
        let Some(start) = self.nodes.get(place) else { return false };
        let mut seen = HashSet::new();
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            for uid in node.owners.iter().filter(|(_, blocks)| **blocks).map(|(uid, _)| uid) {
                if *uid == start.uid {
                    return true;
                }
                let waiting = self.waiting.get(uid).filter(|waiting| waiting.in_foreground);
                if let Some(owner) = waiting.and_then(|waiting| self.nodes.get(&waiting.place))
                    && seen.insert(uid)
                {
                    open.push(owner);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;
    use serde_json::json;

    fn place(name: &str) -> Place {
        (CollectionId::new("", "configmaps"), Key::new("ns", name))
    }

    fn object(name: &str, owners: &[&str], deleting: bool) -> Arc<Object> {
        let owners: Vec<_> = owners
            .iter()
            .map(|owner| {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner, "blockOwnerDeletion": true})
            })
            .collect();
        let mut metadata = json!({"uid": name, "ownerReferences": owners});
        if deleting {
            metadata["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
            metadata["finalizers"] = json!([FOREGROUND]);
        }
        let json = json!({"metadata": metadata}).to_string().into();
        Arc::new(Object::new(Key::new("ns", name), 1, json))
    }

    fn graph(edges: &[(&str, &[&str])]) -> Graph {
        let mut graph = Graph::default();
        for (name, owners) in edges {
            graph.see(&CollectionId::new("", "configmaps"), &object(name, owners, true));
        }
        graph
    }

    #[test]
    fn a_circle_is_found_wherever_one_starts_and_a_chain_is_none() {
        let circle = graph(&[("a", &["c"]), ("b", &["a"]), ("c", &["b"]), ("tail", &["c"])]);
        let found: Vec<bool> =
            ["a", "b", "c", "tail"].iter().map(|name| circle.is_in_circle(&place(name))).collect();
        assert_eq!(found, [true, true, true, false]);
        let chain = graph(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        assert!(!["a", "b", "c"].iter().any(|name| chain.is_in_circle(&place(name))));
        assert!(graph(&[("self", &["self"])]).is_in_circle(&place("self")));
    }

    #[test]
    fn an_owner_is_blocked_until_its_last_blocking_dependent_is_gone() {
        let id = CollectionId::new("", "configmaps");
        let mut graph = graph(&[("owner", &[]), ("a", &["owner"]), ("b", &["owner"])]);
        assert!(graph.is_blocked("owner"));
        graph.found.clear();
        graph.forget(&id, &object("a", &["owner"], true));
        assert!(graph.is_blocked("owner") && !graph.found.contains(&Task::Owner(place("owner"))));
        graph.forget(&id, &object("b", &["owner"], true));
        assert!(!graph.is_blocked("owner") && graph.found.contains(&Task::Owner(place("owner"))));
    }
}
