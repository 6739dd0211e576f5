//! Controllers that parents have run: added, replaced and removed as their answers say.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select_all;
use serde_json::Value;
use tokio::task::AbortHandle;

use super::{Active, ParentId, Runner, Trigger, describe, lock};
use crate::cache::{KindState, PruneError, Selector};
use crate::controller::Controller;
use crate::handler::{Registered, RegisteredState, Registration};
use crate::kind::Kind;
use crate::queue::Priority;

/// A watch that has had no server for so long is told of. Shorter interruptions are everyday business.
const STALE_AFTER: Duration = Duration::from_mins(1);

/// By parent and kind: what it has run.
pub(crate) type Registrations = BTreeMap<ParentId, BTreeMap<Kind, Standing>>;

/// A registration, and what came of it.
pub(crate) struct Standing {
    version: String,
    count_by: Option<String>,
    /// Why there is no controller.
    refused: Option<RegisteredState>,
    /// Tells the parent when the controller's state changes.
    herald: Option<AbortHandle>,
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some(herald) = &self.herald {
            herald.abort();
        }
    }
}

impl Runner {
    /// Has a controller at work, in the place of one with the same parent kind. `registrar` is the uid of the parent that asks for it.
    pub(crate) fn start_controller(
        self: &Arc<Self>,
        controller: Controller,
        registrar: Option<String>,
    ) -> Result<(), PruneError> {
        let kind = controller.parent().clone();
        // Nobody looks for the controller before it is there: its guide may be quick.
        let mut controllers = self.controllers.write().unwrap_or_else(PoisonError::into_inner);
        // What failed under the old handler starts afresh under the new one.
        lock(&self.queue).retain(&kind, |_| false);
        // The new watches begin before the old ones end: what both want is not listed again.
        let active = Active::start(controller, registrar, self, true)?;
        let old = controllers.insert(kind, active);
        drop(controllers);
        if let Some(old) = old {
            old.stop();
        }
        Ok(())
    }

    /// Ends a controller, and tells whether there was one.
    pub(crate) fn end_controller(&self, parent: &Kind) -> bool {
        let removed = self.controllers.write().unwrap_or_else(PoisonError::into_inner).remove(parent);
        let Some(removed) = removed else { return false };
        removed.stop();
        lock(&self.queue).remove_lane(parent);
        let known: Vec<_> = lock(&self.parents).keys().filter(|(kind, _)| kind == parent).cloned().collect();
        for id in known {
            self.forget(&id);
        }
        true
    }

    /// Has run what the parent's answer names, and no longer what it does not.
    pub(crate) fn register(self: &Arc<Self>, parent: &ParentId, wanted: &[Registration]) {
        let mut known = lock(&self.registrations).remove(parent).unwrap_or_default();
        if known.is_empty() && wanted.is_empty() {
            return;
        }
        let is_wanted = |kind: &Kind| wanted.iter().any(|wanted| wanted.controller.parent() == kind);
        let dropped: Vec<_> = known.keys().filter(|kind| !is_wanted(kind)).cloned().collect();
        for kind in dropped {
            self.unregister(&kind, known.remove(&kind));
        }
        for registration in wanted {
            let kind = registration.controller.parent();
            let ours = known.get(kind).filter(|standing| standing.refused.is_none());
            if ours.is_some_and(|standing| standing.version == registration.version) {
                continue;
            }
            let standing = self.take_up(parent, registration, ours.is_some());
            known.insert(kind.clone(), standing);
        }
        if !known.is_empty() {
            lock(&self.registrations).insert(parent.clone(), known);
        }
        // The parent may have gone meanwhile; then it has nothing run.
        if self.caches.get(&parent.0, &parent.1).is_none() {
            self.unregister_all(parent);
        }
    }

    /// A parent is gone: so is what it had run.
    pub(crate) fn unregister_all(&self, parent: &ParentId) {
        let known = lock(&self.registrations).remove(parent).unwrap_or_default();
        for (kind, standing) in known {
            self.unregister(&kind, Some(standing));
        }
    }

    /// Parents that another replica looks after have nothing run here.
    pub(crate) fn unregister_lost(&self, is_lost: impl Fn(&str) -> bool) {
        let registrars: Vec<_> = lock(&self.registrations).keys().cloned().collect();
        for id in registrars {
            let parent = self.caches.get(&id.0, &id.1);
            if parent.is_some_and(|parent| is_lost(parent.uid())) {
                self.unregister_all(&id);
            }
        }
    }

    fn unregister(&self, kind: &Kind, standing: Option<Standing>) {
        if standing.is_some_and(|standing| standing.refused.is_none()) {
            tracing::info!(%kind, "its controller is no longer asked for");
            self.end_controller(kind);
        }
    }

    fn take_up(self: &Arc<Self>, parent: &ParentId, registration: &Registration, replaces: bool) -> Standing {
        let kind = registration.controller.parent();
        let (version, count_by) = (registration.version.clone(), registration.count_by.clone());
        let mut standing = Standing { version, count_by, refused: None, herald: None };
        if !replaces && self.active(kind).is_some() {
            standing.refused = Some(RegisteredState::Taken);
            return standing;
        }
        let registrar = self.caches.get(&parent.0, &parent.1).map(|parent| parent.uid().to_owned());
        match self.start_controller(registration.controller.clone(), registrar) {
            Ok(()) => {
                tracing::info!(%kind, by = %parent.1, "its controller is asked for");
                let (runner, parent) = (Arc::downgrade(self), parent.clone());
                let Some(active) = self.active(kind) else { return standing };
                let herald = async move {
                    let mut told = RegisteredState::Starting;
                    loop {
                        // Listens before it looks: what happens in between is not missed.
                        let changed = changed(&active);
                        let state = state_of(&active);
                        if state != told {
                            told = state;
                            let Some(runner) = runner.upgrade() else { return };
                            let kind = active.controller.parent().clone();
                            runner.push(&parent, Priority::Normal, Trigger::Registered(kind));
                        }
                        changed.await;
                    }
                };
                standing.herald = Some(tokio::spawn(herald).abort_handle());
            }
            Err(error) => {
                standing.refused = Some(RegisteredState::Impossible(crate::execute::chain(&error)));
            }
        }
        standing
    }

    /// How the controllers are doing that a parent has run.
    pub(crate) fn registered(&self, parent: &ParentId) -> BTreeMap<Kind, Registered> {
        let registrations = lock(&self.registrations);
        let Some(known) = registrations.get(parent) else { return BTreeMap::new() };
        let registered = known.iter().map(|(kind, standing)| (kind.clone(), self.report_on(kind, standing)));
        registered.collect()
    }

    fn report_on(&self, kind: &Kind, standing: &Standing) -> Registered {
        let state = match &standing.refused {
            Some(refused) => refused.clone(),
            None => self.active(kind).map_or(RegisteredState::Starting, |active| state_of(&active)),
        };
        if matches!(state, RegisteredState::Taken | RegisteredState::Missing(_)) {
            return Registered { state, parents: 0, counts: BTreeMap::new() };
        }
        let parents = self.caches.list(kind, self.namespace.as_deref(), &Selector::everything());
        let mut counts = BTreeMap::new();
        if let Some(pointer) = &standing.count_by {
            for found in parents.iter().filter_map(|parent| parent.field(pointer)) {
                if let Value::String(text) = found {
                    *counts.entry(text).or_default() += 1;
                }
            }
        }
        Registered { state, parents: parents.len(), counts }
    }
}

/// How a controller is doing.
fn state_of(active: &Active) -> RegisteredState {
    for watch in active.watches() {
        match watch.state() {
            KindState::Missing => return RegisteredState::Missing(watch.kind().clone()),
            state @ KindState::Forbidden { .. } => return RegisteredState::Forbidden(describe(&state)),
            KindState::Stale { since, error } if since.elapsed() > STALE_AFTER => {
                return RegisteredState::Stale(error);
            }
            _ => {}
        }
    }
    if active.is_ready() { RegisteredState::Ready } else { RegisteredState::Starting }
}

/// Ends when something about a controller may be different from when this was called.
fn changed(active: &Active) -> impl Future<Output = ()> + Send {
    let states = active.watches().iter().map(|watch| {
        let state = watch.state();
        async move {
            watch.state_after(&state).await;
        }
        .boxed()
    });
    let mut open = active.openness();
    let opened_or_closed = async move {
        // The sender lives as long as the controller.
        let _ = open.changed().await;
    };
    select_all(states.chain([opened_or_closed.boxed()])).map(drop)
}
