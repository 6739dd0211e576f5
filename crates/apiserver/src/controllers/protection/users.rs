//! Which claims are mounted by pods that have not ended, kept from the store's events.

use super::super::is_pods;
use crate::store::{Fate, Key, Object, Revision, Store};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    volumes: Option<Vec<Volume>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Users {
    /// What each pod mounts, for those that mount anything.
    mounted: HashMap<Key, BTreeSet<Key>>,
    /// How many pods mount a claim.
    counts: HashMap<Key, usize>,
    /// The newest change that was seen, of whatever object.
    pub seen: Revision,
}

/// A pod that cannot be read may mount any claim of its namespace: the one without a name stands for all.
fn any(namespace: &str) -> Key {
    Key::new(namespace, "")
}

/// The claims that a pod holds.
fn mounted(pod: &Object) -> BTreeSet<Key> {
    if !pod.mentions("\"persistentVolumeClaim\"") {
        return BTreeSet::new();
    }
    let namespace = &*pod.key.namespace;
    let Ok(Pod { spec, status }) = pod.read().inspect_err(|error| tracing::error!("{error}")) else {
        return [any(namespace)].into();
    };
    if matches!(&*status.phase, "Succeeded" | "Failed") {
        return BTreeSet::new();
    }
    let claims = spec.volumes.into_iter().flatten().filter_map(|volume| volume.persistent_volume_claim);
    claims.map(|claim| Key::new(namespace, &claim.claim_name)).collect()
}

impl Users {
    /// A pod is there, new or changed. Gives the claims that it mounts no longer.
    pub(super) fn see(&mut self, pod: &Object) -> Vec<Key> {
        self.replace(&pod.key, mounted(pod))
    }

    /// A pod is gone. Gives the claims that it mounted.
    pub(super) fn forget(&mut self, pod: &Key) -> Vec<Key> {
        self.replace(pod, BTreeSet::new())
    }

    fn replace(&mut self, pod: &Key, claims: BTreeSet<Key>) -> Vec<Key> {
        let before = self.mounted.remove(pod).unwrap_or_default();
        for claim in claims.difference(&before) {
            *self.counts.entry(claim.clone()).or_default() += 1;
        }
        let freed: Vec<Key> = before.difference(&claims).cloned().collect();
        for claim in &freed {
            match self.counts.get_mut(claim) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(claim)),
            }
        }
        if !claims.is_empty() {
            self.mounted.insert(pod.clone(), claims);
        }
        freed
    }

    /// Whether a pod mounts a claim; none if too much has happened since the last look to know.
    pub(super) fn is_used(&self, store: &Store, claim: &Key) -> Option<bool> {
        let any = any(&claim.namespace);
        if self.counts.contains_key(claim) || self.counts.contains_key(&any) {
            return Some(true);
        }
        // What nobody has looked at yet is a handful at most.
        let unseen = store.events_after(self.seen).ok()?;
        let pods = unseen.iter().filter(|(id, event)| is_pods(id) && event.fate == Fate::Kept);
        Some(pods.map(|(_, event)| mounted(&event.object)).any(|m| m.contains(claim) || m.contains(&any)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{CollectionId, Retention};
    use serde_json::{Value, json};

    fn pod(name: &str, claims: &[&str], phase: &str) -> Object {
        let volumes: Vec<Value> =
            claims.iter().map(|claim| json!({"persistentVolumeClaim": {"claimName": claim}})).collect();
        let json = json!({"spec": {"volumes": volumes}, "status": {"phase": phase}});
        Object::new(Key::new("ns", name), 1, json.to_string().into())
    }

    fn users() -> (Users, Store) {
        let store = Store::in_memory(Retention::default(), |_, _| Vec::new(), None);
        (Users { seen: store.revision(), ..Users::default() }, store)
    }

    #[test]
    fn a_claim_is_free_when_its_last_pod_has_ended_or_gone() {
        let (mut users, store) = users();
        let (a, b) = (Key::new("ns", "a"), Key::new("ns", "b"));
        assert!(users.see(&pod("1", &["a", "b", "a"], "Running")).is_empty());
        assert!(users.see(&pod("2", &["a"], "Pending")).is_empty());
        assert_eq!(users.see(&pod("1", &["a", "b"], "Succeeded")), [a.clone(), b.clone()]);
        assert_eq!((users.is_used(&store, &a), users.is_used(&store, &b)), (Some(true), Some(false)));
        assert_eq!(users.forget(&Key::new("ns", "2")), std::slice::from_ref(&a));
        assert!(users.forget(&Key::new("ns", "2")).is_empty());
        assert_eq!(users.is_used(&store, &a), Some(false));
        assert!(users.counts.is_empty() && users.mounted.is_empty());
    }

    #[test]
    fn a_pod_that_cannot_be_read_mounts_everything_of_its_namespace() {
        let (mut users, store) = users();
        let broken = Object::new(Key::new("ns", "1"), 1, r#"{"persistentVolumeClaim""#.into());
        users.see(&broken);
        assert_eq!(users.is_used(&store, &Key::new("ns", "a")), Some(true));
        assert_eq!(users.is_used(&store, &Key::new("other", "a")), Some(false));
        users.forget(&Key::new("ns", "1"));
        assert_eq!(users.is_used(&store, &Key::new("ns", "a")), Some(false));
    }

    #[test]
    fn nothing_is_known_of_what_was_forgotten_before_the_first_look() {
        let (users, store) = users();
        let late = Users::default();
        assert_eq!(late.is_used(&store, &Key::new("ns", "a")), None);
        assert_eq!(users.is_used(&store, &Key::new("ns", "a")), Some(false));
    }

    #[test]
    fn a_pod_that_was_made_just_now_counts() {
        let (users, store) = users();
        let id = CollectionId::new("", "pods");
        let tree =
            json!({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}]}, "metadata": {}});
        let key = Key::new("ns", "p");
        futures::executor::block_on(store.commit(&id, &key, None, &tree, Fate::Kept)).unwrap();
        assert_eq!(users.is_used(&store, &Key::new("ns", "a")), Some(true));
        assert_eq!(users.is_used(&store, &Key::new("ns", "b")), Some(false));
    }
}
