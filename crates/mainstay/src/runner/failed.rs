//! The last decision about each parent that failed, kept so that it can be recorded afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Knowledge, ParentId, Runner, lock};
use crate::cache::Object;
use crate::handler::Answers;
use crate::kind::ObjectRef;
use crate::plan::{Memory, Situation};
use crate::record::Recording;
use crate::snapshot::Snapshot;

/// Most parents of which a failed decision is kept. The one that failed longest ago makes room.
const KEPT_MAX: usize = 100;

/// What a sync decided on, besides the handler's answer. It shares its objects with the caches.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    pub(super) strangers: BTreeMap<ObjectRef, Arc<Object>>,
    pub(super) memory: Memory,
    pub(super) deletions_allowed: usize,
}

/// A decision that failed.
pub(super) struct Failed {
    pub(super) snapshot: Snapshot,
    pub(super) asked: Answers,
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) basis: Basis,
}

/// The last failed decision of each parent, with its number.
#[derive(Default)]
pub(crate) struct FailedDecisions {
    by_parent: BTreeMap<ParentId, (u64, Failed)>,
    last: u64,
}

impl FailedDecisions {
    pub(super) fn keep(&mut self, parent: &ParentId, failed: Failed) {
        self.last += 1;
        self.by_parent.insert(parent.clone(), (self.last, failed));
        if self.by_parent.len() > KEPT_MAX {
            let oldest = self.by_parent.iter().min_by_key(|(_, (number, _))| *number);
            let oldest = oldest.map(|(parent, _)| parent.clone());
            oldest.and_then(|oldest| self.by_parent.remove(&oldest));
        }
    }

    pub(super) fn forget(&mut self, parent: &ParentId) {
        self.by_parent.remove(parent);
    }
}

impl Runner {
    /// All that the last failed decision about a parent rested on. `None` if none has failed, it is too long ago, or the parent is gone.
    pub(crate) fn record_failed(&self, parent: &ParentId) -> Option<Recording> {
        let active = self.active(&parent.0)?;
        let failed = lock(&self.failed);
        let (_, Failed { snapshot, asked, knowledge, basis }) = failed.by_parent.get(parent)?;
        let situation = Situation {
            controller: &active.controller,
            finalizer: &self.finalizer,
            namespace: self.namespace.as_deref(),
            snapshot,
            parent_json: &snapshot.parent.value(),
            strangers: &basis.strangers,
            rules: &knowledge.rules,
            memory: &basis.memory,
            has_status: knowledge.has_status,
            deletions_allowed: basis.deletions_allowed,
        };
        Some(Recording::new(&situation, asked))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::kind::{Key, Kind};

    #[test]
    fn only_so_many_are_kept_and_the_oldest_goes_first() {
        let kind = Kind::of::<ConfigMap>();
        let id = |number: usize| (kind.clone(), Key::namespaced("ns", &format!("parent-{number}")));
        let failed = || {
            let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}});
            let snapshot = Snapshot {
                kind: kind.clone(),
                parent: Arc::new(Object::from_value(&kind, &value).unwrap()),
                children: Vec::new(),
                revisions: Vec::new(),
                registered: BTreeMap::new(),
                now: Timestamp::UNIX_EPOCH,
            };
            let basis = Basis { strangers: BTreeMap::new(), memory: Memory::default(), deletions_allowed: 0 };
            let knowledge = Arc::new(Knowledge::default());
            Failed { snapshot, asked: Answers::new(), knowledge, basis }
        };
        let mut decisions = FailedDecisions::default();
        for number in 0..KEPT_MAX {
            decisions.keep(&id(number), failed());
        }
        decisions.keep(&id(0), failed());
        decisions.keep(&id(KEPT_MAX), failed());
        assert_eq!(decisions.by_parent.len(), KEPT_MAX);
        assert!(decisions.by_parent.contains_key(&id(0)), "it failed again since");
        assert!(!decisions.by_parent.contains_key(&id(1)));
    }
}
