//! Kubernetes Events about objects, as `kubectl describe` shows them.
//!
//! ```text
//! EventSink::emit ─▶ bounded buffer ─▶ EventBook (pure: write, count or suppress) ─▶ EventWriter ─▶ API
//! ```
//!
//! - Emitting never waits and never fails. What cannot be written is dropped and counted in
//!   `mainstay_event_drops_total`.
//! - The same event of the same object becomes one series with a count, not many events.
//! - One object cannot flood the API: new events of it are limited, in bursts and in rate.
//! - Memory is bounded, whatever happens.

mod book;
mod recent;
mod sink;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::ObjectRef;
pub use book::{Emit, EventBook, Limits, Suppressed, Written};
pub use sink::{EventSink, EventWriter, Reporter, channel};

/// Bytes of a note, as the API server limits it.
const NOTE_BYTES_MAX: usize = 1024;
/// Bytes of a reason, an action or the name of an instance.
const WORD_BYTES_MAX: usize = 128;

/// Whether an event is of interest or needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something went as it should.
    Normal,
    /// Something may need attention.
    Warning,
}

impl Severity {
    /// As events carry it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something that happened to an object, said to whoever looks at the object.
///
/// ```
/// use mainstay::events::Event;
///
/// let event = Event::warning("ImageMissing", "image shop/web:2 is not in the registry").with_action("Deploy");
/// assert_eq!((event.reason(), event.action()), ("ImageMissing", "Deploy"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    severity: Severity,
    reason: String,
    action: String,
    note: String,
}

impl Event {
    /// Something went as it should. The reason is one CamelCase word, for machines; the note is for people.
    pub fn normal(reason: &str, note: &str) -> Self {
        Self::new(Severity::Normal, reason, note)
    }

    /// Something may need attention.
    pub fn warning(reason: &str, note: &str) -> Self {
        Self::new(Severity::Warning, reason, note)
    }

    /// Either. What is longer than the API server accepts is cut: notes at 1024 bytes, reasons at 128.
    pub fn new(severity: Severity, reason: &str, note: &str) -> Self {
        let (reason, note) = (cut(reason, WORD_BYTES_MAX).to_owned(), cut(note, NOTE_BYTES_MAX).to_owned());
        Self { severity, reason, action: "Sync".to_owned(), note }
    }

    /// Names what was being done; `Sync` otherwise.
    #[must_use]
    pub fn with_action(mut self, action: &str) -> Self {
        cut(action, WORD_BYTES_MAX).clone_into(&mut self.action);
        self
    }

    /// Whether it needs attention.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What happened, for machines.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What was being done.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// What happened, for people.
    pub fn note(&self) -> &str {
        &self.note
    }
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regarding {
    /// Its kind, namespace and name.
    pub object: ObjectRef,
    /// Its UID: an object that was deleted and made anew is another one.
    pub uid: Arc<str>,
}

impl Regarding {
    /// An object with its UID.
    pub fn new(object: ObjectRef, uid: &str) -> Self {
        Self { object, uid: uid.into() }
    }
}

/// At most so many bytes, whole characters only.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
