//! What is remembered of a parent between its syncs.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::cache::Object;
use crate::diff::Learned;
use crate::kind::{Kind, ObjectRef};

/// What is remembered of a parent between syncs. Empty for most.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// By uid: how the server rewrites what is applied.
    pub(crate) learned: BTreeMap<String, Learned>,
    /// Children that the server refused, until it takes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "refusals")]
    pub(crate) refused: BTreeMap<ObjectRef, Refusal>,
    /// Child states that were found to be as desired: hashes of uid and version, sorted.
    #[serde(skip)]
    verified: Vec<(u64, u64)>,
    /// The last status that was sent, and what the server made of it, as hashes.
    pub(crate) status_settled: Option<(String, String)>,
}

/// A child that the server refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Of the desired state that was refused.
    pub(crate) hash: String,
    pub(crate) immutable: bool,
}

/// As a list: keys in JSON are text.
mod refusals {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Refusal;
    use crate::kind::{Key, Kind, ObjectRef};

    pub(super) fn serialize<S: Serializer>(
        refused: &BTreeMap<ObjectRef, Refusal>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let parts = refused
            .iter()
            .map(|(object, refusal)| (&object.kind, object.key.namespace(), object.key.name(), refusal));
        serializer.collect_seq(parts)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<BTreeMap<ObjectRef, Refusal>, D::Error> {
        let parts = Vec::<(Kind, Option<String>, String, Refusal)>::deserialize(deserializer)?;
        let refused = parts.into_iter().map(|(kind, namespace, name, refusal)| {
            (ObjectRef { kind, key: Key::new(namespace.as_deref(), &name) }, refusal)
        });
        Ok(refused.collect())
    }
}

impl Memory {
    pub(crate) fn learned(&self, uid: &str) -> &Learned {
        static NOTHING: LazyLock<Learned> = LazyLock::new(Learned::nothing);
        self.learned.get(uid).unwrap_or(&NOTHING)
    }

    /// Whether this very state of the child was compared before and found to be as its annotation says.
    pub(crate) fn is_verified(&self, live: &Object) -> bool {
        self.verified.binary_search(&fingerprint(live.uid(), live.resource_version())).is_ok()
    }

    /// Forgets children that are gone, so that it stays as small as what there is. A refusal matters only for a child that is there.
    pub(crate) fn prune(&mut self, parent: &Object, children: &[(Kind, Vec<Arc<Object>>)]) {
        let live = || children.iter().flat_map(|(_, objects)| objects);
        if !self.learned.is_empty() {
            let mut uids: Vec<_> = live().map(|live| live.uid()).collect();
            uids.push(parent.uid());
            uids.sort_unstable();
            self.learned.retain(|uid, _| uids.binary_search(&uid.as_str()).is_ok());
        }
        // All that are verified are children, so there are more only if some of them are gone.
        if self.verified.len() > live().count() {
            let mut known: Vec<_> = live().map(|live| hash(live.uid())).collect();
            known.sort_unstable();
            self.verified.retain(|(uid, _)| known.binary_search(uid).is_ok());
        }
        self.refused.retain(|object, _| {
            let of_kind = children.iter().filter(|(kind, _)| *kind == object.kind);
            of_kind.flat_map(|(_, objects)| objects).any(|live| *live.key() == object.key)
        });
    }

    /// Remembers that all children are as desired.
    pub(crate) fn verify(&mut self, children: &[(Kind, Vec<Arc<Object>>)]) {
        let live = || children.iter().flat_map(|(_, objects)| objects);
        self.refused.clear();
        self.verified.clear();
        self.verified.extend(live().map(|object| fingerprint(object.uid(), object.resource_version())));
        self.verified.sort_unstable();
        self.verified.shrink_to_fit();
    }

    /// Remembers that a child is as desired in this state, and forgets its former ones.
    pub(crate) fn verify_state(&mut self, uid: &str, resource_version: &str) {
        let state = fingerprint(uid, resource_version);
        match self.verified.binary_search_by_key(&state.0, |known| known.0) {
            Ok(place) => self.verified[place] = state,
            Err(place) => self.verified.insert(place, state),
        }
    }
}

fn fingerprint(uid: &str, resource_version: &str) -> (u64, u64) {
    (hash(uid), hash(resource_version))
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;
    use crate::diff::Rules;
    use crate::kind::Key;

    fn object(name: &str) -> Arc<Object> {
        let value = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {},
            "metadata": {"name": name, "namespace": "ns", "uid": format!("uid of {name}"), "resourceVersion": "1"},
        });
        Arc::new(Object::from_value(&Kind::of::<ConfigMap>(), &value).unwrap())
    }

    /// A parent whose child has another name each time, which the server rewrites and once refused, and that always waits.
    #[test]
    fn nothing_is_kept_of_children_that_are_gone() {
        let kind = Kind::of::<ConfigMap>();
        let (parent, mut memory) = (object("parent"), Memory::default());
        let sent: Value = json!({"data": {"a": "1"}});
        for round in 0..100 {
            let child = object(&format!("child-{round}"));
            memory.verify_state(child.uid(), child.resource_version());
            let learned = Learned::from_response(&sent, &json!({"data": {}}), &Rules::unknown());
            memory.learned.insert(child.uid().to_owned(), learned);
            let refusal = Refusal { hash: "x".into(), immutable: true };
            memory.refused.insert(child.reference(), refusal.clone());
            let never_made =
                ObjectRef { kind: kind.clone(), key: Key::namespaced("ns", &format!("no-{round}")) };
            memory.refused.insert(never_made, refusal);
            memory.prune(&parent, &[(kind.clone(), vec![Arc::clone(&child)])]);
            assert_eq!((memory.learned.len(), memory.verified.len(), memory.refused.len()), (1, 1, 1));
            assert!(memory.is_verified(&child) && memory.refused.contains_key(&child.reference()));
        }
    }
}
