//! One object in compact form: its JSON text, and the few facts that are needed without parsing it.
//!
//! An [`Object`] is one allocation of exactly the size of its text, which has no `managedFields` and none of the
//! fields that its cache drops, and a header of fixed size. The header holds positions in the text, not copies of it.
//! Objects never change: a newer version is another `Object`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::parts;
use super::wire::{self, Shape, Unreadable};
use super::{Options, Selector};
use crate::kind::{Key, Kind, ObjectRef};
use crate::typed::{self, Misfit};

/// A part of an object's text. Empty when there is no such part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    fn of(self, text: &str) -> &str {
        // Spans are made together with the text that they point into.
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// What of an object is needed without parsing its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) revision: u64,
    pub(super) generation: i64,
    pub(super) uid: Span,
    pub(super) resource_version: Span,
    pub(super) controller: Span,
    pub(super) labels: Span,
    pub(super) annotations: Span,
    pub(super) owners: Span,
    pub(super) deleting: bool,
}

/// One object of any kind in compact form, shared as `Arc<Object>`.
#[derive(Clone)]
pub struct Object {
    kind: Kind,
    key: Key,
    header: Header,
    json: Box<str>,
}

/// An object's text does not fit the type that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{object}: {} does not fit its type", if field == "." { "the object" } else { field })]
pub struct ParseError {
    /// Which object.
    pub object: ObjectRef,
    /// The field, as `spec.containers[0].image`, or `.` for the object itself.
    pub field: String,
    /// What is wrong with it.
    #[source]
    pub source: serde_json::Error,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The owner's group and version.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether it is the one that controls the object.
    #[serde(default)]
    pub controller: bool,
}

impl Object {
    /// Reads an object of a kind from JSON, as a server answers with it. `apiVersion` and `kind` are set to the kind's.
    pub fn read(kind: &Kind, json: &[u8]) -> Result<Self, Unreadable> {
        wire::read_object(&Shape::new(kind, &Options::default()), json)
    }

    /// The same from a tree.
    pub fn from_value(kind: &Kind, value: &Value) -> Result<Self, Unreadable> {
        Self::read(kind, value.to_string().as_bytes())
    }

    pub(super) fn assemble(kind: Kind, key: Key, header: Header, json: Box<str>) -> Self {
        Self { kind, key, header, json }
    }

    /// Its kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its namespace and name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its kind and key.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { kind: self.kind.clone(), key: self.key.clone() }
    }

    /// Its uid, empty if it has none (a server always gives one).
    pub fn uid(&self) -> &str {
        self.header.uid.of(&self.json)
    }

    /// Its `resourceVersion` as a number, by which two versions can be compared; 0 if it is no number.
    pub fn revision(&self) -> u64 {
        self.header.revision
    }

    /// Its `resourceVersion` as the server wrote it.
    pub fn resource_version(&self) -> &str {
        self.header.resource_version.of(&self.json)
    }

    /// Its `generation`, 0 for kinds that have none.
    pub fn generation(&self) -> i64 {
        self.header.generation
    }

    /// Whether `deletionTimestamp` is set.
    pub fn is_deleting(&self) -> bool {
        self.header.deleting
    }

    /// The uid of the owner that controls it.
    pub fn controller_uid(&self) -> Option<&str> {
        Some(self.header.controller.of(&self.json)).filter(|uid| !uid.is_empty())
    }

    /// Its owners, parsed now.
    pub fn owners(&self) -> Vec<Owner> {
        serde_json::from_str(self.header.owners.of(&self.json)).unwrap_or_default()
    }

    /// Its labels, parsed now.
    pub fn labels(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        parts::text_map(self.header.labels.of(&self.json))
    }

    /// One label.
    pub fn label(&self, name: &str) -> Option<String> {
        parts::text_entry(self.header.labels.of(&self.json), name)
    }

    /// Its annotations, parsed now.
    pub fn annotations(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        parts::text_map(self.header.annotations.of(&self.json))
    }

    /// One annotation, without parsing the rest of the object.
    pub fn annotation(&self, name: &str) -> Option<String> {
        parts::text_entry(self.header.annotations.of(&self.json), name)
    }

    /// Whether both have the same labels and annotations, without parsing them.
    pub(crate) fn is_labelled_as(&self, other: &Self) -> bool {
        let parts = |object: &Self| [object.header.labels, object.header.annotations];
        let texts = parts(self).into_iter().zip(parts(other));
        texts.into_iter().all(|(mine, theirs)| mine.of(&self.json) == theirs.of(&other.json))
    }

    /// Whether a selector selects it.
    pub fn is_selected_by(&self, selector: &Selector) -> bool {
        selector.is_everything() || selector.matches(&self.labels())
    }

    /// One field by its JSON pointer (`/spec/replicas`), without building the tree around it.
    pub fn field(&self, pointer: &str) -> Option<Value> {
        parts::pointed_at(&self.json, pointer)
    }

    /// The whole object as a tree.
    pub fn value(&self) -> Value {
        // The text is JSON of bounded depth, or it would not have been read.
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// The whole object as a type. The error names the field that does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ParseError> {
        typed::read(&self.json).map_err(|Misfit { field, error }| ParseError {
            object: self.reference(),
            field,
            source: error,
        })
    }

    /// Its text, without `managedFields` and what its cache drops.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Bytes that it takes, all told: itself, its text, and the counters of what is shared.
    pub(crate) fn allocated_bytes(&self) -> usize {
        const COUNTERS: usize = 2 * size_of::<usize>();
        let namespace = self.key.namespace().map_or(0, |namespace| COUNTERS + namespace.len());
        let name = COUNTERS + self.key.name().len();
        COUNTERS + size_of::<Self>() + self.json.len() + namespace + name
    }
}

/// Which object and version, not what is in it: objects hold secrets.
impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} @{}", self.kind, self.key, self.resource_version())
    }
}

/// The same object in the same form.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.json == other.json
    }
}

impl Eq for Object {}
