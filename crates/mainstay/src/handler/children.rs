//! A parent's children, as a handler sees them.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Error;
use crate::cache::Object;
use crate::kind::Kind;
use crate::readiness::{Readiness, readiness};

/// Some of a parent's children, raw: all of them, or those of one kind.
#[derive(Clone, Copy)]
pub struct Children<'a> {
    pub(super) groups: &'a [(Kind, Vec<Arc<Object>>)],
    pub(super) kind: Option<&'a Kind>,
    /// Where a name alone is looked for.
    pub(super) namespace: Option<&'a str>,
}

impl<'a> Children<'a> {
    /// One by one, by kind, then by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = Child<'a>> + use<'a> {
        let wanted = self.kind.cloned();
        self.groups
            .iter()
            .filter(move |(kind, _)| wanted.as_ref().is_none_or(|wanted| wanted == kind))
            .flat_map(|(kind, objects)| objects.iter().map(move |object| Child { kind, object }))
    }

    /// The first with this name: in the parent's namespace or, if the parent is cluster-scoped, in any.
    pub fn get(&self, name: &str) -> Option<Child<'a>> {
        let namespace = self.namespace;
        self.iter().find(|child| {
            let key = child.object.key();
            key.name() == name
                && (namespace.is_none() || key.namespace().is_none() || key.namespace() == namespace)
        })
    }

    /// The one with this name in this namespace, for cluster-scoped parents.
    pub fn get_in(&self, namespace: &str, name: &str) -> Option<Child<'a>> {
        self.iter().find(|child| {
            let key = child.object.key();
            key.name() == name && key.namespace() == Some(namespace)
        })
    }

    /// The first of them.
    pub fn first(&self) -> Option<Child<'a>> {
        self.iter().next()
    }

    /// Whether there is one with this name.
    pub fn exists(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

/// One child as it is in the cluster.
#[derive(Clone, Copy)]
pub struct Child<'a> {
    kind: &'a Kind,
    object: &'a Arc<Object>,
}

impl<'a> Child<'a> {
    /// Its kind.
    pub fn kind(&self) -> &'a Kind {
        self.kind
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.object.key().name()
    }

    /// Its namespace, unless its kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&'a str> {
        self.object.key().namespace()
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.is_deleting()
    }

    /// Whether it does what it is there for: see [`readiness`](crate::readiness).
    pub fn readiness(&self) -> Readiness {
        readiness(&self.json())
    }

    /// The whole of it, as JSON.
    pub fn json(&self) -> Value {
        self.object.value()
    }

    /// The whole of it, as a type.
    ///
    /// # Errors
    /// If it does not fit the type; the error names the child and the field.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(self.object.parse()?)
    }
}

/// A parent's children of one kind, as a type.
pub struct TypedChildren<'a, T> {
    pub(super) all: Children<'a>,
    pub(super) kind: Kind,
    pub(super) typed: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> TypedChildren<'_, T> {
    fn raw(&self) -> Children<'_> {
        Children { kind: Some(&self.kind), ..self.all }
    }

    /// One by one, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = Result<T, Error>> {
        self.raw().iter().map(|child| child.parse())
    }

    /// The first with this name; see [`Children::get`].
    ///
    /// # Errors
    /// If it does not fit the type.
    pub fn get(&self, name: &str) -> Result<Option<T>, Error> {
        self.raw().get(name).map(|child| child.parse()).transpose()
    }

    /// The one with this name in this namespace.
    ///
    /// # Errors
    /// If it does not fit the type.
    pub fn get_in(&self, namespace: &str, name: &str) -> Result<Option<T>, Error> {
        self.raw().get_in(namespace, name).map(|child| child.parse()).transpose()
    }

    /// The first of them.
    ///
    /// # Errors
    /// If it does not fit the type.
    pub fn first(&self) -> Result<Option<T>, Error> {
        self.raw().first().map(|child| child.parse()).transpose()
    }

    /// Whether there is one with this name. Parses nothing.
    pub fn exists(&self, name: &str) -> bool {
        self.raw().exists(name)
    }

    /// How many there are. Parses nothing.
    pub fn count(&self) -> usize {
        self.raw().count()
    }

    /// Whether there are none. Parses nothing.
    pub fn is_empty(&self) -> bool {
        self.raw().is_empty()
    }
}
