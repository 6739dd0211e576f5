//! One object as the store holds it, and a change of it.

use super::{Fate, Revision};
use crate::status::ApiError;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// An object's place in its collection. Ordered as lists are: by namespace, then name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        // Keys of a namespace mostly share its text, and then need not compare it.
        let namespaces = if Arc::ptr_eq(&self.namespace, &other.namespace) {
            Ordering::Equal
        } else {
            self.namespace.cmp(&other.namespace)
        };
        namespaces.then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One object as of one revision.
#[derive(Debug)]
pub(crate) struct Object {
    pub key: Key,
    pub revision: Revision,
    /// The serialised object, `metadata.resourceVersion` included, `apiVersion` and `kind` left out: they
    /// are the same for all objects of a collection and depend on the version a client asks for.
    pub json: Bytes,
    labels: OnceLock<Option<Box<Map<String, Value>>>>,
}

/// A stored object that this server cannot read. Nothing is decided on it: it is not an empty object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the stored object {name:?} of revision {revision}: {why}")]
pub(crate) struct Unreadable {
    /// Namespace and name, or only the name.
    pub name: String,
    pub revision: Revision,
    pub why: String,
}

impl From<Unreadable> for ApiError {
    fn from(error: Unreadable) -> Self {
        ApiError::internal(error)
    }
}

impl Object {
    pub(crate) fn new(key: Key, revision: Revision, json: Bytes) -> Self {
        Object { key, revision, json, labels: OnceLock::new() }
    }

    /// The object as a tree.
    pub(crate) fn value(&self) -> Result<Value, Unreadable> {
        self.read()
    }

    /// What of the object a type names. The rest is skipped, however deep it is.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        serde_json::from_slice(&self.json).map_err(|error| self.unreadable(error))
    }

    /// Says of this object that it cannot be read.
    pub(crate) fn unreadable(&self, why: impl std::fmt::Display) -> Unreadable {
        let (namespace, name) = (&self.key.namespace, &self.key.name);
        let name = if namespace.is_empty() { name.to_string() } else { format!("{namespace}/{name}") };
        Unreadable { name, revision: self.revision, why: why.to_string() }
    }

    /// Whether this stands anywhere in the object's text: a cheap way to see that an object has no such field
    /// or value. Objects that mention it are read to be sure.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        memchr::memmem::find(&self.json, text.as_bytes()).is_some()
    }

    /// The object's labels, read once when somebody first selects by them.
    pub(crate) fn labels(&self) -> Result<Option<&Map<String, Value>>, Unreadable> {
        #[derive(serde::Deserialize, Default)]
        struct Meta {
            #[serde(default)]
            labels: Option<Box<Map<String, Value>>>,
        }
        #[derive(serde::Deserialize, Default)]
        struct Labelled {
            #[serde(default)]
            metadata: Meta,
        }
        if let Some(known) = self.labels.get() {
            return Ok(known.as_deref());
        }
        let labels = self.read::<Labelled>()?.metadata.labels;
        Ok(self.labels.get_or_init(|| labels).as_deref())
    }
}

/// An object among the others of its collection, found by its key without a second copy of that.
#[derive(Clone, Debug)]
pub(super) struct Placed(pub Arc<Object>);

impl Borrow<Key> for Placed {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Placed {}

/// A serialised object that lacks only its revision: the costly part of a write, done before the store is
/// locked.
pub(super) struct Draft {
    text: Vec<u8>,
    /// Where the revision belongs.
    at: usize,
}

const REVISION_FIELD: &str = "resourceVersion";

/// A buffer that grew larger than this is not kept for the next draft.
const BUFFER_KEPT_MAX: usize = 64 << 10;

thread_local! {
    /// The last draft's buffer, so that each need not grow one.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.text.capacity() <= BUFFER_KEPT_MAX {
            BUFFER.set(std::mem::take(&mut self.text));
        }
    }
}

impl Draft {
    pub(super) fn of(tree: &Value) -> Result<Draft, serde_json::Error> {
        let mut draft = Draft { text: BUFFER.take(), at: 0 };
        draft.text.clear();
        let none = Map::new();
        let fields = tree.as_object().unwrap_or(&none);
        draft.text.push(b'{');
        for (name, value) in fields {
            match name.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    draft.name(name)?;
                    draft.metadata(value.as_object().unwrap_or(&none))?;
                }
                _ => draft.field(name, value)?,
            }
        }
        if draft.at == 0 {
            draft.name("metadata")?;
            draft.metadata(&none)?;
        }
        draft.text.push(b'}');
        Ok(draft)
    }

    /// The metadata with the revision in its place, in the order of names.
    fn metadata(&mut self, metadata: &Map<String, Value>) -> Result<(), serde_json::Error> {
        self.text.push(b'{');
        for (name, value) in metadata.iter().filter(|(name, _)| *name != REVISION_FIELD) {
            if self.at == 0 && name.as_str() > REVISION_FIELD {
                self.revision()?;
            }
            self.field(name, value)?;
        }
        if self.at == 0 {
            self.revision()?;
        }
        self.text.push(b'}');
        Ok(())
    }

    fn revision(&mut self) -> Result<(), serde_json::Error> {
        self.name(REVISION_FIELD)?;
        self.text.push(b'"');
        self.at = self.text.len();
        self.text.push(b'"');
        Ok(())
    }

    fn field(&mut self, name: &str, value: &Value) -> Result<(), serde_json::Error> {
        self.name(name)?;
        serde_json::to_writer(&mut self.text, value)
    }

    fn name(&mut self, name: &str) -> Result<(), serde_json::Error> {
        if self.text.last() != Some(&b'{') {
            self.text.push(b',');
        }
        serde_json::to_writer(&mut self.text, name)?;
        self.text.push(b':');
        Ok(())
    }

    /// How long the text is without its revision, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The object's text as of a revision, in a buffer that is not larger than it.
    pub(super) fn text(&self, revision: Revision) -> Bytes {
        let (before, after) = self.text.split_at(self.at);
        [before, revision.to_string().as_bytes(), after].concat().into()
    }
}

/// A change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub revision: Revision,
    /// The new state; for a deletion the last state, under the deletion's revision.
    pub object: Arc<Object>,
    /// The state that was replaced.
    pub previous: Option<Arc<Object>>,
    pub fate: Fate,
    line: Mutex<Line>,
}

/// An event's line, kept for as long as many are likely to ask for it.
#[derive(Debug)]
enum Line {
    NotYet,
    Made(Box<Made>),
    NotKept,
}

#[derive(Debug)]
struct Made {
    prefix: Bytes,
    line: Bytes,
}

impl Event {
    pub(super) fn new(object: Arc<Object>, previous: Option<Arc<Object>>, fate: Fate) -> Event {
        Event { revision: object.revision, object, previous, fate, line: Mutex::new(Line::NotYet) }
    }

    /// `ADDED`, `MODIFIED` or `DELETED`, as somebody who watches everything sees it.
    pub(crate) fn kind(&self) -> &'static str {
        match (self.fate, &self.previous) {
            (Fate::Removed, _) => "DELETED",
            (Fate::Kept, None) => "ADDED",
            (Fate::Kept, Some(_)) => "MODIFIED",
        }
    }

    /// The bytes that history keeps alive for this event, beyond the newest state.
    pub(super) fn pinned_bytes(&self) -> usize {
        let removed = if self.fate == Fate::Removed { self.object.json.len() } else { 0 };
        removed + self.previous.as_ref().map_or(0, |o| o.json.len())
    }

    /// The event as a watch sends it to whoever watches everything. `prefix` makes a whole object of a
    /// stored one. While the event is new, the line is made once for all who ask with the same prefix.
    pub(crate) fn line(&self, prefix: &Bytes) -> Bytes {
        let make = || event_line(self.kind(), prefix, &self.object.json);
        let mut kept = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Line::Made(known) if known.prefix == prefix => known.line.clone(),
            Line::NotYet => {
                let line = make();
                *kept = Line::Made(Box::new(Made { prefix: prefix.clone(), line: line.clone() }));
                line
            }
            Line::Made(_) | Line::NotKept => {
                drop(kept);
                make()
            }
        }
    }

    /// Gives up the line: those who follow closely have it.
    pub(super) fn forget_line(&self) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = Line::NotKept;
    }
}

/// A watch event around a stored object.
pub(crate) fn event_line(kind: &str, prefix: &[u8], object: &[u8]) -> Bytes {
    let object = object.get(1..).unwrap_or_default();
    [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", prefix, object, b"}\n"].concat().into()
}
