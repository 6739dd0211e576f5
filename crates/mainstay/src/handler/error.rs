//! Why a handler could not decide.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::cache::ParseError;
use crate::kind::Kind;

/// What a handler returns when it cannot decide. Any error turns into one by `?`.
///
/// Nothing is changed on account of an error. What differs is when the parent is looked at again: after a backoff
/// ([`Error::new`]), after a given time ([`Error::retry_after`]), or only once it has changed ([`Error::terminal`]).
pub struct Error {
    kind: ErrorKind,
    source: Box<dyn StdError + Send + Sync>,
}

/// What follows from an [`Error`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Tried again after a backoff that grows.
    Retry,
    /// Tried again after this time; the backoff neither grows nor applies.
    RetryAfter(Duration),
    /// Not tried again before the parent has changed.
    Terminal,
    /// The parent does not fit the type it was read as. Terminal, and told to whoever wrote the parent: as a
    /// condition and an event on it, with the path of the field.
    InvalidParent {
        /// Where in the parent: `spec.replicas`.
        path: String,
    },
    /// Objects of a kind were asked for whose cache is still being filled. No failure: the sync runs once it is.
    Pending(Kind),
}

impl Error {
    /// An error after which the parent is tried again, with a growing backoff.
    pub fn new(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind: ErrorKind::Retry, source: source.into() }
    }

    /// An error after which the parent is tried again in a given time.
    pub fn retry_after(after: Duration, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind: ErrorKind::RetryAfter(after), source: source.into() }
    }

    /// An error that trying again would not mend: the parent rests until it has changed.
    pub fn terminal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind: ErrorKind::Terminal, source: source.into() }
    }

    pub(crate) fn invalid_parent(error: ParseError) -> Self {
        Self { kind: ErrorKind::InvalidParent { path: error.field }, source: Box::new(error.source) }
    }

    pub(crate) fn pending(kind: &Kind) -> Self {
        let source = format!("the cache of {kind} is still being filled").into();
        Self { kind: ErrorKind::Pending(kind.clone()), source }
    }

    /// What follows from it.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What went wrong, with its sources, in one line.
    pub fn chain(&self) -> String {
        let mut text = match &self.kind {
            ErrorKind::InvalidParent { path } if path != "." => format!("{path}: {}", self.source),
            _ => self.source.to_string(),
        };
        let mut source = self.source.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.chain())
    }
}
