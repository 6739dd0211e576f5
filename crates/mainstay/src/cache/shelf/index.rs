//! The objects of a kind by key and by controlling owner, kept in step.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::cache::uid::Uid;
use crate::cache::{Object, Selector};
use crate::kind::Key;

#[derive(Debug)]
struct Slot {
    object: Arc<Object>,
    /// The newest list that had it.
    epoch: u32,
}

/// The objects by key and by controlling owner.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: BTreeMap<Key, Slot>,
    /// The children of each owner, in the order of their keys.
    children: BTreeMap<Uid, Vec<Arc<Object>>>,
    json_bytes: usize,
    object_bytes: usize,
}

impl Index {
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.slots.get(key).map(|slot| &slot.object)
    }

    /// Puts an object in the place of what is held under its key, which is returned. The mark of that place stays.
    pub(super) fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.json_bytes += object.json().len();
        self.object_bytes += object.allocated_bytes();
        let held = self.slots.get_mut(object.key());
        let old = held.map(|slot| std::mem::replace(&mut slot.object, object.clone()));
        if old.is_none() {
            self.slots.insert(object.key().clone(), Slot { object: object.clone(), epoch: 0 });
        }
        if let Some(old) = &old {
            self.uncount(old);
            // With the same owner the entry among its children is replaced below.
            if old.controller_uid() != object.controller_uid() {
                self.orphan(old);
            }
        }
        if let Some(owner) = object.controller_uid() {
            let children = self.children.entry(Uid::from(owner)).or_default();
            let place = children.binary_search_by(|child| child.key().cmp(object.key()));
            match place {
                Ok(place) => children[place] = object,
                Err(place) => children.insert(place, object),
            }
        }
        old
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let old = self.slots.remove(key)?.object;
        self.uncount(&old);
        self.orphan(&old);
        Some(old)
    }

    fn uncount(&mut self, old: &Object) {
        self.json_bytes -= old.json().len();
        self.object_bytes -= old.allocated_bytes();
    }

    /// Takes an object away from its owner's children.
    fn orphan(&mut self, old: &Object) {
        let Some(owner) = old.controller_uid().map(Uid::from) else { return };
        let Some(children) = self.children.get_mut(&owner) else { return };
        if let Ok(place) = children.binary_search_by(|child| child.key().cmp(old.key())) {
            children.remove(place);
        }
        if children.is_empty() {
            self.children.remove(&owner);
        }
    }

    /// Notes that a list had it.
    pub(super) fn mark(&mut self, key: &Key, epoch: u32) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.epoch = epoch;
        }
    }

    /// Whether this list had it.
    pub(super) fn is_marked(&self, key: &Key, epoch: u32) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.epoch == epoch)
    }

    /// The keys of what a list did not have, unless it is newer than the list.
    pub(super) fn unmarked(&self, epoch: u32, list_revision: u64) -> Vec<Key> {
        let missing = |slot: &Slot| {
            let revision = slot.object.revision();
            slot.epoch != epoch && (list_revision == 0 || revision <= list_revision)
        };
        self.slots.iter().filter(|(_, slot)| missing(slot)).map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn children_of(&self, owner: &str) -> &[Arc<Object>] {
        self.children.get(&Uid::from(owner)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn list(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Object>> {
        let first = namespace.map_or(Bound::Unbounded, |namespace| {
            // No name is smaller than the empty one.
            Bound::Included(Key::namespaced(namespace, ""))
        });
        self.slots
            .range((first, Bound::Unbounded))
            .take_while(|(key, _)| namespace.is_none_or(|namespace| key.namespace() == Some(namespace)))
            .map(|(_, slot)| &slot.object)
            .filter(|object| object.is_selected_by(selector))
            .cloned()
            .collect()
    }

    pub(super) fn take_all(&mut self) -> Vec<Arc<Object>> {
        std::mem::take(self).slots.into_values().map(|slot| slot.object).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn json_bytes(&self) -> usize {
        self.json_bytes
    }

    /// An upper bound of everything that is allocated: entries of trees are counted twice, as nodes are at least
    /// half full.
    pub(super) fn allocated_bytes(&self) -> usize {
        let slots = self.slots.len() * 2 * size_of::<(Key, Slot)>();
        let owners = self.children.len() * 2 * size_of::<(Uid, Vec<Arc<Object>>)>();
        let lists = |(owner, children): (&Uid, &Vec<Arc<Object>>)| {
            owner.heap_bytes() + children.capacity() * size_of::<Arc<Object>>()
        };
        self.object_bytes + slots + owners + self.children.iter().map(lists).sum::<usize>()
    }
}
