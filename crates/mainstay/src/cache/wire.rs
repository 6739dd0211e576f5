//! JSON as servers send it, made into compact [`Object`]s in one pass and without a tree.
//!
//! `metadata` is walked; everything else is copied as it stands, or left out. What comes out is what parsing, removing
//! and printing would give. `apiVersion` and `kind` are always those of the kind: items of a list have none, and
//! metadata-only answers have others.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Options;
use super::object::{Header, Object, Span};
use super::prune::{Fate, Places, Prune};
use crate::kind::{Key, Kind};

/// Deeper text is refused, since the parser of trees and types stops at 128.
const DEPTH_MAX: usize = 127;

/// Why an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON object of the expected shape.
    #[error("the text is no object")]
    Json(#[source] serde_json::Error),
    /// It has no name.
    #[error("the object has no metadata.name")]
    Nameless,
    /// It cannot be parsed without risk for the stack.
    #[error("object {name} is nested deeper than {DEPTH_MAX} levels")]
    TooDeep {
        /// Its name.
        name: String,
    },
    /// It has more than 4 GiB.
    #[error("object {name} is larger than 4 GiB")]
    TooLarge {
        /// Its name.
        name: String,
    },
}

/// What is kept of the objects of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    kind: Kind,
    /// The beginning of every text: `{"apiVersion":…,"kind":…`.
    prefix: String,
    prune: Prune,
    metadata_only: bool,
}

impl Shape {
    pub(crate) fn new(kind: &Kind, options: &Options) -> Self {
        let mut prefix = String::from("{\"apiVersion\":");
        push_text(&kind.api_version(), &mut prefix);
        prefix.push_str(",\"kind\":");
        push_text(kind.kind(), &mut prefix);
        Self {
            kind: kind.clone(),
            prefix,
            prune: options.prune.clone(),
            metadata_only: options.metadata_only,
        }
    }
}

/// Reads one object.
pub(crate) fn read_object(shape: &Shape, json: &[u8]) -> Result<Object, Unreadable> {
    let mut text = serde_json::Deserializer::from_slice(json);
    let object =
        ObjectSeed { shape, scratch: &mut String::new() }.deserialize(&mut text).map_err(Unreadable::Json)?;
    text.end().map_err(Unreadable::Json)?;
    object
}

/// Reads an object where the deserialiser stands. `scratch` is where its text grows; it is kept from object to object.
/// Text that is no object at all is the deserialiser's error; an object that cannot be kept is the inner one, so that
/// the rest of a list can still be read.
pub(super) struct ObjectSeed<'a> {
    pub(super) shape: &'a Shape,
    pub(super) scratch: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = Result<Object, Unreadable>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = Result<Object, Unreadable>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self { shape, scratch: out } = self;
        out.clear();
        out.push_str(&shape.prefix);
        let start = shape.prune.start();
        let mut metadata = Metadata::default();
        while let Some(Text(name)) = map.next_key()? {
            match &*name {
                "apiVersion" | "kind" => {
                    map.next_value::<IgnoredAny>()?;
                }
                "metadata" => {
                    out.push_str(",\"metadata\":");
                    let places = match start.entry("metadata") {
                        Fate::Walked(places) => places,
                        // `Prune` never drops the whole of it.
                        Fate::Kept | Fate::Dropped => Places::default(),
                    };
                    metadata = map.next_value_seed(MetadataSeed { places: &places, out })?;
                }
                _ if shape.metadata_only => {
                    map.next_value::<IgnoredAny>()?;
                }
                name => drop(push_entry(&mut map, name, &start.entry(name), true, out)?),
            }
        }
        out.push('}');
        Ok(metadata.into_object(shape, out))
    }
}

/// What is learned while `metadata` is copied.
#[derive(Default)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    header: Header,
}

impl Metadata {
    fn into_object(self, shape: &Shape, json: &str) -> Result<Object, Unreadable> {
        let Self { name, namespace, header } = self;
        if name.is_empty() {
            return Err(Unreadable::Nameless);
        }
        if u32::try_from(json.len()).is_err() {
            return Err(Unreadable::TooLarge { name });
        }
        if depth(json) > DEPTH_MAX {
            return Err(Unreadable::TooDeep { name });
        }
        let key = Key::new(namespace.as_deref().filter(|namespace| !namespace.is_empty()), &name);
        Ok(Object::assemble(shape.kind.clone(), key, header, json.into()))
    }
}

struct MetadataSeed<'a> {
    places: &'a Places<'a>,
    out: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for MetadataSeed<'_> {
    type Value = Metadata;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Metadata, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
        let Self { places, out } = self;
        let mut found = Metadata::default();
        out.push('{');
        let mut later = false;
        while let Some(Text(name)) = map.next_key()? {
            if name == "managedFields" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if let Some(start) = push_entry(&mut map, &name, &places.entry(&name), later, out)? {
                later = true;
                found.learn(&name, out, start).map_err(A::Error::custom)?;
            }
        }
        out.push('}');
        Ok(found)
    }
}

impl Metadata {
    /// Takes from the value that was just written, the end of `out`, what the header needs.
    fn learn(&mut self, name: &str, out: &str, start: usize) -> Result<(), serde_json::Error> {
        let value = &out[start..];
        let whole = span(start, out.len());
        // Servers write uids and versions without characters that JSON escapes.
        let inside_quotes =
            if value.starts_with('"') { span(start + 1, out.len() - 1) } else { Span::default() };
        match name {
            "name" => self.name = serde_json::from_str(value)?,
            "namespace" => self.namespace = serde_json::from_str(value)?,
            "uid" => self.header.uid = inside_quotes,
            "resourceVersion" => {
                self.header.resource_version = inside_quotes;
                self.header.revision = value.trim_matches('"').parse().unwrap_or_default();
            }
            "generation" => self.header.generation = value.parse().unwrap_or_default(),
            "deletionTimestamp" => self.header.deleting = value != "null",
            "labels" => self.header.labels = whole,
            "annotations" => self.header.annotations = whole,
            "ownerReferences" => {
                self.header.owners = whole;
                self.header.controller = controller(value, start)?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn span(start: usize, end: usize) -> Span {
    // Whatever does not fit is refused with the whole object.
    let position = |position| u32::try_from(position).unwrap_or(u32::MAX);
    Span { start: position(start), end: position(end) }
}

/// Where in the text the uid of the controlling owner is.
fn controller(owners: &str, start: usize) -> Result<Span, serde_json::Error> {
    #[derive(Deserialize)]
    struct Reference<'a> {
        #[serde(borrow)]
        uid: Text<'a>,
        #[serde(default)]
        controller: Option<bool>,
    }
    let references: Option<Vec<Reference<'_>>> = serde_json::from_str(owners)?;
    let controlling = references.into_iter().flatten().find(|owner| owner.controller == Some(true));
    Ok(match controlling {
        // It is borrowed from `owners`, so the distance between the two is its position.
        Some(Reference { uid: Text(Cow::Borrowed(uid)), .. }) => {
            let offset = start + (uid.as_ptr().addr() - owners.as_ptr().addr());
            span(offset, offset + uid.len())
        }
        _ => Span::default(),
    })
}

/// Writes an entry of a map and says where its value begins, or leaves it out.
fn push_entry<'de, A: MapAccess<'de>>(
    map: &mut A,
    name: &str,
    fate: &Fate<'_>,
    later: bool,
    out: &mut String,
) -> Result<Option<usize>, A::Error> {
    if matches!(fate, Fate::Dropped) {
        map.next_value::<IgnoredAny>()?;
        return Ok(None);
    }
    if later {
        out.push(',');
    }
    push_text(name, out);
    out.push(':');
    let start = out.len();
    let raw: &RawValue = map.next_value()?;
    push_value(raw.get(), fate, out).map_err(A::Error::custom)?;
    Ok(Some(start))
}

/// Writes a value without what is dropped below it.
fn push_value(raw: &str, fate: &Fate<'_>, out: &mut String) -> Result<(), serde_json::Error> {
    match fate {
        Fate::Walked(places) if raw.starts_with(['{', '[']) => {
            serde_json::Deserializer::from_str(raw).deserialize_any(PrunedVisitor { places, out })
        }
        _ => {
            out.push_str(raw);
            Ok(())
        }
    }
}

struct PrunedVisitor<'a> {
    places: &'a Places<'a>,
    out: &'a mut String,
}

impl<'de> Visitor<'de> for PrunedVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.out.push('{');
        let mut later = false;
        while let Some(Text(name)) = map.next_key()? {
            later |= push_entry(&mut map, &name, &self.places.entry(&name), later, self.out)?.is_some();
        }
        self.out.push('}');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.out.push('[');
        let fate = self.places.item();
        let mut later = false;
        while let Some(raw) = items.next_element::<&RawValue>()? {
            if matches!(fate, Fate::Dropped) {
                continue;
            }
            if std::mem::replace(&mut later, true) {
                self.out.push(',');
            }
            push_value(raw.get(), &fate, self.out).map_err(A::Error::custom)?;
        }
        self.out.push(']');
        Ok(())
    }
}

/// Text that is borrowed when it can be.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

fn push_text(text: &str, out: &mut String) {
    // Names of fields hardly ever need an escape; those that do are printed by the crate that knows how.
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// How deep maps and lists are nested.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                // To the end of the string.
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
