//! What servers answer to watches and lists: lines of events, pages of items, refusals.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Object;
use super::shelf::Event;
use super::wire::{ObjectSeed, Shape, Text, Unreadable};

/// Cuts a stream of chunks into lines. A line within one chunk is not copied.
#[derive(Debug, Default)]
pub(super) struct Lines {
    chunk: Bytes,
    /// The beginning of a line whose end is still to come.
    begun: Vec<u8>,
}

impl Lines {
    /// Takes the next chunk, after all lines of the one before were taken.
    pub(super) fn feed(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// The next whole line, without its end.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let Some(end) = self.chunk.iter().position(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return None;
        };
        let mut line = self.chunk.split_to(end + 1);
        line.truncate(end);
        if self.begun.is_empty() {
            return Some(line);
        }
        self.begun.extend_from_slice(&line);
        Some(std::mem::take(&mut self.begun).into())
    }
}

/// What a line of a watch says.
#[derive(Debug)]
pub(super) enum Line {
    Event(Event),
    /// An object that cannot be kept. The rest can.
    Unreadable(Unreadable),
    /// Everything up to a version has been told. `ends_list`: and with it the state at the beginning.
    Bookmark {
        version: String,
        ends_list: bool,
    },
    Refused(Refusal),
    /// Of a type that nobody knows yet.
    Unknown,
}

/// A server's word that it won't.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Option<StatusDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusDetails {
    retry_after_seconds: u64,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let seconds = status.details.map_or(0, |details| details.retry_after_seconds);
        Self {
            code: status.code,
            reason: status.reason,
            message: status.message,
            retry_after: Some(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs),
        }
    }
}

impl Refusal {
    /// From an answer with an error code: a `Status`, or whatever a proxy writes.
    pub(super) fn read(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        const TEXT_MAX: usize = 200;
        let status: Option<Status> = serde_json::from_slice(body).ok();
        let mut refusal = status.map_or_else(
            || Self {
                code,
                reason: String::new(),
                message: String::from_utf8_lossy(body).trim().chars().take(TEXT_MAX).collect(),
                retry_after: None,
            },
            Self::from,
        );
        refusal.code = code;
        refusal.retry_after = retry_after.or(refusal.retry_after);
        refusal
    }
}

/// Reads a line of a watch in one pass.
pub(super) fn read_line(shape: &Shape, scratch: &mut String, line: &[u8]) -> Result<Line, serde_json::Error> {
    let mut text = serde_json::Deserializer::from_slice(line);
    let line = text.deserialize_map(LineVisitor { shape, scratch })?;
    text.end()?;
    Ok(line)
}

struct LineVisitor<'a> {
    shape: &'a Shape,
    scratch: &'a mut String,
}

impl<'de> Visitor<'de> for LineVisitor<'_> {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let mut event_type: Option<Text<'de>> = None;
        let mut line = None;
        let mut early: Option<&'de RawValue> = None;
        while let Some(Text(name)) = map.next_key()? {
            match (&*name, &event_type) {
                ("type", _) => event_type = Some(map.next_value()?),
                ("object", Some(Text(event_type))) => {
                    let seed = ContentSeed { event_type, shape: self.shape, scratch: self.scratch };
                    line = Some(map.next_value_seed(seed)?);
                }
                // Servers write the type first, but nothing says they must.
                ("object", None) => early = Some(map.next_value()?),
                _ => drop(map.next_value::<&RawValue>()?),
            }
        }
        if let (Some(raw), Some(Text(event_type))) = (early, &event_type) {
            let seed = ContentSeed { event_type, shape: self.shape, scratch: self.scratch };
            let content = seed.deserialize(&mut serde_json::Deserializer::from_str(raw.get()));
            line = Some(content.map_err(serde::de::Error::custom)?);
        }
        line.ok_or_else(|| serde::de::Error::missing_field("object"))
    }
}

/// The object of an event, by the event's type.
struct ContentSeed<'a> {
    event_type: &'a str,
    shape: &'a Shape,
    scratch: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for ContentSeed<'_> {
    type Value = Line;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Line, D::Error> {
        let Self { event_type, shape, scratch } = self;
        let event: fn(Object) -> Event = match event_type {
            "ADDED" | "MODIFIED" => Event::Seen,
            "DELETED" => Event::Gone,
            "BOOKMARK" => return Ok(Bookmark::deserialize(deserializer)?.into()),
            "ERROR" => return Ok(Line::Refused(Status::deserialize(deserializer)?.into())),
            _ => {
                IgnoredAny::deserialize(deserializer)?;
                return Ok(Line::Unknown);
            }
        };
        Ok(match (ObjectSeed { shape, scratch }).deserialize(deserializer)? {
            Ok(object) => Line::Event(event(object)),
            Err(unreadable) => Line::Unreadable(unreadable),
        })
    }
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl From<Bookmark> for Line {
    fn from(Bookmark { metadata }: Bookmark) -> Self {
        let end = metadata.annotations.and_then(|mut all| all.remove("k8s.io/initial-events-end"));
        Self::Bookmark { version: metadata.resource_version, ends_list: end.as_deref() == Some("true") }
    }
}

/// What a page of a list says beside its items.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Page {
    pub(super) resource_version: String,
    /// The token of the next page; empty for the last one.
    #[serde(rename = "continue")]
    pub(super) next: String,
}

/// Reads a page, giving away each item as soon as it is read.
pub(super) fn read_page(
    shape: &Shape,
    scratch: &mut String,
    page: &[u8],
    take: &mut dyn FnMut(Result<Object, Unreadable>),
) -> Result<Page, serde_json::Error> {
    let mut text = serde_json::Deserializer::from_slice(page);
    let page = text.deserialize_map(PageVisitor { shape, scratch, take })?;
    text.end()?;
    Ok(page)
}

struct PageVisitor<'a> {
    shape: &'a Shape,
    scratch: &'a mut String,
    take: &'a mut dyn FnMut(Result<Object, Unreadable>),
}

impl<'de> Visitor<'de> for PageVisitor<'_> {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page, A::Error> {
        let Self { shape, scratch, take } = self;
        let mut page = None;
        let mut listed = false;
        while let Some(Text(name)) = map.next_key()? {
            match &*name {
                "metadata" => page = Some(map.next_value()?),
                "items" => {
                    listed = true;
                    map.next_value_seed(ItemsSeed { shape, scratch, take })?;
                }
                _ => drop(map.next_value::<&RawValue>()?),
            }
        }
        // Something else must not be taken for an empty list.
        if !listed {
            return Err(serde::de::Error::missing_field("items"));
        }
        page.ok_or_else(|| serde::de::Error::missing_field("metadata"))
    }
}

struct ItemsSeed<'a> {
    shape: &'a Shape,
    scratch: &'a mut String,
    take: &'a mut dyn FnMut(Result<Object, Unreadable>),
}

impl<'de> DeserializeSeed<'de> for ItemsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    /// No items, as Go writes an empty list that nobody made.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { shape, scratch, take } = self;
        while let Some(item) = items.next_element_seed(ObjectSeed { shape, scratch })? {
            take(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
