//! An operator: controllers that share one queue, one set of caches, one identity in the cluster.

mod builder;
mod run;
mod step;
#[cfg(test)]
mod tests;
mod unconnected;

use std::net::SocketAddr;
use std::sync::Arc;

pub use builder::{BuildError, OperatorBuilder};
pub use run::RunError;
pub use step::{StepError, Stepped, Stepper};

use crate::cache::PruneError;
use crate::controller::Controller;
use crate::kind::{Key, Kind};
use crate::plan::Plan;
use crate::queue::Priority;
use crate::rbac::Rbac;
use crate::record::Recording;
use crate::runner::{ControllerState, ParentReport, Runner, Trigger, lock};

/// A running or yet to be run operator. Cheap to clone; clones are handles to the same one.
#[derive(Clone)]
pub struct Operator {
    pub(crate) runner: Arc<Runner>,
    pub(crate) settings: Arc<builder::Settings>,
}

/// Why [`Operator::plan`] has no plan to give.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No controller has parents of this kind.
    #[error("no controller of this operator has {0} as its parent kind")]
    NoController(Kind),
    /// The controller's caches are not filled.
    #[error("the controller of {kind} is not ready: {state}")]
    NotReady {
        /// The controller's parent kind.
        kind: Kind,
        /// What is missing.
        state: String,
    },
    /// There is no such parent.
    #[error("there is no {kind} {key}")]
    NoParent {
        /// Its kind.
        kind: Kind,
        /// Its namespace and name.
        key: Key,
    },
    /// The handler failed.
    #[error("the handler failed: {0}")]
    Handler(String),
}

impl Operator {
    /// An operator of this name, which is its field manager, the beginning of its finalizer and the name of its lease.
    pub fn builder(name: &str, client: kube::Client) -> OperatorBuilder {
        OperatorBuilder::new(name, client)
    }

    /// An operator that reaches no cluster: enough to ask what it [needs](Self::rbac). Must be called within a tokio
    /// runtime.
    pub fn unconnected(name: &str) -> OperatorBuilder {
        OperatorBuilder::new(name, unconnected::client())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.runner.name
    }

    /// Adds a controller. On a running operator it starts at once; one with the same parent kind is replaced.
    ///
    /// # Errors
    /// If a field not to be kept in memory is not a path. On an operator that does not run yet, [`run`](Self::run) tells that.
    pub fn add(&self, controller: Controller) -> Result<(), PruneError> {
        let kind = controller.parent().clone();
        if !self.settings.is_running() {
            let mut pending = lock(&self.settings.pending);
            pending.retain(|known| *known.parent() != kind);
            pending.push(controller);
            return Ok(());
        }
        self.runner.start_controller(controller, None)
    }

    /// Removes the controller of a parent kind, and tells whether there was one. Syncs that run finish; parents and children
    /// stay as they are, and watches that nobody else needs end.
    pub fn remove(&self, parent: &Kind) -> bool {
        let mut pending = lock(&self.settings.pending);
        let before = pending.len();
        pending.retain(|known| known.parent() != parent);
        let was_pending = pending.len() < before;
        drop(pending);
        self.runner.end_controller(parent) || was_pending
    }

    /// How each controller is doing.
    pub fn controllers(&self) -> Vec<ControllerState> {
        self.runner.controller_states()
    }

    /// Has a parent synced now, whatever its backoff.
    pub fn reconcile_now(&self, kind: &Kind, key: &Key) {
        self.runner.push(&(kind.clone(), key.clone()), Priority::Now, Trigger::Asked);
    }

    /// What a sync of this parent would do now. Nothing is written; but the handler is called, or the finalizer if the
    /// parent waits for it, and what they do themselves outside of the cluster is done.
    ///
    /// # Errors
    /// If there is no such parent, its caches are not filled, or its handler fails.
    pub async fn plan(&self, kind: &Kind, key: &Key) -> Result<Plan, PlanError> {
        self.runner.inspect(kind, key).await?.0
    }

    /// All that a decision about this parent rests on, to be [saved](Recording::save) and [replayed](Recording::replay)
    /// elsewhere. Calls the handler to learn what it asks for; should it fail, that can be replayed too.
    ///
    /// # Errors
    /// If there is no such parent, or its caches are not filled.
    pub async fn record(&self, kind: &Kind, key: &Key) -> Result<Recording, PlanError> {
        Ok(self.runner.inspect(kind, key).await?.1)
    }

    /// All that the last decision about this parent rested on that failed: its handler, a write or an effect did. To be
    /// [replayed](Recording::replay) as [`record`](Self::record) is, also when all is well again. The last failures of 100 parents are kept.
    ///
    /// `None` if there was none, it is no longer kept, or the parent is gone.
    pub fn record_failed(&self, kind: &Kind, key: &Key) -> Option<Recording> {
        self.runner.record_failed(&(kind.clone(), key.clone()))
    }

    /// What was done for this parent lately and why, how it stands in the queue, and what it waits for.
    pub fn explain(&self, kind: &Kind, key: &Key) -> Option<ParentReport> {
        self.runner.report(kind, key)
    }

    /// Where health, metrics and debug pages are served, while they are.
    pub fn address(&self) -> Option<SocketAddr> {
        *lock(&self.settings.served)
    }

    /// The metrics in Prometheus' text format.
    pub fn metrics(&self) -> String {
        // Formatting into a string fails only if a metric's own formatting does.
        self.runner.metrics.render().unwrap_or_default()
    }

    /// How the caches of all watched kinds are doing.
    pub fn caches(&self) -> Vec<crate::cache::KindReport> {
        self.runner.caches.reports()
    }

    /// The least permissions that it needs, as its controllers are now.
    pub fn rbac(&self) -> Rbac {
        let mut rbac = self.settings.rbac.clone();
        for controller in lock(&self.settings.pending).iter() {
            rbac.allow_controller(controller);
        }
        for active in self.runner.all_active() {
            rbac.allow_controller(&active.controller);
        }
        rbac
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("name", &self.runner.name).finish_non_exhaustive()
    }
}
