//! What happened in a world, in order. The same seed gives the same trace, byte for byte.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::fault::{Mishap, Point};
use super::state::Place;

/// Who did something: a program and which of its incarnations, the user, or the server itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actor {
    /// Its name.
    pub name: Arc<str>,
    /// 1 for the first start, and one more with each start after it; 0 for the server itself.
    pub incarnation: u32,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.incarnation > 1 { write!(f, "#{}", self.incarnation) } else { Ok(()) }
    }
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The world's time.
    pub at: Duration,
    /// Who.
    pub actor: Actor,
    /// What.
    pub what: What,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The program started.
    Started,
    /// The program died, by intent.
    Crashed,
    /// The program came to its end by itself.
    Ended {
        /// How: in words.
        how: String,
    },
    /// A request was sent, and answered or not.
    Asked {
        /// Its number, if it is one of the operator under test.
        point: Option<Point>,
        /// `create`, `apply`, `patch`, `update`, `delete`, `get`, `list`, `watch`, …
        verb: &'static str,
        /// What about.
        place: Place,
        /// `status`, `scale`, …; empty for the object itself.
        part: String,
        /// What it was told.
        answer: Answer,
    },
    /// An object was changed: the consequence of a request, or the server's own work.
    Changed {
        /// Which.
        place: Place,
        /// How.
        change: Change,
    },
    /// A watch delivered an event, or did not.
    Told {
        /// Its number, if it is told to the operator under test.
        point: Option<Point>,
        /// `ADDED`, `MODIFIED` or `DELETED`.
        event: &'static str,
        /// Of which object.
        place: Place,
        /// The revision of the object in it.
        revision: u64,
        /// What became of it.
        fate: Fate,
    },
    /// Something went wrong by intent.
    Mishap {
        /// What.
        mishap: Mishap,
        /// Where.
        point: Point,
    },
    /// The script's next step begins.
    Step {
        /// Its number, from 1.
        number: usize,
        /// Its text.
        text: String,
    },
    /// Nothing has changed for a while.
    Settled,
    /// The operator under test is started once more, to see that it finds nothing to do.
    SecondPass,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This status.
    Status(u16),
    /// None: the connection broke, or the sender died first.
    None,
}

/// How an object was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Created,
    /// These fields are others now: `spec.replicas: 1 -> 2`. Values that may be secret are left out.
    Updated(Vec<String>),
    /// It waits for its finalizers.
    Marked,
    /// It is gone.
    Removed,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was delivered.
    Delivered,
    /// It was delivered this much later.
    Late(Duration),
    /// It was delivered twice.
    Twice,
    /// The watch ended before it.
    Withheld,
}

/// All that happened in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace(pub Vec<Entry>);

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Created => f.write_str("created"),
            Change::Updated(fields) => f.write_str(&fields.join(", ")),
            Change::Marked => f.write_str("marked for deletion"),
            Change::Removed => f.write_str("removed"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |point: &Option<Point>| point.map_or_else(String::new, |point| format!(" ({point})"));
        match self {
            What::Started => f.write_str("starts"),
            What::Crashed => f.write_str("crashes"),
            What::Ended { how } => write!(f, "ends: {how}"),
            What::Asked { point, verb, place, part, answer } => {
                let part = if part.is_empty() { String::new() } else { format!(" {part} of") };
                write!(f, "{verb}{part} {place}{}", number(point))?;
                match answer {
                    Answer::Status(code) if (200..300).contains(code) => Ok(()),
                    Answer::Status(code) => write!(f, " -> {code}"),
                    Answer::None => f.write_str(" -> no answer"),
                }
            }
            What::Changed { place, change } => write!(f, "  {place}: {change}"),
            What::Told { point, event, place, revision, fate } => {
                let told = if *fate == Fate::Withheld { "is not told" } else { "is told" };
                write!(f, "{told} {event} {place} @{revision}{}", number(point))?;
                match fate {
                    Fate::Delivered | Fate::Withheld => Ok(()),
                    Fate::Late(time) => write!(f, ", {} s late", time.as_secs_f64()),
                    Fate::Twice => f.write_str(", twice"),
                }
            }
            What::Mishap { mishap, point } => write!(f, "!! {mishap} {point}"),
            What::Step { number, text } => write!(f, "step {number}: {text}"),
            What::Settled => f.write_str("settled"),
            What::SecondPass => f.write_str("second pass"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} {:<12} {}", self.at.as_secs_f64(), self.actor.to_string(), self.what)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}
