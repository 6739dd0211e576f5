//! What a handler is given.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use kube::core::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::related::{Answers, Lookup, Related};
use super::{Children, Error, Registered, TypedChildren};
use crate::cache::Object;
use crate::kind::{Key, Kind, ObjectRef, Scope};
use crate::snapshot::Snapshot;

/// A consistent snapshot of one parent and all of its children, the operator's own latest writes included. Cheap to
/// clone.
///
/// Other objects can be [asked for](Self::get); asking makes the sync run again when they change. Within one request the
/// same question always has the same answer.
#[derive(Clone)]
pub struct SyncRequest(Arc<Inner>);

struct Inner {
    snapshot: Snapshot,
    parent: OnceLock<Value>,
    lookup: Arc<dyn Lookup>,
    asked: Mutex<Answers>,
    only_plans: bool,
}

impl SyncRequest {
    pub(crate) fn new(snapshot: Snapshot, lookup: Arc<dyn Lookup>) -> Self {
        let asked = Mutex::default();
        Self(Arc::new(Inner { snapshot, parent: OnceLock::new(), lookup, asked, only_plans: false }))
    }

    /// The same, for an answer that nobody acts on.
    pub(crate) fn to_plan(snapshot: Snapshot, lookup: Arc<dyn Lookup>) -> Self {
        let asked = Mutex::default();
        Self(Arc::new(Inner { snapshot, parent: OnceLock::new(), lookup, asked, only_plans: true }))
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.0.snapshot
    }

    /// The questions that were asked so far, with their answers.
    pub(crate) fn asked(&self) -> Answers {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn object(&self) -> &Arc<Object> {
        &self.0.snapshot.parent
    }

    /// The parent, as a type.
    ///
    /// # Errors
    /// If it does not fit the type. Returned from the handler, this becomes a condition and an event on the parent with the
    /// path of the field, and the parent rests until it is changed.
    pub fn parent<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.object().parse().map_err(Error::invalid_parent)
    }

    /// The parent, as JSON.
    pub fn parent_json(&self) -> &Value {
        self.0.parent.get_or_init(|| self.object().value())
    }

    /// The parent, as plans and answers name it.
    pub fn reference(&self) -> ObjectRef {
        self.0.snapshot.parent_ref()
    }

    /// Whether nobody will act on the answer: somebody asks for a [plan](crate::Operator::plan), or replays a recording. A handler that does
    /// something by itself, because its answer depends on what comes of it, leaves it then. What can wait for the answer to be
    /// acted on is better an [effect](super::Effect).
    pub fn only_plans(&self) -> bool {
        self.0.only_plans
    }

    /// Whether the parent is being deleted. Handlers see such parents only if their controller
    /// [asks for it](crate::ControllerBuilder::until_gone).
    pub fn is_deleting(&self) -> bool {
        self.object().is_deleting()
    }

    /// The parent's kind.
    pub fn kind(&self) -> &Kind {
        &self.0.snapshot.kind
    }

    /// The parent's name.
    pub fn name(&self) -> &str {
        self.object().key().name()
    }

    /// The parent's namespace, unless its kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.object().key().namespace()
    }

    /// The parent's uid.
    pub fn uid(&self) -> &str {
        self.object().uid()
    }

    /// The parent's `metadata.generation`; 0 for kinds that have none.
    pub fn generation(&self) -> i64 {
        self.object().generation()
    }

    /// The time of the snapshot: what a handler should use for times that it writes, so that its answer depends on the
    /// request alone.
    pub fn now(&self) -> Timestamp {
        self.0.snapshot.now
    }

    /// All children, raw.
    pub fn all_children(&self) -> Children<'_> {
        Children { groups: &self.0.snapshot.children, kind: None, namespace: self.namespace() }
    }

    /// The children of one kind, raw.
    pub fn children_of<'a>(&'a self, kind: &'a Kind) -> Children<'a> {
        Children { kind: Some(kind), ..self.all_children() }
    }

    /// The children of one kind, as a type.
    pub fn children<T>(&self) -> TypedChildren<'_, T>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
        T::Scope: 'static,
    {
        TypedChildren { all: self.all_children(), kind: Kind::of::<T>(), typed: PhantomData }
    }

    /// How a controller of this kind is doing that the parent's last answer [named](super::SyncResponse::with_controller).
    pub fn registered(&self, kind: &Kind) -> Option<&Registered> {
        self.0.snapshot.registered.get(kind)
    }

    /// Another object by name, in the parent's namespace (or cluster-scoped). The sync runs again when it changes, comes
    /// or goes.
    ///
    /// # Errors
    /// If it does not fit the type, or its kind's cache is not filled yet: then the sync runs again once it is.
    pub fn get<T>(&self, name: &str) -> Result<Option<T>, Error>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
        T::Scope: 'static,
    {
        let kind = Kind::of::<T>();
        let namespace = self.namespace().filter(|_| kind.scope() == Scope::Namespaced);
        self.first(&Related::named(&kind, Key::new(namespace, name)))
    }

    /// [`get`](Self::get) from a given namespace, for cluster-scoped parents.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_in<T>(&self, namespace: &str, name: &str) -> Result<Option<T>, Error>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
        T::Scope: 'static,
    {
        self.first(&Related::named(&Kind::of::<T>(), Key::namespaced(namespace, name)))
    }

    /// All other objects in the parent's namespace (everywhere, if the parent is cluster-scoped) whose labels fit a selector.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn select<T>(&self, selector: &str) -> Result<Vec<T>, Error>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
        T::Scope: 'static,
    {
        let kind = Kind::of::<T>();
        let namespace = self.namespace().filter(|_| kind.scope() == Scope::Namespaced);
        let question = Related::selected(&kind, namespace, selector);
        self.answer(&question)?.iter().map(|object| Ok(object.parse()?)).collect()
    }

    /// [`select`](Self::select) in all namespaces, for a kind that is
    /// [read everywhere](crate::ControllerBuilder::reads_everywhere).
    ///
    /// # Errors
    /// As [`get`](Self::get), and if the kind is not read everywhere.
    pub fn select_everywhere<T>(&self, selector: &str) -> Result<Vec<T>, Error>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
        T::Scope: 'static,
    {
        let question = Related::selected(&Kind::of::<T>(), None, selector);
        self.answer(&question)?.iter().map(|object| Ok(object.parse()?)).collect()
    }

    /// Any question, raw.
    ///
    /// # Errors
    /// If the kind's cache is not filled yet, or a namespaced parent asks outside of its namespace for what is not
    /// [read everywhere](crate::ControllerBuilder::reads_everywhere).
    pub fn related(&self, question: &Related) -> Result<Vec<Value>, Error> {
        Ok(self.answer(question)?.iter().map(|object| object.value()).collect())
    }

    fn first<T: DeserializeOwned>(&self, question: &Related) -> Result<Option<T>, Error> {
        Ok(self.answer(question)?.first().map(|object| object.parse()).transpose()?)
    }

    fn answer(&self, question: &Related) -> Result<Vec<Arc<Object>>, Error> {
        if let Some(own) = self.namespace()
            && question.kind.scope() == Scope::Namespaced
            && question.namespace() != Some(own)
            && !self.0.lookup.reaches_everywhere(&question.kind)
        {
            let message = format!(
                "{question}: a namespaced parent can only depend on objects in {own}, its own namespace, unless it `reads_everywhere`"
            );
            return Err(Error::terminal(message));
        }
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.get(question) {
            Some(Some(known)) => Ok(known.clone()),
            Some(None) => Err(Error::pending(&question.kind)),
            None => {
                let answer = self.0.lookup.look_up(question);
                asked.insert(question.clone(), answer.as_ref().ok().cloned());
                answer
            }
        }
    }
}
