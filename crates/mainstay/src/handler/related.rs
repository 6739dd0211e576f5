//! Objects that a handler depends on without owning them.
//!
//! Asking for an object is what declares the dependency: the sync runs again when the answer changes. A question that
//! the next sync no longer asks is forgotten, and with the last one of a kind its watch ends.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::cache::Object;
use crate::kind::{Key, Kind};

/// A question for objects that are not the parent's children.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Related {
    pub(crate) kind: Kind,
    which: Which,
}

/// Which objects of the kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Which {
    /// The one with this name.
    Named(Key),
    /// All in a namespace (or everywhere) whose labels fit.
    Selected { namespace: Option<String>, selector: String },
}

impl Related {
    /// One object, by reference.
    pub fn named(kind: &Kind, key: Key) -> Self {
        Self { kind: kind.clone(), which: Which::Named(key) }
    }

    /// All objects in a namespace, or in all of them, whose labels fit a selector as kubectl takes it
    /// (`app=web,tier in (front, back)`; empty fits all).
    pub fn selected(kind: &Kind, namespace: Option<&str>, selector: &str) -> Self {
        let which =
            Which::Selected { namespace: namespace.map(str::to_owned), selector: selector.to_owned() };
        Self { kind: kind.clone(), which }
    }

    /// The kind that is asked for.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The key of the one object, or else the selector.
    pub(crate) fn parts(&self) -> Result<&Key, &str> {
        match &self.which {
            Which::Named(key) => Ok(key),
            Which::Selected { selector, .. } => Err(selector),
        }
    }

    /// The only namespace that the answer can come from. `None` means the whole cluster.
    pub(crate) fn namespace(&self) -> Option<&str> {
        match &self.which {
            Which::Named(key) => key.namespace(),
            Which::Selected { namespace, .. } => namespace.as_deref(),
        }
    }
}

impl fmt::Display for Related {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.which {
            Which::Named(key) => write!(f, "{} {key}", self.kind),
            Which::Selected { namespace, selector } => {
                let selector = if selector.is_empty() { "all" } else { selector };
                write!(
                    f,
                    "{} with {selector} in {}",
                    self.kind,
                    namespace.as_deref().unwrap_or("all namespaces")
                )
            }
        }
    }
}

/// What answers questions: the caches, or a recording of what they said.
pub(crate) trait Lookup: Send + Sync {
    /// The objects, sorted by key. [`Error::pending`] if the kind's cache isn't filled yet.
    fn look_up(&self, question: &Related) -> Result<Vec<Arc<Object>>, Error>;

    /// Whether namespaced parents may ask for objects of the kind outside of their namespace.
    fn reaches_everywhere(&self, kind: &Kind) -> bool;
}

/// The questions a sync asked, with the answers it got. One that could not be answered yet is a dependency too: its watch
/// must stay until it can.
pub(crate) type Answers = BTreeMap<Related, Option<Vec<Arc<Object>>>>;

/// A question as recordings hold it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedQuestion {
    pub(crate) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<String>,
}

impl RecordedQuestion {
    pub(crate) fn of(question: &Related) -> Self {
        match &question.which {
            Which::Named(key) => Self {
                namespace: key.namespace().map(str::to_owned),
                name: Some(key.name().to_owned()),
                selector: None,
            },
            Which::Selected { namespace, selector } => {
                Self { namespace: namespace.clone(), name: None, selector: Some(selector.clone()) }
            }
        }
    }

    pub(crate) fn about(&self, kind: &Kind) -> Related {
        match &self.name {
            Some(name) => Related::named(kind, Key::new(self.namespace.as_deref(), name)),
            None => {
                Related::selected(kind, self.namespace.as_deref(), self.selector.as_deref().unwrap_or(""))
            }
        }
    }
}
