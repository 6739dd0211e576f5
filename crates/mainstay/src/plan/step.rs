//! One write, with the reason for it.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::diff::Change;
use crate::kind::ObjectRef;

/// One write.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// To which object.
    #[serde(serialize_with = "as_text")]
    pub object: ObjectRef,
    /// Why.
    pub reason: Reason,
    /// The fields that differ, with their old and new values. Values of Secrets are hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What is sent.
    #[serde(skip)]
    pub(crate) body: Body,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Action {
    /// Creates an object that must not exist yet.
    Create,
    /// Sets the named fields by server-side apply.
    Apply,
    /// Sets fields of the parent and takes others off.
    Patch,
    /// Puts a new object in place of the old one, keeping its identity.
    Replace,
    /// Deletes an object, if it is still the same one.
    Delete,
    /// Deletes the parent without a grace period.
    End,
    /// Puts the parent's reference on an object that is nobody's, and leaves all else as it is.
    Adopt,
    /// Takes the parent's reference off a child, so that it outlives the parent.
    Release,
    /// Writes the parent's status.
    WriteStatus,
    /// Puts the operator's finalizer on the parent.
    AddFinalizer,
    /// Takes it off, or another one off a child.
    RemoveFinalizer,
}

impl Action {
    /// As plans and metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::End => "end",
            Self::Adopt => "adopt",
            Self::Release => "release",
            Self::WriteStatus => "write status of",
            Self::AddFinalizer => "add finalizer to",
            Self::RemoveFinalizer => "remove finalizer from",
        }
    }

    /// As logs name it once it is done.
    pub(crate) fn done(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Apply => "applied",
            Self::Patch => "patched",
            Self::Replace => "replaced",
            Self::Delete => "deleted",
            Self::End => "ended",
            Self::Adopt => "adopted",
            Self::Release => "released",
            Self::WriteStatus => "wrote status",
            Self::AddFinalizer => "added finalizer",
            Self::RemoveFinalizer => "removed finalizer",
        }
    }

    /// The permission that it needs.
    pub(crate) fn rbac_verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "update",
            Self::Delete | Self::End => "delete",
            _ => "patch",
        }
    }

    /// As a metric's label: one word.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::WriteStatus => "status",
            Self::AddFinalizer | Self::RemoveFinalizer => "finalizer",
            other => other.as_str(),
        }
    }
}

/// Why a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reason {
    /// It is desired and not there.
    Missing,
    /// What is desired has changed since it was last applied.
    DesiredChanged,
    /// Somebody changed fields that the handler names.
    Drifted,
    /// It is there and no longer desired.
    NotDesired,
    /// It differs, and its kind is changed by creating anew.
    MustBeRecreated,
    /// The server refused the change in place: the field is immutable.
    Immutable,
    /// It is its turn in a rolling change.
    Rollout,
    /// It has no controller and the labels that may be adopted.
    Adopted,
    /// It was made for this parent and has lost its owner reference.
    ReferenceLost,
    /// The parent is being deleted, and this child shall outlive it.
    Orphaned,
    /// The handler's status is not what the parent has.
    StatusChanged,
    /// Something must be done before the parent may go.
    NeedsFinalizer,
    /// Everything that had to be done before the parent goes is done.
    Finalized,
    /// Nothing has to be done any more before the parent goes.
    FinalizerNotNeeded,
    /// The parent's spec is new, or has come back.
    NewRevision,
    /// More revisions are kept than wanted.
    OldRevision,
    /// The parent lacks fields that its handler sets, or has some that it takes off.
    ParentDiffers,
    /// The handler says that the parent is over.
    Over,
    /// The handler no longer claims the child.
    Released,
    /// The handler needs the object no longer.
    LetGo,
}

impl Reason {
    /// As plans print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "it is desired and missing",
            Self::DesiredChanged => "what is desired has changed",
            Self::Drifted => "it was changed by somebody else",
            Self::NotDesired => "it is no longer desired",
            Self::MustBeRecreated => "it differs and is to be created anew",
            Self::Immutable => "the server does not allow the change in place",
            Self::Rollout => "its turn in the rollout",
            Self::Adopted => "it belongs to nobody and may be adopted",
            Self::ReferenceLost => "it has lost its owner reference",
            Self::Orphaned => "it shall outlive its parent",
            Self::StatusChanged => "the status has changed",
            Self::NeedsFinalizer => "something is to be done before it goes",
            Self::Finalized => "all that had to be done before it goes is done",
            Self::FinalizerNotNeeded => "nothing is to be done any more before it goes",
            Self::NewRevision => "the spec is new",
            Self::OldRevision => "more revisions are kept than wanted",
            Self::ParentDiffers => "its handler sets fields of it",
            Self::Over => "its time is over",
            Self::Released => "it is no longer claimed",
            Self::LetGo => "nothing is left to do for it",
        }
    }
}

/// What the server is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    pub(crate) value: Value,
    pub(crate) precondition: Precondition,
    /// A deletion waits for all that the object owns.
    pub(crate) foreground: bool,
    /// The body is a status that names what others own too: only what the operator applied is sent, and the condition of this type.
    pub(crate) only_condition: Option<String>,
    /// The step's changes with nothing hidden. They never leave the process.
    pub(crate) changes: Vec<Change>,
}

impl Body {
    pub(crate) fn new(value: Value, precondition: Precondition) -> Self {
        Self { value, precondition, foreground: false, only_condition: None, changes: Vec::new() }
    }
}

impl Step {
    /// Its changes in one line, for logs. `None` if there are none.
    pub(crate) fn brief(&self) -> Option<Brief<'_>> {
        (!self.changes.is_empty()).then_some(Brief(&self.changes))
    }

    /// Hides what only those may see who may read the object.
    pub(crate) fn hide_secrets(&mut self) {
        self.body.changes = self.changes.clone();
        let kind = &self.object.kind;
        self.changes =
            std::mem::take(&mut self.changes).into_iter().map(|change| change.showable(kind)).collect();
    }
}

/// A step's changes in one line, the first few of them.
pub(crate) struct Brief<'a>(&'a [Change]);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 4;
        for (index, change) in self.0.iter().take(SHOWN_MAX).enumerate() {
            write!(f, "{}{change}", if index == 0 { "" } else { "; " })?;
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// What must be true of the object, or else nothing is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Precondition {
    #[default]
    None,
    /// There is no such object.
    Absent,
    /// It is still the one that the decision was made on.
    Uid(String),
    /// It is unchanged since the decision.
    Unchanged { uid: String, resource_version: String },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.action.as_str(), self.object, self.reason.as_str())?;
        for change in &self.changes {
            write!(f, "\n    {change}")?;
        }
        Ok(())
    }
}

pub(super) fn as_text<S: Serializer>(object: &ObjectRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diff::{Learned, Rules, compare};

    #[test]
    fn a_log_line_shows_the_first_few_changes() {
        let brief = |fields: std::ops::Range<u8>| {
            let desired: serde_json::Map<_, _> = fields.map(|n| (format!("f{n}"), json!(n))).collect();
            let changes = compare(
                &json!({"spec": desired}),
                &json!({"spec": {}}),
                &Rules::unknown(),
                &Learned::nothing(),
            );
            Brief(&changes).to_string()
        };
        assert_eq!(brief(0..1), "spec.f0: added 0");
        assert_eq!(
            brief(0..6),
            "spec.f0: added 0; spec.f1: added 1; spec.f2: added 2; spec.f3: added 3; and 2 more"
        );
    }
}
