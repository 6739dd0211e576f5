//! What an author declares: a parent kind, its child kinds with a strategy each, and a handler.

mod child;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Resource;

use crate::handler::{AnyFinalize, AnyHandler, AsyncFinalize, AsyncHandler, Finalize, Handler};
use crate::kind::{Key, Kind};
use crate::plan::Waiting;
use crate::queue::Backoff;

pub(crate) use child::Bond;
pub use child::{ChildKind, Rolling, Strategy};

/// A parent kind, what it owns, and the function that decides. Made by [`Controller::of`] or [`Controller::for_kind`].
#[derive(Clone)]
pub struct Controller {
    pub(crate) parent: Kind,
    pub(crate) children: Vec<ChildKind>,
    pub(crate) reads: Vec<Kind>,
    /// Those of them that may be asked for outside of the parent's namespace.
    pub(crate) everywhere: Vec<Kind>,
    /// Any other kind may be asked for as well.
    pub(crate) reads_any: bool,
    pub(crate) deletes: Vec<Kind>,
    /// What parents have run is like these.
    pub(crate) runs: Vec<Controller>,
    pub(crate) handler: AnyHandler,
    pub(crate) finalize: Option<AnyFinalize>,
    pub(crate) when_gone: Option<WhenGone>,
    pub(crate) options: Options,
}

/// What is done when a parent is gone.
pub(crate) type WhenGone = Arc<dyn Fn(&Key, &str) + Send + Sync>;

/// How a controller goes about its work; the same for all of its parents.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) backoff: Backoff,
    pub(crate) deadline: Duration,
    pub(crate) resync: Option<Duration>,
    pub(crate) history: usize,
    pub(crate) prune: Vec<String>,
    pub(crate) until_gone: bool,
    pub(crate) writes_parents: bool,
    pub(crate) problems: Option<ProblemCondition>,
}

/// A kind's own condition for what cannot be done for a parent.
#[derive(Clone)]
pub(crate) struct ProblemCondition {
    pub(crate) type_: String,
    pub(crate) words: Words,
}

/// The reason and the message for a problem.
type Words = Arc<dyn Fn(&Waiting) -> Option<(String, String)> + Send + Sync>;

impl fmt::Debug for ProblemCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backoff: Backoff::default(),
            deadline: Duration::from_mins(1),
            resync: None,
            history: 3,
            prune: Vec::new(),
            until_gone: false,
            writes_parents: false,
            problems: None,
        }
    }
}

impl Controller {
    /// A controller of parents of a Rust type.
    pub fn of<K>() -> ControllerBuilder
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Self::for_kind(Kind::of::<K>())
    }

    /// A controller of parents of any kind, as JSON.
    pub fn for_kind(parent: Kind) -> ControllerBuilder {
        ControllerBuilder {
            parent,
            children: Vec::new(),
            reads: Vec::new(),
            everywhere: Vec::new(),
            reads_any: false,
            deletes: Vec::new(),
            runs: Vec::new(),
            finalize: None,
            when_gone: None,
            options: Options::default(),
        }
    }

    /// The kind of its parents.
    pub fn parent(&self) -> &Kind {
        &self.parent
    }

    pub(crate) fn child(&self, kind: &Kind) -> Option<&ChildKind> {
        self.children.iter().find(|child| child.kind == *kind)
    }

    /// Whether its handler may ask for objects of a kind.
    pub(crate) fn may_read(&self, kind: &Kind) -> bool {
        self.reads_any || self.reads.contains(kind)
    }

    /// Whether parents carry a finalizer: something has to be done before they go.
    pub(crate) fn needs_finalizer(&self) -> bool {
        self.finalize.is_some() || self.children.iter().any(|child| child.bond == Bond::Orphaned)
    }

    /// Whether a child kind is rolled.
    pub(crate) fn rolls(&self) -> bool {
        self.children.iter().any(|child| matches!(child.strategy, Strategy::Rolling(_)))
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("parent", &self.parent)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}

/// A [`Controller`] that lacks its handler.
#[derive(Clone)]
#[must_use]
pub struct ControllerBuilder {
    parent: Kind,
    children: Vec<ChildKind>,
    reads: Vec<Kind>,
    everywhere: Vec<Kind>,
    reads_any: bool,
    deletes: Vec<Kind>,
    runs: Vec<Controller>,
    finalize: Option<AnyFinalize>,
    when_gone: Option<WhenGone>,
    options: Options,
}

impl ControllerBuilder {
    /// Parents own objects of this type, kept by server-side apply.
    pub fn owns<K>(self) -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.child(ChildKind::of::<K>())
    }

    /// Parents own objects of this kind, kept as it says.
    pub fn child(mut self, child: ChildKind) -> Self {
        self.children.retain(|known| known.kind != child.kind);
        self.children.push(child);
        self
    }

    /// The handler asks for objects of this type that it does not own. Only what is named here is in the printed
    /// [`ClusterRole`](crate::Operator::rbac), and only it can be asked for.
    pub fn reads<K>(self) -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.reads_kind(Kind::of::<K>())
    }

    /// [`reads`](Self::reads), of any kind.
    pub fn reads_kind(mut self, kind: Kind) -> Self {
        if !self.reads.contains(&kind) {
            self.reads.push(kind);
        }
        self
    }

    /// [`reads`](Self::reads), in all namespaces: a namespaced parent [may ask](crate::SyncRequest::select_everywhere) for objects
    /// beyond its own. For those who serve a whole cluster, as a scheduler does: what one tenant makes then wakes the parents of
    /// all others.
    pub fn reads_everywhere<K>(mut self) -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.everywhere.push(Kind::of::<K>());
        self.reads::<K>()
    }

    /// The handler may ask for objects of kinds that nobody knows yet, in its namespace. Whoever brings such a kind has to bring the
    /// permission to read it too: the printed [`ClusterRole`](crate::Operator::rbac) cannot have it.
    pub fn reads_any_kind(mut self) -> Self {
        self.reads_any = true;
        self
    }

    /// An [effect](crate::SyncResponse::with_effect) of the handler deletes objects of this type that it does not own, with a client of its own.
    /// Only what is named here is in the printed [`ClusterRole`](crate::Operator::rbac).
    pub fn deletes<K>(mut self) -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.deletes.push(Kind::of::<K>());
        self
    }

    /// Parents [have controllers run](crate::SyncResponse::with_controller) that are like this one, but for its parent kind. What those need
    /// besides that kind is part of the printed [`ClusterRole`](crate::Operator::rbac).
    pub fn runs(mut self, like: Controller) -> Self {
        self.runs.push(like);
        self
    }

    /// Cleans up before a parent goes. Puts a finalizer on every parent.
    pub fn finalize(mut self, finalize: impl Finalize) -> Self {
        self.finalize = Some(AnyFinalize::Plain(Arc::new(finalize)));
        self
    }

    /// [`finalize`](Self::finalize) that waits for something.
    pub fn finalize_async(mut self, finalize: impl AsyncFinalize) -> Self {
        self.finalize = Some(AnyFinalize::from_async(finalize));
        self
    }

    /// How long a failing parent waits before it is tried again.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.options.backoff = backoff;
        self
    }

    /// How long a sync may take; a minute unless said otherwise. A handler that takes longer has failed (on a runtime of one
    /// thread a plain one cannot be interrupted); writes that are not begun by then are left to the next sync.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = deadline;
        self
    }

    /// Has every parent synced again after this time, even if nothing changed. Off unless said otherwise: what is in the
    /// cluster is watched. For handlers that look at things outside of it.
    pub fn resync(mut self, every: Duration) -> Self {
        self.options.resync = Some(every);
        self
    }

    /// How many plans are kept per parent for [`Operator::explain`](crate::Operator::explain); three unless said otherwise.
    pub fn history(mut self, plans: usize) -> Self {
        self.options.history = plans;
        self
    }

    /// Does not keep these fields of parents in memory; see [`ChildKind::without`].
    pub fn without(mut self, field: &str) -> Self {
        self.options.prune.push(field.to_owned());
        self
    }

    /// The handler may [set fields](crate::SyncResponse::with_parent) of its parents, [delete](crate::SyncResponse::delete_parent) them, or
    /// [take finalizers](crate::SyncResponse::let_go) off them. Part of the printed [`ClusterRole`](crate::Operator::rbac).
    pub fn writes_parents(mut self) -> Self {
        self.options.writes_parents = true;
        self
    }

    /// Has parents tell of problems by a condition that their kind has for it, instead of [`Reconciled`](crate::plan::RECONCILED). It is
    /// there, and true, while there is a problem that `words` has a reason and a message for. The handler leaves it out, unless it has a
    /// problem of its own to tell; those of the framework go before.
    pub fn problem_condition(
        mut self,
        type_: &str,
        words: impl Fn(&Waiting) -> Option<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        self.options.problems = Some(ProblemCondition { type_: type_.to_owned(), words: Arc::new(words) });
        self
    }

    /// Calls the handler also for parents that are being deleted, until they are gone. No children are made, changed or deleted
    /// for these. Parents that wait for a [finalizer](Self::finalize) are that one's.
    pub fn until_gone(mut self) -> Self {
        self.options.until_gone = true;
        self
    }

    /// Is told of every parent that is gone, by its name and uid, for what a handler keeps outside of the cluster: a process that runs
    /// for it, say. Must return at once. Of a parent that went while the operator did not run, or that was made anew before anybody
    /// looked, nobody is told: what must not be missed needs a [finalizer](Self::finalize).
    pub fn when_gone(mut self, gone: impl Fn(&Key, &str) + Send + Sync + 'static) -> Self {
        self.when_gone = Some(Arc::new(gone));
        self
    }

    /// The controller, with its handler.
    pub fn sync(self, handler: impl Handler) -> Controller {
        self.with(AnyHandler::Plain(Arc::new(handler)))
    }

    /// The controller, with a handler that waits for something.
    pub fn sync_async(self, handler: impl AsyncHandler) -> Controller {
        self.with(AnyHandler::from_async(handler))
    }

    fn with(self, handler: AnyHandler) -> Controller {
        let Self {
            parent,
            children,
            reads,
            everywhere,
            reads_any,
            deletes,
            runs,
            finalize,
            when_gone,
            options,
        } = self;
        Controller {
            parent,
            children,
            reads,
            everywhere,
            reads_any,
            deletes,
            runs,
            handler,
            finalize,
            when_gone,
            options,
        }
    }
}
