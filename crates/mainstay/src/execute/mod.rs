//! The only place with side effects: does one step of a plan and puts the answer into the cache, so that the next
//! decision sees it.

mod api;
mod body;
mod doubt;
mod narrow;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

pub(crate) use api::{Api, Call, Failure, chain};

pub(crate) use doubt::{Doubt, Reader};

use body::{read_values, render_body};

use crate::cache::{Caches, Change, Object, OwnWrite, Unreadable};
use crate::diff::{APPLIED, Learned, Rules};
use crate::kind::{Key, Kind};
use crate::plan::{Action, Body, Memory, Precondition, Reason, Refusal, Step};
use crate::replicas::Turn;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done.
    Done,
    /// It was not needed: what differed is the server's own rewriting.
    NotNeeded,
    /// The world is not as the decision took it to be. The cache has been put right; decide again.
    Outdated,
    /// It failed.
    Failed(Failure),
}

/// Somebody who learns of changes.
pub(crate) type Heard<'a> = dyn Fn(&Kind, &Change) + Sync + 'a;

/// What a look before a step came to.
enum Checked<'a> {
    /// The step may be taken, in this form.
    Go(Cow<'a, Step>),
    /// It is not taken.
    Ended(Outcome),
}

/// What steps of one parent need.
pub(crate) struct Executor<'a> {
    pub(crate) api: &'a Api,
    pub(crate) caches: &'a Caches,
    pub(crate) turn: &'a Turn,
    pub(crate) parent: &'a Object,
    /// Told of every change that a write brought.
    pub(crate) wrote: &'a Heard<'a>,
    /// Told of every change that a read brought: the watch will not tell of it again, and somebody else made it.
    pub(crate) found: &'a Heard<'a>,
}

impl Executor<'_> {
    /// Does a step. What it teaches is put into `memory`.
    pub(crate) async fn execute_step(&self, step: &Step, rules: &Rules, memory: &mut Memory) -> Outcome {
        let step = match self.check(step, rules, memory).await {
            Ok(Checked::Go(step)) => step,
            Ok(Checked::Ended(outcome)) => return outcome,
            Err(failure) => return self.after_failure(step, failure, memory).await,
        };
        let step = &*step;
        let write = self.caches.begin_write(&step.object.kind, &step.object.key);
        match self.api.send(self.call(step)).await {
            Ok(answer) => self.after_success(step, write, &answer, rules, memory),
            Err(failure) => self.after_failure(step, failure, memory).await,
        }
    }

    /// What must be read before a step may be taken.
    async fn check<'s>(
        &self,
        step: &'s Step,
        rules: &Rules,
        memory: &mut Memory,
    ) -> Result<Checked<'s>, Failure> {
        let go = Checked::Go(Cow::Borrowed(step));
        match step.reason {
            Reason::Drifted | Reason::MustBeRecreated => {
                Ok(match self.reader().resolve(step, rules, memory).await? {
                    Doubt::Rewritten => Checked::Ended(Outcome::NotNeeded),
                    Doubt::Outdated => Checked::Ended(Outcome::Outdated),
                    Doubt::Needed => go,
                })
            }
            // The cache may not know yet that the parent is going, or is another one of the same name.
            Reason::Adopted | Reason::ReferenceLost => {
                let answer = self.api.get(self.parent.kind(), self.parent.key()).await?;
                let live: Value = parse(&answer);
                let metadata = &live["metadata"];
                if metadata["uid"] == self.parent.uid() && metadata.get("deletionTimestamp").is_none() {
                    return Ok(go);
                }
                self.take_in(self.parent.kind(), &answer);
                Ok(Checked::Ended(Outcome::Outdated))
            }
            _ => match &step.body.only_condition {
                Some(type_) => self.narrow(step, type_, rules).await,
                None => Ok(go),
            },
        }
    }

    /// The step with a status that names only what this operator applied. Who owns what is not in the cache.
    async fn narrow<'s>(&self, step: &'s Step, type_: &str, rules: &Rules) -> Result<Checked<'s>, Failure> {
        let answer = self.api.get(&step.object.kind, &step.object.key).await?;
        let live = parse(&answer);
        let Precondition::Unchanged { uid, resource_version } = &step.body.precondition else {
            return Ok(Checked::Go(Cow::Borrowed(step)));
        };
        let metadata = &live["metadata"];
        if metadata["uid"] != **uid || metadata["resourceVersion"] != **resource_version {
            self.take_in(&step.object.kind, &answer);
            return Ok(Checked::Ended(Outcome::Outdated));
        }
        let mut step = step.clone();
        let status = narrow::narrow(&step.body.value["status"], &live, &self.api.manager, rules, type_);
        if let Value::Object(body) = &mut step.body.value {
            // A status without fields is not named: see the plan.
            if status.as_object().is_some_and(|fields| !fields.is_empty()) {
                body.insert("status".into(), status);
            } else {
                body.remove("status");
            }
        }
        Ok(Checked::Go(Cow::Owned(step)))
    }

    fn reader(&self) -> Reader<'_> {
        Reader { api: self.api, caches: self.caches, found: self.found }
    }

    fn call<'a>(&'a self, step: &'a Step) -> Call<'a> {
        let kind = &step.object.kind;
        let path = kind.object_path(&step.object.key);
        let manager = &self.api.manager;
        let (verb, method, path, content_type) = match step.action {
            Action::Create | Action::Apply => {
                ("apply", Method::PATCH, format!("{path}?fieldManager={manager}&force=true"), APPLY)
            }
            Action::WriteStatus => {
                ("apply", Method::PATCH, format!("{path}/status?fieldManager={manager}&force=true"), APPLY)
            }
            Action::Replace => ("update", Method::PUT, format!("{path}?fieldManager={manager}"), JSON),
            Action::Delete | Action::End => ("delete", Method::DELETE, path, JSON),
            Action::Patch
            | Action::Adopt
            | Action::Release
            | Action::AddFinalizer
            | Action::RemoveFinalizer => {
                ("patch", Method::PATCH, format!("{path}?fieldManager={manager}"), MERGE)
            }
        };
        let body = render_body(step.action, &step.body);
        Call { verb, method, kind, path, content_type: Some(content_type), body, turn: Some(self.turn) }
    }

    fn after_success(
        &self,
        step: &Step,
        write: OwnWrite,
        answer: &Bytes,
        rules: &Rules,
        memory: &mut Memory,
    ) -> Outcome {
        let kind = &step.object.kind;
        if matches!(step.action, Action::Delete | Action::End) {
            if let Some(object) = self.known(step) {
                tell(self.wrote, kind, write.deleted(&object, answer));
            }
            return Outcome::Done;
        }
        tell(self.wrote, kind, write.written(answer));
        // What is remembered of a parent is about its status.
        let teaches =
            matches!(step.action, Action::Create | Action::Apply | Action::Replace | Action::WriteStatus);
        if teaches {
            let live = read_values(answer);
            memory.learn(&live, &step.body.value, rules);
            if step.action == Action::WriteStatus {
                memory.settle_status(&step.body.value["status"], &live["status"]);
            } else {
                memory.verify_written(&live, &step.body.value, rules);
            }
        }
        memory.refused.remove(&step.object);
        Outcome::Done
    }

    async fn after_failure(&self, step: &Step, failure: Failure, memory: &mut Memory) -> Outcome {
        match failure {
            Failure::NotFound if step.action == Action::WriteStatus => match self.refresh(step).await {
                Outcome::Outdated if self.known(step).is_some() => Outcome::Failed(Failure::no_status()),
                outcome => outcome,
            },
            Failure::Conflict | Failure::NotFound => self.refresh(step).await,
            Failure::Refused { message, immutable } => {
                let hash = applied(&step.body).unwrap_or_default().to_owned();
                let refusal = Refusal { hash, immutable };
                memory.refused.insert(step.object.clone(), refusal);
                Outcome::Failed(Failure::Refused { message, immutable })
            }
            other => Outcome::Failed(other),
        }
    }

    fn known(&self, step: &Step) -> Option<Arc<Object>> {
        self.reader().known(step)
    }

    fn take_in(&self, kind: &Kind, answer: &[u8]) {
        self.reader().take_in(kind, answer);
    }

    /// Reads the object of a step from the server into the cache.
    async fn refresh(&self, step: &Step) -> Outcome {
        let known = self.known(step);
        match self.refresh_object(&step.object.kind, &step.object.key, known.as_deref()).await {
            Ok(()) => Outcome::Outdated,
            Err(failure) => Outcome::Failed(failure),
        }
    }

    /// Reads the parent from the server into the cache.
    pub(crate) async fn refresh_parent(&self) -> Result<(), Failure> {
        let parent = self.parent;
        self.refresh_object(parent.kind(), parent.key(), Some(parent)).await
    }

    async fn refresh_object(&self, kind: &Kind, key: &Key, known: Option<&Object>) -> Result<(), Failure> {
        match self.api.get(kind, key).await {
            Ok(answer) => self.take_in(kind, &answer),
            Err(Failure::NotFound) => {
                if let Some(known) = known {
                    tell(self.found, kind, Ok(self.caches.begin_write(kind, key).gone(known)));
                }
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

impl Memory {
    /// Remembers how the server rewrote what was sent.
    fn learn(&mut self, live: &Value, sent: &Value, rules: &Rules) {
        let Some(uid) = live["metadata"]["uid"].as_str() else { return };
        let learned = Learned::from_response(sent, live, rules);
        if learned.is_empty() {
            self.learned.remove(uid);
        } else {
            self.learned.insert(uid.to_owned(), learned);
        }
    }

    /// What was just written need not be compared again by the sync that follows: what the server rewrote is learned.
    fn verify_written(&mut self, live: &Value, sent: &Value, rules: &Rules) {
        let metadata = &live["metadata"];
        if let (Some(uid), Some(version)) = (metadata["uid"].as_str(), metadata["resourceVersion"].as_str()) {
            let learned = self.learned(uid);
            if learned.is_empty() || crate::diff::compare(sent, live, rules, learned).is_empty() {
                self.verify_state(uid, version);
            }
        }
    }

    fn settle_status(&mut self, sent: &Value, live: &Value) {
        let settled = (crate::diff::content_hash(sent), crate::diff::content_hash(live));
        self.status_settled = (settled.0 != settled.1).then_some(settled);
    }
}

fn tell(whom: &Heard<'_>, kind: &Kind, change: Result<Change, Unreadable>) {
    match change {
        Ok(change) => whom(kind, &change),
        // The watch will bring it in a form that can be read, or say the same.
        Err(error) => tracing::warn!(%kind, %error, "the server's answer cannot be read"),
    }
}

fn parse(answer: &Bytes) -> Value {
    serde_json::from_slice(answer).unwrap_or_default()
}

/// The hash of the desired state that is sent.
fn applied(body: &Body) -> Option<&str> {
    body.value.get("metadata")?.get("annotations")?.get(APPLIED)?.as_str()
}
