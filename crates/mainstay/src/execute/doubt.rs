//! What is read before a step is taken that may not be needed. Writes nothing.

use std::sync::Arc;

use serde_json::Value;

use super::body::uid_of;
use super::{Api, Failure, Heard, applied, parse, tell};
use crate::cache::{Caches, Object};
use crate::diff::{APPLIED, Change, Learned, Ownership, Rules, compare};
use crate::kind::Kind;
use crate::plan::{Memory, Reason, Step};

/// Why an object differs from what is desired, although that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The server rewrote what it was sent. The step is not needed.
    Rewritten,
    /// Somebody changed the object, or the doubt does not apply to the step.
    Needed,
    /// The server rewrote it, and somebody has changed it since the decision.
    Outdated,
}

/// Asks the server about the object of a step.
pub(crate) struct Reader<'a> {
    pub(crate) api: &'a Api,
    pub(crate) caches: &'a Caches,
    /// Told of every change that a read brought: the watch will not tell of it again, and somebody else made it.
    pub(crate) found: &'a Heard<'a>,
}

impl Reader<'_> {
    /// Asks why the object of a step differs. If it is the server's doing, `memory` has learned it, and the next decision finds no
    /// difference.
    ///
    /// The doubt is there if the desired state is the one that was applied, and yet the object differs. Either somebody changed
    /// it, or this is what the server made of it. Who owns the fields tells which.
    pub(crate) async fn resolve(
        &self,
        step: &Step,
        rules: &Rules,
        memory: &mut Memory,
    ) -> Result<Doubt, Failure> {
        let differs = matches!(step.reason, Reason::Drifted | Reason::MustBeRecreated);
        if !differs || !self.was_applied(step) {
            return Ok(Doubt::Needed);
        }
        let answer = self.api.get(&step.object.kind, &step.object.key).await?;
        let live: Value = parse(&answer);
        self.take_in(&step.object.kind, &answer);
        let owned = Ownership::of(&live, &self.api.manager, "");
        let are_ours = |changes: &[Change]| changes.iter().all(|change| owned.owns_change(change, rules));
        if live["metadata"]["uid"] != uid_of(&step.body) || !are_ours(&step.body.changes) {
            return Ok(Doubt::Needed);
        }
        // The cache may lag behind the answer, in which there can be changes that the decision did not see.
        if !are_ours(&compare(&step.body.value, &live, rules, &Learned::nothing())) {
            return Ok(Doubt::Outdated);
        }
        memory.learn(&live, &step.body.value, rules);
        memory.verify_written(&live, &step.body.value, rules);
        Ok(Doubt::Rewritten)
    }

    /// Whether the desired state is the one that was applied last.
    fn was_applied(&self, step: &Step) -> bool {
        let wanted = applied(&step.body);
        wanted.is_some() && self.known(step).and_then(|known| known.annotation(APPLIED)).as_deref() == wanted
    }

    /// The object that a step was decided on, if the cache still has it.
    pub(super) fn known(&self, step: &Step) -> Option<Arc<Object>> {
        let known = self.caches.get(&step.object.kind, &step.object.key)?;
        (uid_of(&step.body).is_empty() || known.uid() == uid_of(&step.body)).then_some(known)
    }

    pub(super) fn take_in(&self, kind: &Kind, answer: &[u8]) {
        tell(self.found, kind, self.caches.own_write(kind, answer));
    }
}
