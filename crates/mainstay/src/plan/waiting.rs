//! Why something is not as it should be and yet nothing is done about it. One vocabulary for conditions, events, plans,
//! metrics and debug pages.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::diff::FieldPath;
use crate::kind::{Kind, ObjectRef};

/// Why nothing moves, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// The parent carries the pause annotation.
    Paused,
    /// The parent is being deleted, and nothing of ours is left to do.
    ParentGoing,
    /// A kind's cache is not filled.
    Cache {
        /// Which kind.
        kind: Kind,
        /// What its watch is doing.
        state: String,
    },
    /// A child is still being deleted; it is created anew once it is gone.
    Deleting {
        /// Which child.
        child: ObjectRef,
    },
    /// A child differs, and its kind is only changed by somebody deleting it.
    OnDelete {
        /// Which child.
        child: ObjectRef,
        /// Where it differs.
        paths: Vec<FieldPath>,
    },
    /// A rolling change waits for children that are not ready.
    Rollout {
        /// Of which kind.
        kind: Kind,
        /// How many are still to be changed.
        outdated: usize,
        /// Which are waited for, and why.
        unavailable: Vec<(String, String)>,
    },
    /// More deletions are due than the budget allows now.
    DeletionBudget {
        /// How many are put off.
        withheld: usize,
    },
    /// The finalizer has more to do.
    Finalizing,
    /// Another replica is responsible for this parent.
    OtherReplica,
    /// The handler gave an answer that cannot be acted on. Nothing was written.
    BadAnswer {
        /// What is wrong with it.
        message: String,
    },
    /// The parent does not fit the handler's type.
    InvalidParent {
        /// Which field, and what is wrong with it.
        message: String,
    },
    /// The handler failed and said that to try again is useless until the parent changes.
    Failed {
        /// The handler's error.
        message: String,
    },
    /// An object with a desired child's name belongs to somebody else.
    Conflict {
        /// Which object.
        child: ObjectRef,
        /// Its controller, if it has one.
        owner: Option<String>,
    },
    /// The server refused a child.
    Rejected {
        /// Which child.
        child: ObjectRef,
        /// What the server said.
        message: String,
    },
    /// The operator lacks a permission.
    Forbidden {
        /// To do what.
        verb: String,
        /// To which object.
        object: ObjectRef,
        /// What the server said.
        message: String,
    },
    /// Syncs write the same again and again. It is left alone for a while.
    Loop {
        /// Which object, which fields, and why.
        what: String,
    },
    /// An object was changed by somebody else, or exists already, every time it was about to be written.
    Contended {
        /// Which object.
        object: ObjectRef,
        /// How many times in a row.
        attempts: u32,
    },
    /// The parent's kind has no status subresource, and the handler gave a status.
    NoStatusSubresource,
}

impl Waiting {
    /// One word, as conditions and events have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Paused => "Paused",
            Self::ParentGoing => "ParentGoing",
            Self::Cache { .. } => "CacheNotFilled",
            Self::Deleting { .. } => "ChildDeleting",
            Self::OnDelete { .. } => "ChangedOnDelete",
            Self::Rollout { .. } => "RollingOut",
            Self::DeletionBudget { .. } => "DeletionBudget",
            Self::Finalizing => "Finalizing",
            Self::OtherReplica => "OtherReplica",
            Self::BadAnswer { .. } => "BadAnswer",
            Self::InvalidParent { .. } => "InvalidParent",
            Self::Failed { .. } => "SyncFailed",
            Self::Conflict { .. } => "ChildConflict",
            Self::Rejected { .. } => "ChildRejected",
            Self::Forbidden { .. } => "Forbidden",
            Self::Loop { .. } => "NotConverging",
            Self::Contended { .. } => "Contended",
            Self::NoStatusSubresource => "NoStatusSubresource",
        }
    }

    /// Whether somebody has to do something about it. These become a condition and an event on the parent; the others pass
    /// by themselves or are somebody's wish.
    pub fn is_problem(&self) -> bool {
        matches!(
            self,
            Self::BadAnswer { .. }
                | Self::InvalidParent { .. }
                | Self::Failed { .. }
                | Self::Conflict { .. }
                | Self::Rejected { .. }
                | Self::Forbidden { .. }
                | Self::Loop { .. }
                | Self::Contended { .. }
                | Self::NoStatusSubresource
        )
    }
}

impl Waiting {
    /// Whether trying again may help. The others end by a change that is watched: whoever has the name gives it up, a hold is
    /// over, the handler is mended.
    pub(crate) fn is_retried(&self) -> bool {
        matches!(self, Self::BadAnswer { .. } | Self::Rejected { .. } | Self::Forbidden { .. })
    }
}

fn list(items: impl IntoIterator<Item = impl fmt::Display>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => write!(f, "paused by the annotation {}", super::PAUSED),
            Self::ParentGoing => f.write_str("the parent is being deleted"),
            Self::Cache { kind, state } => write!(f, "the cache of {kind} is not filled: {state}"),
            Self::Deleting { child } => write!(f, "{child} is still being deleted"),
            Self::OnDelete { child, paths } => {
                write!(f, "{child} differs in {} and is only changed when somebody deletes it", list(paths))
            }
            Self::Rollout { kind, outdated, unavailable } => {
                write!(f, "rolling out: {outdated} of {kind} to go")?;
                if !unavailable.is_empty() {
                    let waits = unavailable.iter().map(|(name, why)| format!("{name} ({why})"));
                    write!(f, ", waiting for {}", list(waits))?;
                }
                Ok(())
            }
            Self::DeletionBudget { withheld } => {
                write!(f, "{withheld} deletions are withheld until the deletion budget allows them")
            }
            Self::Finalizing => f.write_str("the finalizer has more to do"),
            Self::OtherReplica => f.write_str("another replica is responsible for this parent"),
            Self::BadAnswer { message } => write!(f, "the handler's answer cannot be acted on: {message}"),
            Self::InvalidParent { message } | Self::Failed { message } => f.write_str(message),
            Self::Conflict { child, owner: Some(owner) } => {
                write!(f, "{child} belongs to {owner}; it was not touched")
            }
            Self::Conflict { child, owner: None } => {
                write!(f, "{child} exists and was not made for this parent; it was not touched")
            }
            Self::Rejected { child, message } => write!(f, "{child} was refused: {message}"),
            Self::Forbidden { verb, object, message } => {
                write!(f, "the operator may not {verb} {}", object.kind.plural())?;
                if !object.kind.group().is_empty() {
                    write!(f, ".{}", object.kind.group())?;
                }
                match object.key.namespace() {
                    Some(namespace) => write!(f, " in namespace {namespace}: {message}"),
                    None => write!(f, " at cluster scope: {message}"),
                }
            }
            Self::Loop { what } => f.write_str(what),
            // Without the count, which would be news each time: a status that says it would be written without end.
            Self::Contended { object, .. } => write!(
                f,
                "{object} could not be written several times in a row: somebody else changed it each time, or it exists and is \
                 out of this operator's sight"
            ),
            Self::NoStatusSubresource => {
                f.write_str("the handler gave a status, but the kind has no status subresource; return null, or enable it")
            }
        }
    }
}

#[derive(Serialize)]
struct Told<'a> {
    reason: &'a str,
    message: String,
}

impl Serialize for Waiting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Told { reason: self.reason(), message: self.to_string() }.serialize(serializer)
    }
}
