//! What is left in a terminating namespace, kept from the store's events: so the removal of one object does not lead to a look at
//! all others.

use super::super::{Place, is_pods};
use super::Remaining;
use crate::server::Server;
use crate::store::{CollectionId, Object};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// See the [module](self). It may be behind the store by what has happened just now.
#[derive(Default)]
pub(super) struct Contents {
    /// The finalizers of each object.
    objects: HashMap<Place, Vec<String>>,
    /// The objects that nobody has deleted yet.
    unmarked: BTreeSet<Place>,
    counts: BTreeMap<CollectionId, Counts>,
}

#[derive(Default)]
struct Counts {
    objects: usize,
    /// How many of them wait for each finalizer.
    finalizers: BTreeMap<String, usize>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

impl Contents {
    /// Reads everything that a namespace holds.
    pub(super) fn of(server: &Server, namespace: &str) -> Self {
        let mut contents = Contents::default();
        for id in server.store.collections() {
            let listing = server.store.list(&id, Some(namespace), None, None);
            for object in listing.iter().flat_map(|listing| &listing.items) {
                contents.see(&id, object);
            }
        }
        contents
    }

    pub(super) fn see(&mut self, id: &CollectionId, object: &Object) {
        let place = (id.clone(), object.key.clone());
        self.forget(&place);
        let head = object.read::<Head>().inspect_err(|error| tracing::error!("{error}"));
        // One that cannot be read is not deleted, and stays.
        let Metadata { deletion_timestamp, finalizers } = head.map(|head| head.metadata).unwrap_or_default();
        let counts = self.counts.entry(id.clone()).or_default();
        counts.objects += 1;
        for finalizer in &finalizers {
            *counts.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        if deletion_timestamp.is_none() {
            self.unmarked.insert(place.clone());
        }
        self.objects.insert(place, finalizers);
    }

    pub(super) fn forget(&mut self, place: &Place) {
        let Some(finalizers) = self.objects.remove(place) else { return };
        self.unmarked.remove(place);
        let Some(counts) = self.counts.get_mut(&place.0) else { return };
        counts.objects -= 1;
        for finalizer in finalizers {
            if let Some(count) = counts.finalizers.get_mut(&finalizer) {
                *count -= 1;
            }
        }
        counts.finalizers.retain(|_, count| *count > 0);
        if counts.objects == 0 {
            self.counts.remove(&place.0);
        }
    }

    /// What the namespace waits for, if nothing is left to do but to wait: pods first, then everything else.
    pub(super) fn waits_for(&self, server: &Server) -> Option<Remaining> {
        let has_pods = self.counts.keys().any(is_pods);
        let concerns = |id: &CollectionId| !has_pods || is_pods(id);
        if self.counts.is_empty() || self.unmarked.iter().any(|(id, _)| concerns(id)) {
            return None;
        }
        let mut remaining = Remaining::default();
        for (id, counts) in self.counts.iter().filter(|(id, _)| concerns(id)) {
            // Objects of a kind that is not served keep no namespace, so these counts are of no use.
            let kind = server.registry.of_collection(id)?;
            remaining.add(&kind, counts.objects);
            for (finalizer, count) in &counts.finalizers {
                *remaining.finalizers.entry(finalizer.clone()).or_default() += count;
            }
        }
        Some(remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;
    use serde_json::json;

    fn object(name: &str, finalizers: &[&str], deleting: bool) -> Object {
        let deleted = deleting.then_some("2001-01-01T00:00:00Z");
        let json = json!({"metadata": {"finalizers": finalizers, "deletionTimestamp": deleted}});
        Object::new(Key::new("ns", name), 1, json.to_string().into())
    }

    #[test]
    fn what_was_counted_is_uncounted() {
        let mut contents = Contents::default();
        let id = CollectionId::new("", "configmaps");
        let place = |name: &str| (id.clone(), Key::new("ns", name));
        contents.see(&id, &object("a", &["x", "y"], false));
        contents.see(&id, &object("b", &["x"], true));
        assert_eq!((contents.unmarked.len(), contents.counts[&id].objects), (1, 2));
        contents.see(&id, &object("a", &["x"], true));
        assert!(contents.unmarked.is_empty());
        assert_eq!(contents.counts[&id].finalizers, [("x".to_owned(), 2)].into());
        contents.forget(&place("a"));
        contents.forget(&place("a"));
        assert_eq!(contents.counts[&id].finalizers, [("x".to_owned(), 1)].into());
        contents.forget(&place("b"));
        assert!(contents.counts.is_empty() && contents.objects.is_empty());
    }
}
