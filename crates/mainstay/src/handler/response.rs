//! What a handler answers.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Error;
use crate::events::Event;

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
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Finalized {
    /// Nothing is left to clean up: the finalizer is taken off, and the parent and its children go.
    Done,
    /// Not yet. Until the next call, children and status shall be like this: a clean-up Job, say. Without
    /// [`requeue_after`](SyncResponse::requeue_after) it is called again when a child changes.
    NotYet(SyncResponse),
}
