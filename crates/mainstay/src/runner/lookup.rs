//! Answers handlers' questions from the caches, and starts to watch what was never asked for before.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::AbortHandle;

use super::{Active, ParentId, Runner, Trigger, lock};
use crate::cache::{KindState, Object, Options, Selector, Watch, WatchScope};
use crate::handler::{Error, Lookup, Related};
use crate::kind::Kind;
use crate::queue::Priority;

/// The caches, as one controller's handler may ask them.
pub(crate) struct CacheLookup {
    pub(crate) runner: Arc<Runner>,
    pub(crate) active: Arc<Active>,
}

impl Lookup for CacheLookup {
    fn look_up(&self, question: &Related) -> Result<Vec<Arc<Object>>, Error> {
        let kind = question.kind();
        if !self.active.controller.may_read(kind) {
            let message = format!(
                "{kind} was asked for, but is not declared; declare it with `reads` so that the operator may read it"
            );
            return Err(Error::terminal(message));
        }
        if !self.runner.watch_related(kind) {
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

    fn reaches_everywhere(&self, kind: &Kind) -> bool {
        self.active.controller.everywhere.contains(kind)
    }
}

/// A watch that lasts as long as a handler's question.
pub(crate) struct RelatedWatch {
    watch: Watch,
    /// Tells the parents when the cache is filled.
    herald: AbortHandle,
}

impl Drop for RelatedWatch {
    fn drop(&mut self) {
        self.herald.abort();
    }
}

impl Runner {
    /// Watches a kind from the first question on. Tells whether its cache is filled.
    pub(crate) fn watch_related(self: &Arc<Self>, kind: &Kind) -> bool {
        let mut related = lock(&self.related);
        if let Some(known) = related.get(kind) {
            return known.watch.is_synced();
        }
        let watch = || self.caches.watch(kind, self.scope(kind), Options::default());
        let (watch, waiting) = (watch(), watch());
        let filled = watch.is_synced();
        let runner = Arc::downgrade(self);
        let herald = tokio::spawn(async move {
            waiting.synced().await;
            let Some(runner) = runner.upgrade() else { return };
            let parents = lock(&runner.dependencies).of_kind(waiting.kind());
            for parent in parents {
                runner.push(&parent, Priority::Normal, Trigger::CacheFilled);
            }
        });
        related.insert(kind.clone(), RelatedWatch { watch, herald: herald.abort_handle() });
        filled
    }

    /// How the watch of a kind that was asked for is doing.
    pub(crate) fn state_text(&self, kind: &Kind) -> String {
        self.caches.state(kind).map_or_else(|| "not watched".into(), |state| describe(&state))
    }

    /// What of a kind this operator looks at.
    pub(crate) fn scope(&self, kind: &Kind) -> WatchScope {
        match &self.namespace {
            Some(namespace) if kind.scope() == crate::kind::Scope::Namespaced => {
                WatchScope::namespace(namespace)
            }
            _ => WatchScope::all(),
        }
    }

    /// Notes what a parent depends on now. Watches that nobody needs any more end.
    pub(crate) fn set_dependencies(&self, parent: &ParentId, questions: BTreeSet<Related>) {
        let mut dependencies = lock(&self.dependencies);
        let unused = dependencies.set(parent, questions);
        if unused.is_empty() {
            return;
        }
        // Both are held, so that nobody comes to depend on a kind between being counted out and its watch's end.
        let mut related = lock(&self.related);
        let ended: Vec<_> = unused.iter().filter_map(|kind| related.remove(kind)).collect();
        drop(related);
        drop(dependencies);
        drop(ended);
    }
}

/// A watch's state, as people read it.
pub(crate) fn describe(state: &KindState) -> String {
    match state {
        KindState::Stale { error, .. } => format!("stale: {error}"),
        KindState::Forbidden { verb, kind, namespace, message } => {
            let place = namespace
                .as_ref()
                .map_or_else(|| "at cluster scope".into(), |name| format!("in namespace {name}"));
            format!("the operator may not {verb} {} {place}: {message}", kind.plural())
        }
        KindState::Missing => "there is no such kind; waiting for its definition".into(),
        other => other.name().to_lowercase(),
    }
}
