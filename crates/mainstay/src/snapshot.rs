//! Everything a decision may look at: one parent and its children at one moment, our own writes included.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cache::Object;
use crate::handler::Registered;
use crate::kind::{Kind, ObjectRef};

/// One parent and all objects that it controls, of the kinds that its controller has as children.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The parent's kind.
    pub(crate) kind: Kind,
    pub(crate) parent: Arc<Object>,
    /// By kind, in the order of the controller's configuration; objects sorted by key.
    pub(crate) children: Vec<(Kind, Vec<Arc<Object>>)>,
    /// The parent's revisions, if it rolls its children.
    pub(crate) revisions: Vec<Arc<Object>>,
    /// How the controllers are doing that the parent has run.
    pub(crate) registered: BTreeMap<Kind, Registered>,
    pub(crate) now: Timestamp,
}

impl Snapshot {
    pub(crate) fn parent_ref(&self) -> ObjectRef {
        ObjectRef { kind: self.kind.clone(), key: self.parent.key().clone() }
    }
}
