//! Controllers that a parent has run: kinds that are registered while the operator runs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::controller::Controller;
use crate::kind::Kind;

/// A controller that runs for as long as a parent's answers [name it](crate::SyncResponse::with_controller), with the one watch per
/// kind that all controllers share. The parent's own sync runs again when the controller comes to work or has to stop.
#[derive(Clone)]
#[must_use]
pub struct Registration {
    pub(crate) controller: Controller,
    pub(crate) version: String,
    pub(crate) count_by: Option<String>,
}

impl Registration {
    /// This controller, for as long as the version is the same. Handlers cannot be compared: what makes one differ from another of the
    /// same kind has to be in the text.
    pub fn new(controller: Controller, version: impl fmt::Display) -> Self {
        Self { controller, version: version.to_string(), count_by: None }
    }

    /// Counts the controller's parents by the text at a JSON pointer, `/status/phase`: see [`Registered::counts`].
    pub fn count_by(mut self, pointer: &str) -> Self {
        self.count_by = Some(pointer.to_owned());
        self
    }
}

impl PartialEq for Registration {
    fn eq(&self, other: &Self) -> bool {
        self.controller.parent() == other.controller.parent()
            && self.version == other.version
            && self.count_by == other.count_by
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({} at {})", self.controller.parent(), self.version)
    }
}

/// How a controller is doing that the parent had run by its last answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// Whether it is at work.
    pub state: RegisteredState,
    /// Its parents, as far as they are known.
    pub parents: usize,
    /// The same by what [`count_by`](Registration::count_by) asks for; those without are in none. It is as of this snapshot: no sync runs
    /// because it changes. [Ask for one](crate::SyncResponse::requeue_after) to keep it up to date.
    #[serde(default)]
    pub counts: BTreeMap<String, usize>,
}

/// Whether a controller is at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RegisteredState {
    /// Its parents are synced.
    Ready,
    /// Its caches are being filled.
    Starting,
    /// This kind is not there, be it no longer or not yet.
    Missing(Kind),
    /// It lacks a permission; in words.
    Forbidden(String),
    /// The server cannot be reached; in words. What is known is used meanwhile.
    Stale(String),
    /// Somebody else has a controller of the kind, which goes on.
    Taken,
    /// It cannot be run at all; in words.
    Impossible(String),
}
