//! Between plan and execution: leaves alone what is written again and again.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Runner, lock};
use crate::cache::Object;
use crate::diff::FieldPath;
use crate::handler::{Answers, SyncRequest};
use crate::kind::ObjectRef;
use crate::plan::{Action, Plan, Step, Waiting};
use crate::stability::{Fingerprint, Pass, Subject, Write, Wrote};

/// What the parent asks for, as far as a handler may go by it.
pub(super) fn asked(parent: &Object) -> Fingerprint {
    // Kinds without a generation are asked by all that is neither metadata nor status.
    let content = (parent.generation() == 0).then(|| {
        let mut value = parent.value();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| name != "metadata" && name != "status");
        }
        value.to_string()
    });
    let metadata = (parent.labels(), parent.annotations(), parent.is_deleting());
    Fingerprint::of(&(parent.generation(), metadata, content))
}

impl Runner {
    /// Takes steps out of a plan that would go on with a loop. Tells when the first of them may be taken again.
    pub(super) fn hold_loops(&self, plan: &mut Plan, parent: &Object, now: Instant) -> Option<Instant> {
        let loops = lock(&self.loops);
        if plan.steps.is_empty() || loops.is_empty() {
            return None;
        }
        let asked = asked(parent);
        let mut until: Option<Instant> = None;
        let mut waiting: Vec<Waiting> = Vec::new();
        plan.steps.retain(|step| {
            let subjects = [Subject::Object(step.object.clone()), Subject::Names(step.object.kind.clone())];
            let of_names = matches!(step.action, Action::Create | Action::Delete);
            let mut subjects = subjects.iter().take(if of_names { 2 } else { 1 });
            let held = subjects.find_map(|subject| loops.held(&plan.parent, asked, subject, now));
            let Some(spot) = held else { return true };
            until = Some(until.map_or(spot.until, |known| known.min(spot.until)));
            let told = Waiting::Loop { what: spot.to_string() };
            if !waiting.contains(&told) {
                waiting.push(told);
            }
            false
        });
        plan.waiting.append(&mut waiting);
        until
    }

    /// Whether the parent's status is left alone for now.
    pub(super) fn holds_status(&self, parent: &Object, now: Instant) -> bool {
        let subject = Subject::Object(parent.reference());
        lock(&self.loops).held(&parent.reference(), asked(parent), &subject, now).is_some()
    }

    /// Takes in what a sync wrote. Tells what it goes on and on with.
    pub(super) fn observe(
        &self,
        plan: &Plan,
        done: &[&Step],
        request: &SyncRequest,
        asked_for: &Answers,
        now: Instant,
    ) -> Vec<Waiting> {
        let mut loops = lock(&self.loops);
        if done.is_empty() && loops.is_empty() {
            return Vec::new();
        }
        let writes: Vec<_> = done.iter().flat_map(|step| writes_of(step)).collect();
        let seen = if writes.is_empty() { Vec::new() } else { seen(request, asked_for) };
        let pass = Pass { asked: asked(&request.snapshot().parent), seen: &seen, writes: &writes };
        match loops.observe(&plan.parent, &pass, now) {
            crate::stability::Stability::Loop(spots) => {
                spots.iter().map(|spot| Waiting::Loop { what: spot.to_string() }).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn writes_of(step: &Step) -> Vec<Write<FieldPath>> {
    let write = |what| Write { object: step.object.clone(), what };
    match step.action {
        Action::Create => vec![write(Wrote::Created)],
        Action::Delete if step.body.changes.is_empty() => vec![write(Wrote::Deleted)],
        _ => step
            .body
            .changes
            .iter()
            .map(|change| {
                let to = change.to.as_ref().map_or(Fingerprint::NONE, |to| Fingerprint::of(&to.to_string()));
                write(Wrote::Field { path: change.path.clone(), to })
            })
            .collect(),
    }
}

/// What others have made of the objects that the decision saw.
fn seen(request: &SyncRequest, asked_for: &Answers) -> Vec<(ObjectRef, Fingerprint)> {
    let children = request.snapshot().children.iter().flat_map(|(_, objects)| objects);
    let status = |object: &Arc<Object>| {
        object.field("/status").map_or(Fingerprint::NONE, |status| Fingerprint::of(&status.to_string()))
    };
    let children = children.map(|object| (object.reference(), status(object)));
    let related = asked_for.values().flatten().flatten();
    children
        .chain(related.map(|object| (object.reference(), Fingerprint::of(object.resource_version()))))
        .collect()
}
