//! Why a sync runs. Logs, spans, plans and debug pages carry it.

use std::fmt;

use crate::kind::{Kind, ObjectRef};

/// Why a parent is synced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The parent was there when the operator started, or came back with a list.
    Found,
    /// The parent is new.
    Created,
    /// Somebody changed the parent's spec, or deleted it.
    Changed,
    /// Something else about the parent changed: its status, a label.
    Touched,
    /// The reconcile-now or the pause annotation has a new value, or [`Operator::reconcile_now`](crate::Operator::reconcile_now) was called.
    Asked,
    /// A child came, changed or went.
    Child(ObjectRef),
    /// An object that the handler asked for came, changed or went.
    Related(ObjectRef),
    /// The last sync wrote something: this one sees what came of it.
    OwnWrites,
    /// A kind's cache has been filled.
    CacheFilled,
    /// A controller of this kind that the parent has run came to work, or had to stop.
    Registered(Kind),
    /// This replica has become responsible for the parent.
    TakenOver,
    /// A time has come that it waited for: asked for by the handler, or the end of a backoff.
    Time,
}

impl Trigger {
    /// One word, for spans.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Touched => "touched",
            Self::Asked => "asked",
            Self::Child(_) => "child",
            Self::Related(_) => "related",
            Self::OwnWrites => "own-writes",
            Self::CacheFilled => "cache-filled",
            Self::Registered(_) => "registered",
            Self::TakenOver => "taken-over",
            Self::Time => "timer",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found => f.write_str("it was found"),
            Self::Created => f.write_str("it was created"),
            Self::Changed => f.write_str("it was changed"),
            Self::Touched => f.write_str("its metadata or status was changed"),
            Self::Asked => f.write_str("somebody asked for it"),
            Self::Child(object) => write!(f, "its child {object} changed"),
            Self::Related(object) => write!(f, "{object}, which it depends on, changed"),
            Self::OwnWrites => f.write_str("the last sync wrote something"),
            Self::CacheFilled => f.write_str("a cache was filled"),
            Self::Registered(kind) => {
                write!(f, "the controller of {kind}, which it has run, came to work or had to stop")
            }
            Self::TakenOver => f.write_str("this replica became responsible for it"),
            Self::Time => f.write_str("its time had come"),
        }
    }
}
