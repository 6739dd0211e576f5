//! The kinds of children that a parent has, and how each is brought to its desired state.

use std::fmt;
use std::sync::Arc;

use kube::core::Resource;
use serde_json::Value;

use crate::kind::Kind;
use crate::readiness::Readiness;

/// A kind of children, and how they are brought to their desired state.
#[derive(Clone)]
#[must_use]
pub struct ChildKind {
    pub(crate) kind: Kind,
    pub(crate) strategy: Strategy,
    pub(crate) recreate_immutable: bool,
    pub(crate) adopt: Option<Adopt>,
    pub(crate) adopted_finalizer: Option<String>,
    pub(crate) bond: Bond,
    pub(crate) foreground: bool,
    pub(crate) metadata_only: bool,
    pub(crate) prune: Vec<String>,
}

/// What ties children to their parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bond {
    /// They are its own, and go with it.
    Owned,
    /// They are its own, and are released when it goes.
    Orphaned,
    /// Nothing: it only has them made.
    Unowned,
}

/// From a parent, the selector of those objects that it may adopt.
pub(crate) type Adopt = Arc<dyn Fn(&Value) -> String + Send + Sync>;

impl ChildKind {
    /// Children of a Rust type.
    pub fn of<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Self::new(Kind::of::<K>())
    }

    /// Children of any kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            strategy: Strategy::Apply,
            recreate_immutable: false,
            adopt: None,
            adopted_finalizer: None,
            bond: Bond::Owned,
            foreground: false,
            metadata_only: false,
            prune: Vec::new(),
        }
    }

    /// How a difference is made good.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Deletes and creates a child when the server refuses a change because the field is immutable. Without this the refusal is
    /// reported on the parent, and the child stays.
    pub fn recreate_when_immutable(mut self) -> Self {
        self.recreate_immutable = true;
        self
    }

    /// Takes over objects that exist under a desired child's name, have no controller, and whose labels fit the selector
    /// that this makes of the parent (in kubectl's form: `app=web`). Others are left alone and reported as a conflict.
    pub fn adopt(mut self, selector: impl Fn(&Value) -> String + Send + Sync + 'static) -> Self {
        self.adopt = Some(Arc::new(selector));
        self
    }

    /// Gives objects that are [adopted](Self::adopt) as they are this finalizer, by the write that makes them children.
    pub fn finalizer_when_adopted(mut self, finalizer: &str) -> Self {
        self.adopted_finalizer = Some(finalizer.to_owned());
        self
    }

    /// Leaves these children in place when their parent is deleted: they are released instead. Puts a finalizer on parents.
    pub fn orphan_on_delete(mut self) -> Self {
        self.bond = Bond::Orphaned;
        self
    }

    /// Creates these when they are missing and leaves them alone ever after: they have no owner, are neither changed nor deleted, and
    /// outlive the parent. A namespaced parent can have cluster-scoped ones. The handler [asks](crate::SyncRequest::get) for
    /// them to see them.
    pub fn unowned(mut self) -> Self {
        self.bond = Bond::Unowned;
        self
    }

    /// Deletes these in the foreground: they stay until all that they own is gone. For kinds whose next one must not begin while the last
    /// one's pods run.
    pub fn delete_in_foreground(mut self) -> Self {
        self.foreground = true;
        self
    }

    /// Keeps only the metadata of these children in memory. The handler sees no more, and a change that somebody else makes
    /// outside of metadata goes unnoticed.
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Does not keep a field in memory. It is named by its JSON pointer: `/spec/template`,
    /// `/spec/containers/*/env`. The handler doesn't see it. It must not be one that desired children name.
    /// `metadata.managedFields` is never kept.
    pub fn without(mut self, field: &str) -> Self {
        self.prune.push(field.to_owned());
        self
    }
}

impl fmt::Debug for ChildKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.strategy)
    }
}

/// How a difference between a desired and an existing child is made good. A missing child is created under all of them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// By server-side apply: fields that the handler names are set, fields that it named before and no longer does are
    /// removed, all others are left to whoever set them.
    #[default]
    Apply,
    /// By replacing the object: what the handler doesn't name is not there afterwards, unless the server fills it in.
    Replace,
    /// By deleting the child, and creating it once it is gone.
    Recreate,
    /// Not at all. The new state takes effect when somebody deletes the child.
    OnDelete,
    /// A few at a time, waiting for each to be ready.
    Rolling(Rolling),
}

/// An author's own judgement of a child.
type ReadyWhen = Arc<dyn Fn(&Value) -> Readiness + Send + Sync>;

/// A rolling change: at most so many children of the kind are unavailable at once.
///
/// Every state of the parent's `spec` is kept as a `ControllerRevision`, the last ten of them. To roll back, give the parent its
/// former spec: the children are then rolled back in the same way.
#[derive(Clone)]
#[must_use]
pub struct Rolling {
    pub(crate) max_unavailable: usize,
    pub(crate) recreate: bool,
    pub(crate) ready: Option<ReadyWhen>,
    pub(crate) revisions: usize,
}

impl Rolling {
    /// At most `max_unavailable` children of the kind are unavailable on account of the change. Zero counts as one: a
    /// change that may disturb nothing could never begin.
    pub fn at_most(max_unavailable: usize) -> Self {
        Self { max_unavailable: max_unavailable.max(1), recreate: false, ready: None, revisions: 10 }
    }

    /// Changes children by deleting and creating them instead of in place.
    pub fn recreate(mut self) -> Self {
        self.recreate = true;
        self
    }

    /// When a child is ready, where [`readiness`](crate::readiness::readiness) does not know.
    pub fn ready_when(mut self, ready: impl Fn(&Value) -> Readiness + Send + Sync + 'static) -> Self {
        self.ready = Some(Arc::new(ready));
        self
    }

    /// How many revisions are kept.
    pub fn revisions(mut self, kept: usize) -> Self {
        self.revisions = kept.max(1);
        self
    }
}

impl fmt::Debug for Rolling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} unavailable", self.max_unavailable)
    }
}
