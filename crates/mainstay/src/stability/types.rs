//! What is told to the detector of loops, and what it says.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use crate::queue::Backoff;
use crate::{Kind, ObjectRef};

/// A value as far as it matters here: equal values have equal fingerprints, others almost certainly not.
///
/// Means something only within the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// That there is no value.
    pub const NONE: Self = Self(0);

    /// The fingerprint of a value.
    pub fn of(value: &(impl Hash + ?Sized)) -> Self {
        // This hasher has no random part: a simulation that is run again makes the same fingerprints.
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The fingerprint of several values, whatever their order.
    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

/// One pass over a parent that was carried out.
#[derive(Debug)]
pub struct Pass<'a, P> {
    /// What the parent asks for: its generation, and whatever else of it the handler goes by (labels, annotations).
    /// A change of it starts everything afresh.
    pub asked: Fingerprint,
    /// What others have made of the objects that the decision saw: the status of each child, the resource version of
    /// each related object. May be left empty if nothing was written.
    pub seen: &'a [(ObjectRef, Fingerprint)],
    /// What was written, successfully.
    pub writes: &'a [Write<P>],
}

/// Something that was written.
#[derive(Debug, Clone)]
pub struct Write<P> {
    /// To which object. The parent is one too, for its status.
    pub object: ObjectRef,
    /// What.
    pub what: Wrote<P>,
}

/// What was written to an object.
///
/// An object that was deleted to be made anew with other values counts as a change of the fields that made that
/// necessary.
#[derive(Debug, Clone)]
pub enum Wrote<P> {
    /// One of its fields.
    Field {
        /// Which.
        path: P,
        /// Its new value; [`Fingerprint::NONE`] if the field was removed.
        to: Fingerprint,
    },
    /// The object was created.
    Created,
    /// The object was deleted.
    Deleted,
}

/// What a parent's passes come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stability<P> {
    /// Nothing was written.
    Quiet,
    /// Something was written, and there is no reason to think that it goes on for ever.
    Changing,
    /// The pass repeated what passes before it had done, for no reason that can be seen.
    Loop(Vec<Spot<P>>),
}

/// What is written again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot<P> {
    /// On what.
    pub subject: Subject,
    /// The fields. Empty if the object itself comes and goes.
    pub paths: Vec<P>,
    /// Why.
    pub cause: Cause,
    /// It must not be written before this time.
    pub until: Instant,
}

/// What a loop is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An object.
    Object(ObjectRef),
    /// The names of children of one kind: each pass deletes some and creates others in their place.
    Names(Kind),
}

/// As people say it: `Service.v1 shop/web`, or `the names of Service.v1 children`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => object.fmt(f),
            Self::Names(kind) => write!(f, "the names of {kind} children"),
        }
    }
}

/// Why something is written again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// What is desired differs each time though nothing changed that it could follow: a time, a random value, a
    /// count of its own syncs.
    Unstable,
    /// The same is desired each time, and somebody else changes it back.
    Fought,
}

/// The same words for as long as the same goes on, so that a condition with them is not itself written each time.
impl<P: fmt::Display> fmt::Display for Spot<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)?;
        for (at, path) in self.paths.iter().enumerate() {
            write!(f, "{} {path}", if at == 0 { ":" } else { "," })?;
        }
        f.write_str(match self.cause {
            Cause::Unstable => {
                ": every sync gives another value, though nothing changed that it could depend on"
            }
            Cause::Fought => ": somebody else changes it back each time",
        })
    }
}

/// When repetition counts as a loop, and how it is slowed down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopSettings {
    /// So many writes of the same field make a loop.
    pub writes_max: u32,
    /// Within this time. A loop is over when nothing of it was written for as long.
    pub window: Duration,
    /// How long the object is left alone after each further write. Has no jitter.
    pub backoff: Backoff,
}

impl Default for LoopSettings {
    /// Five writes within an hour; then ten seconds, doubled each time up to ten minutes.
    fn default() -> Self {
        Self {
            writes_max: 5,
            window: Duration::from_hours(1),
            backoff: Backoff { initial: Duration::from_secs(10), jitter: 0.0, ..Backoff::default() },
        }
    }
}
