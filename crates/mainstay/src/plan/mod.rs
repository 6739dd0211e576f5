//! What is to be done, as data. Pure: no clock, no network.
//!
//! ```text
//! Snapshot + SyncResponse ─▶ answer (is it one we can act on?) ─▶ children, rolling ─▶ Plan { steps, waiting }
//!                                                                 status, finalizer ─┘
//! ```
//!
//! The same function serves syncing, [`Operator::plan`](crate::Operator::plan) (what would happen), the kept history
//! (what happened and why) and the replay of a recording. Every [`Step`] carries its reason, down to the field; what does
//! not move is a [`Waiting`].

mod answer;
mod children;
mod decide;
mod memory;
mod parent;
mod revisions;
mod rolling;
mod status;
mod step;
mod waiting;

#[cfg(test)]
mod tests;

pub(crate) use decide::{Situation, decide_finalized, decide_response};
pub(crate) use memory::{Memory, Refusal};
pub(crate) use revisions::revision_kind;
pub(crate) use status::{StatusOf, plan_status};
pub use step::{Action, Reason, Step};
pub(crate) use step::{Body, Precondition};
pub use waiting::Waiting;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::kind::ObjectRef;

/// On a parent, with the value `true`: nothing is written for it while it is there.
pub const PAUSED: &str = "mainstay.dev/paused";
/// On a parent: a new value has it synced at once, whatever its backoff.
pub const RECONCILE_NOW: &str = "mainstay.dev/reconcile-now";
/// The type of the condition by which the framework itself speaks on a parent. It is there, and false, while something is
/// wrong.
pub const RECONCILED: &str = "Reconciled";

/// What a sync does, in order, and what it waits for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// For whom.
    #[serde(serialize_with = "step::as_text")]
    pub parent: ObjectRef,
    /// The parent's generation that this is for.
    pub generation: i64,
    /// What is written, in this order.
    pub steps: Vec<Step>,
    /// What is done outside of the cluster, once nothing is left to write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    /// Why what is not as it should be is left so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// When to look again, even if nothing changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<Duration>,
}

impl Plan {
    pub(crate) fn empty(parent: ObjectRef, generation: i64) -> Self {
        Self {
            parent,
            generation,
            steps: Vec::new(),
            effects: Vec::new(),
            waiting: Vec::new(),
            requeue_after: None,
        }
    }

    pub(crate) fn only_waiting(parent: ObjectRef, generation: i64, waiting: Waiting) -> Self {
        Self { waiting: vec![waiting], ..Self::empty(parent, generation) }
    }

    /// Whether everything is as it should be: nothing to write, nothing to do elsewhere, nothing to wait for.
    pub fn is_settled(&self) -> bool {
        self.steps.is_empty() && self.effects.is_empty() && self.waiting.is_empty()
    }

    /// Whether the cluster is as the answer has it, so that what rests on that can be done elsewhere.
    pub(crate) fn allows_effects(&self) -> bool {
        self.steps.is_empty() && !self.waiting.iter().any(Waiting::is_problem)
    }

    /// Whether it writes nothing.
    pub fn writes_nothing(&self) -> bool {
        self.steps.is_empty()
    }
}

/// As people read it: one line per step, the changed fields below.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (generation {})", self.parent, self.generation)?;
        if self.is_settled() {
            return f.write_str(": nothing to do");
        }
        for step in &self.steps {
            write!(f, "\n  {step}")?;
        }
        for effect in &self.effects {
            write!(f, "\n  outside: {effect}")?;
        }
        for waiting in &self.waiting {
            write!(f, "\n  waiting: {waiting}")?;
        }
        Ok(())
    }
}
