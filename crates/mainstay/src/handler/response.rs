//! What a handler answers.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Effect, Error, Registration};
use crate::events::Event;
use crate::kind::ObjectRef;

/// The desired state of one parent: its status and all of its children.
///
/// Children are desired state, not operations. A child that exists and is not in the answer is deleted; only the fields
/// that a child names are compared and set; one that names nothing but itself (`apiVersion`, `kind`, name, namespace) is kept
/// as it is.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct SyncResponse {
    pub(crate) status: Value,
    pub(crate) children: Vec<Value>,
    pub(crate) requeue_after: Option<Duration>,
    pub(crate) status_first: bool,
    pub(crate) events: Vec<Event>,
    /// Fields that the parent itself shall have. Null: none.
    pub(crate) parent: Value,
    /// Fields that the parent shall not have, as JSON pointers.
    pub(crate) cleared: Vec<String>,
    /// Annotations that the parent shall have, written with its status.
    pub(crate) annotations: Map<String, Value>,
    pub(crate) over: Option<Over>,
    pub(crate) released: Vec<ObjectRef>,
    /// Finalizers that shall be taken off.
    pub(crate) let_go: Vec<(ObjectRef, String)>,
    pub(crate) controllers: Vec<Registration>,
    pub(crate) effects: Vec<Effect>,
}

/// How a parent that is over goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// As when a user deletes it.
    Deleted,
    /// At once.
    Ended,
}

impl SyncResponse {
    /// No status and no children yet. A status of null means: write none. It is the only one that a parent without the
    /// status subresource can have.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer with a status; `observedGeneration` is added to it by itself.
    ///
    /// # Errors
    /// If `status` cannot be serialised.
    pub fn from_status(status: impl Serialize) -> Result<Self, Error> {
        let mut response = Self::new();
        response.set_status(status)?;
        Ok(response)
    }

    /// Sets the status.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub fn set_status(&mut self, status: impl Serialize) -> Result<&mut Self, Error> {
        self.status = serde_json::to_value(status).map_err(Error::terminal)?;
        Ok(self)
    }

    /// Adds a child: JSON, a type of `k8s-openapi`, or anything else that serialises to an object with `apiVersion`,
    /// `kind` and a name. Without a namespace it is in its parent's.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub fn add_child(&mut self, child: impl Serialize) -> Result<&mut Self, Error> {
        self.children.push(serde_json::to_value(child).map_err(Error::terminal)?);
        Ok(self)
    }

    /// [`add_child`](Self::add_child), in a chain.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub fn with_child(mut self, child: impl Serialize) -> Result<Self, Error> {
        self.add_child(child)?;
        Ok(self)
    }

    /// Asks for another sync after this time, whether or not anything changes.
    pub fn requeue_after(mut self, after: Duration) -> Self {
        self.requeue_after = Some(after);
        self
    }

    /// Has the status written before any child is touched. For handlers whose status records a decision that the
    /// children are made from: after a crash in between, the decision is still there.
    pub fn status_first(mut self) -> Self {
        self.status_first = true;
        self
    }

    /// Has an event recorded on the parent: something that happened, for `kubectl describe` to show. The same event again is
    /// counted, not written anew.
    pub fn with_event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// Sets fields of the parent itself: an annotation, a field of the spec that its controller fills in. They are compared as a
    /// child's are; those that are no longer named stay as they are. Lists are set as a whole. It is done first, also before
    /// a [status](Self::status_first), and only if the parent is unchanged; otherwise nothing else of the answer is done. The controller must
    /// [say](crate::ControllerBuilder::writes_parents) that it does this.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub fn with_parent(mut self, fields: impl Serialize) -> Result<Self, Error> {
        self.parent = serde_json::to_value(fields).map_err(Error::terminal)?;
        Ok(self)
    }

    /// Takes a field off the parent, whoever set it: `/spec/claimRef`. The tilde and the slash in names are written as JSON pointers have
    /// them, `~0` and `~1`. The controller must
    /// [say](crate::ControllerBuilder::writes_parents) that it does this.
    pub fn clear_parent_field(mut self, pointer: &str) -> Self {
        self.cleared.push(pointer.to_owned());
        self
    }

    /// Sets an annotation of the parent along with its status, by the status subresource: this makes no new generation, where a change
    /// of an annotation would. Kinds that are defined by a CRD do not take it; Deployments do. Where the server drops it, it is
    /// not sent again. It is written only together with a status, and goes when it is no longer named.
    pub fn with_status_annotation(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), value.into());
        self
    }

    /// Deletes the parent, if it is unchanged: it has expired, say. The status is written before; nothing else of the answer is
    /// done. The controller must [say](crate::ControllerBuilder::writes_parents) that it does this.
    pub fn delete_parent(mut self) -> Self {
        self.over = Some(Over::Deleted);
        self
    }

    /// [`delete_parent`](Self::delete_parent) without a grace period. For kinds that are deleted gracefully, as Pods are, and parents
    /// whose grace is [over](crate::ControllerBuilder::until_gone).
    pub fn end_parent(mut self) -> Self {
        self.over = Some(Over::Ended);
        self
    }

    /// Takes the parent's reference off a child, which is then nobody's and stays. It must not be among the children of the answer.
    pub fn release(mut self, child: ObjectRef) -> Self {
        self.released.push(child);
        self
    }

    /// Takes a finalizer off a child, even one that is being deleted, or off the parent itself. With
    /// [`status_first`](Self::status_first) this happens only once the status is written: what has been counted may go.
    pub fn let_go(mut self, object: ObjectRef, finalizer: &str) -> Self {
        self.let_go.push((object, finalizer.to_owned()));
        self
    }

    /// Has a controller run for as long as the parent's answers name it: the parent declares a kind. It ends when the parent is gone; its
    /// own parents and their children stay as they are. It runs in the replica that the parent is synced by: an operator that does this has
    /// a [single shard](crate::Replicas::leader). How it is doing is told by
    /// [`SyncRequest::registered`](super::SyncRequest::registered).
    pub fn with_controller(mut self, registration: Registration) -> Self {
        self.controllers.push(registration);
        self
    }

    /// Has something done outside of the cluster, once everything in it is as this answer says.
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// The status as it stands.
    pub fn status(&self) -> &Value {
        &self.status
    }

    /// The children as they stand.
    pub fn children(&self) -> &[Value] {
        &self.children
    }
}

/// What a finalizer answers.
#[expect(
    clippy::large_enum_variant,
    reason = "it is made once at the end of a parent, and a box would be in every author's way"
)]
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Finalized {
    /// Nothing is left to clean up: the finalizer is taken off, and the parent and its children go.
    Done,
    /// Not yet. Until the next call, children and status shall be like this: a clean-up Job, say. Without
    /// [`requeue_after`](SyncResponse::requeue_after) it is called again when a child changes.
    NotYet(SyncResponse),
}
