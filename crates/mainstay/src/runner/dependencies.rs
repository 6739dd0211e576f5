//! Which parents depend on which other objects. Pure bookkeeping: questions in, parents to wake out.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::{Object, Selector};
use crate::handler::Related;
use crate::kind::{Key, Kind};

/// A parent.
pub(crate) type ParentId = (Kind, Key);

/// What all parents asked for in their last sync.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    by_parent: BTreeMap<ParentId, BTreeSet<Related>>,
    by_kind: BTreeMap<Kind, OfKind>,
}

#[derive(Debug, Default)]
struct OfKind {
    named: BTreeMap<Key, BTreeSet<ParentId>>,
    selected: BTreeMap<Related, (Selector, BTreeSet<ParentId>)>,
}

impl OfKind {
    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.selected.is_empty()
    }
}

impl Dependencies {
    /// Replaces what a parent depends on. Tells the kinds that nobody depends on any more.
    pub(crate) fn set(&mut self, parent: &ParentId, questions: BTreeSet<Related>) -> Vec<Kind> {
        let before = self.by_parent.remove(parent).unwrap_or_default();
        for question in before.difference(&questions) {
            self.remove(parent, question);
        }
        for question in questions.difference(&before) {
            self.add(parent, question);
        }
        if !questions.is_empty() {
            self.by_parent.insert(parent.clone(), questions);
        }
        let dropped: BTreeSet<_> = before.iter().map(|question| question.kind().clone()).collect();
        dropped.into_iter().filter(|kind| !self.by_kind.contains_key(kind)).collect()
    }

    fn add(&mut self, parent: &ParentId, question: &Related) {
        let of_kind = self.by_kind.entry(question.kind().clone()).or_default();
        match question.parts() {
            Ok(key) => {
                of_kind.named.entry(key.clone()).or_default().insert(parent.clone());
            }
            Err(selector) => {
                // One that does not parse was refused when it was asked, and has no answer that could change.
                let Ok(parsed) = selector.parse::<Selector>() else { return };
                let entry = of_kind.selected.entry(question.clone());
                entry.or_insert_with(|| (parsed, BTreeSet::new())).1.insert(parent.clone());
            }
        }
    }

    fn remove(&mut self, parent: &ParentId, question: &Related) {
        let Some(of_kind) = self.by_kind.get_mut(question.kind()) else { return };
        match question.parts() {
            Ok(key) => {
                if let Some(parents) = of_kind.named.get_mut(key) {
                    parents.remove(parent);
                    if parents.is_empty() {
                        of_kind.named.remove(key);
                    }
                }
            }
            Err(_) => {
                if let Some((_, parents)) = of_kind.selected.get_mut(question) {
                    parents.remove(parent);
                    if parents.is_empty() {
                        of_kind.selected.remove(question);
                    }
                }
            }
        }
        if of_kind.is_empty() {
            self.by_kind.remove(question.kind());
        }
    }

    /// The parents to wake when an object has come, changed or gone.
    pub(crate) fn concerned(
        &self,
        kind: &Kind,
        before: Option<&Object>,
        after: Option<&Object>,
    ) -> BTreeSet<ParentId> {
        let Some(of_kind) = self.by_kind.get(kind) else { return BTreeSet::new() };
        let Some(key) = after.or(before).map(Object::key) else { return BTreeSet::new() };
        let mut concerned = of_kind.named.get(key).cloned().unwrap_or_default();
        if of_kind.selected.is_empty() {
            return concerned;
        }
        for (question, (selector, parents)) in &of_kind.selected {
            let here = question.namespace().is_none_or(|namespace| key.namespace() == Some(namespace));
            if here && [before, after].into_iter().flatten().any(|object| object.is_selected_by(selector)) {
                concerned.extend(parents.iter().cloned());
            }
        }
        concerned
    }

    /// The parents that depend on objects of a kind.
    pub(crate) fn of_kind(&self, kind: &Kind) -> BTreeSet<ParentId> {
        let Some(of_kind) = self.by_kind.get(kind) else { return BTreeSet::new() };
        let named = of_kind.named.values();
        named.chain(of_kind.selected.values().map(|(_, parents)| parents)).flatten().cloned().collect()
    }
}
