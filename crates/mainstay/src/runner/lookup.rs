//! Answers handlers' questions from the caches, and starts to watch what was never asked for before.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{ParentId, Runner, lock};
use crate::cache::{Object, Options, Selector, WatchScope};
use crate::handler::{Error, Lookup, Related};
use crate::kind::Kind;

/// The caches, as one controller's handler may ask them.
pub(crate) struct CacheLookup {
    pub(crate) runner: Arc<Runner>,
    /// The kinds that the controller said it reads.
    pub(crate) reads: Vec<Kind>,
}

impl Lookup for CacheLookup {
    fn look_up(&self, question: &Related) -> Result<Vec<Arc<Object>>, Error> {
        let kind = question.kind();
        if !self.reads.contains(kind) {
            let message = format!("{kind} was asked for, but is not declared; declare it with `reads` so that the operator may read it");
            return Err(Error::terminal(message));
        }
        self.runner.watch_related(kind);
        if !self.runner.caches.is_filled(kind) {
            return Err(Error::pending(kind));
        }
        match question.parts() {
            Ok(key) => Ok(self.runner.caches.get(kind, key).into_iter().collect()),
            Err(selector) => {
                let selector: Selector = selector.parse().map_err(Error::terminal)?;
                Ok(self.runner.caches.list(kind, question.namespace(), &selector))
            }
        }
    }
}

impl Runner {
    fn watch_related(&self, kind: &Kind) {
        let mut related = lock(&self.related);
        if !related.contains_key(kind) {
            let scope = self.scope(kind);
            related.insert(kind.clone(), self.caches.watch(kind, scope, Options::default()));
        }
    }

    /// What of a kind this operator looks at.
    pub(crate) fn scope(&self, kind: &Kind) -> WatchScope {
        match &self.namespace {
            Some(namespace) if kind.scope() == crate::kind::Scope::Namespaced => WatchScope::namespace(namespace),
            _ => WatchScope::all(),
        }
    }

    /// Notes what a parent depends on now. Watches that nobody needs any more end.
    pub(crate) fn set_dependencies(&self, parent: &ParentId, questions: BTreeSet<Related>) {
        let unused = lock(&self.dependencies).set(parent, questions);
        if unused.is_empty() {
            return;
        }
        let mut related = lock(&self.related);
        let ended: Vec<_> = unused.iter().filter_map(|kind| related.remove(kind)).collect();
        drop(related);
        drop(ended);
    }
}
