//! What goes wrong in a world, and where: plain values with a text form, so that a failure can be printed and replayed.
//!
//! ```
//! use mainstay_testkit::simulation::{Fault, Mishap, Point};
//!
//! let fault: Fault = "crash after write 7".parse().unwrap();
//! assert_eq!(fault, Fault { mishap: Mishap::CrashAfter, point: Point::Write(7) });
//! assert_eq!(fault.to_string(), "crash after write 7");
//! ```

use std::fmt;
use std::str::FromStr;

/// A place in the life of the operator under test, counted from 1 over all of its incarnations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// A request that may change something, of leases and events neither; or a change of something outside of the
    /// cluster.
    Write(usize),
    /// A get, a list, a question of discovery, or the beginning of a watch.
    Read(usize),
    /// An event that a watch is about to deliver.
    Event(usize),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mishap {
    /// The operator dies before its request leaves, and starts again with empty caches.
    CrashBefore,
    /// The operator dies after its request was carried out and before it learns of it.
    CrashAfter,
    /// The request is refused with this status: 409, 500, 503.
    Refuse(u16),
    /// The request is refused with 429 and a `Retry-After`.
    TooManyRequests,
    /// The connection breaks before the request arrives.
    Reset,
    /// The request is carried out and its answer never arrives.
    LoseAnswer,
    /// The event, and what comes after it on the same watch, arrives a while later.
    Hold,
    /// The watch ends without the event, as when a connection breaks.
    Cut,
    /// The event arrives twice.
    Repeat,
    /// The watch ends with 410 Gone, and history is forgotten: the client must list again.
    Expire,
    /// The watch ends, and no watch or list of this kind is answered for a while; then history is gone. What has happened
    /// meanwhile is seen only by what is left of it.
    Miss,
    /// The operator dies and starts again on an API server that lags behind by so many changes, for a while. Only reads that
    /// Kubernetes may answer from a cache are old.
    Travel(usize),
    /// A second instance starts while the first is stalled for longer than a lease; then both run for a while.
    TwoLeaders,
    /// The operator's clock is set forward or back by so many seconds.
    Jump(i64),
    /// Webhooks do not answer for a while.
    WebhookDown,
}

/// Something that goes wrong at some point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// What.
    pub mishap: Mishap,
    /// Where.
    pub point: Point,
}

/// The text is not that of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault; one reads like \"crash after write 7\"")]
pub struct NoFault(String);

/// All that goes wrong in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// What goes wrong at a point.
    pub fn at(&self, point: Point) -> impl Iterator<Item = Mishap> + '_ {
        self.0.iter().filter(move |fault| fault.point == point).map(|fault| fault.mishap)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Write(number) => write!(f, "write {number}"),
            Point::Read(number) => write!(f, "read {number}"),
            Point::Event(number) => write!(f, "event {number}"),
        }
    }
}

impl Mishap {
    /// Whether this can happen there.
    pub fn can_befall(self, point: Point) -> bool {
        let is_event = matches!(point, Point::Event(_));
        match self {
            Mishap::Hold | Mishap::Cut | Mishap::Repeat | Mishap::Expire | Mishap::Miss => is_event,
            Mishap::Refuse(code) => code >= 400 && !is_event,
            _ => !is_event,
        }
    }
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mishap::CrashBefore => write!(f, "crash before"),
            Mishap::CrashAfter => write!(f, "crash after"),
            Mishap::Refuse(code) => write!(f, "answer {code} to"),
            Mishap::TooManyRequests => write!(f, "answer 429 to"),
            Mishap::Reset => write!(f, "reset before"),
            Mishap::LoseAnswer => write!(f, "lose the answer to"),
            Mishap::Hold => write!(f, "hold"),
            Mishap::Cut => write!(f, "cut before"),
            Mishap::Repeat => write!(f, "repeat"),
            Mishap::Expire => write!(f, "expire at"),
            Mishap::Miss => write!(f, "miss from"),
            Mishap::Travel(changes) => write!(f, "travel {changes} changes back after"),
            Mishap::TwoLeaders => write!(f, "two leaders at"),
            Mishap::Jump(seconds) => write!(f, "clock {seconds:+}s at"),
            Mishap::WebhookDown => write!(f, "webhooks down at"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.mishap, self.point)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (index, fault) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{fault}")?;
        }
        Ok(())
    }
}

impl FromStr for Fault {
    type Err = NoFault;

    fn from_str(text: &str) -> Result<Self, NoFault> {
        parse(text.trim()).ok_or_else(|| NoFault(text.to_owned()))
    }
}

impl FromStr for Faults {
    type Err = NoFault;

    fn from_str(text: &str) -> Result<Self, NoFault> {
        if text.trim() == "nothing" {
            return Ok(Faults::default());
        }
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Faults)
    }
}

fn parse(text: &str) -> Option<Fault> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [mishap @ .., class, number] = words.as_slice() else { return None };
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let point = match *class {
        "write" => Point::Write(number),
        "read" => Point::Read(number),
        "event" => Point::Event(number),
        _ => return None,
    };
    let mishap = match *mishap {
        ["crash", "before"] => Mishap::CrashBefore,
        ["crash", "after"] => Mishap::CrashAfter,
        ["answer", "429", "to"] => Mishap::TooManyRequests,
        ["answer", code, "to"] => Mishap::Refuse(code.parse().ok()?),
        ["reset", "before"] => Mishap::Reset,
        ["lose", "the", "answer", "to"] => Mishap::LoseAnswer,
        ["hold"] => Mishap::Hold,
        ["cut", "before"] => Mishap::Cut,
        ["repeat"] => Mishap::Repeat,
        ["expire", "at"] => Mishap::Expire,
        ["miss", "from"] => Mishap::Miss,
        ["travel", changes, "changes", "back", "after"] => Mishap::Travel(changes.parse().ok()?),
        ["two", "leaders", "at"] => Mishap::TwoLeaders,
        ["clock", jump, "at"] => Mishap::Jump(jump.strip_suffix('s')?.parse().ok()?),
        ["webhooks", "down", "at"] => Mishap::WebhookDown,
        _ => return None,
    };
    mishap.can_befall(point).then_some(Fault { mishap, point })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_can_be_read_back() {
        let mishaps = [
            Mishap::CrashBefore,
            Mishap::CrashAfter,
            Mishap::Refuse(503),
            Mishap::TooManyRequests,
            Mishap::Reset,
            Mishap::LoseAnswer,
            Mishap::Hold,
            Mishap::Cut,
            Mishap::Repeat,
            Mishap::Expire,
            Mishap::Miss,
            Mishap::Travel(4),
            Mishap::TwoLeaders,
            Mishap::Jump(-3600),
            Mishap::WebhookDown,
        ];
        for point in [Point::Write(3), Point::Read(1), Point::Event(12)] {
            let mishaps = mishaps.iter().filter(|mishap| mishap.can_befall(point));
            let faults = Faults(mishaps.map(|mishap| Fault { mishap: *mishap, point }).collect());
            assert_eq!(faults.to_string().parse(), Ok(faults));
        }
        assert_eq!("nothing".parse(), Ok(Faults::default()));
    }

    #[test]
    fn what_is_no_fault_is_refused_by_name() {
        for text in [
            "hold write 1",
            "answer 200 to write 1",
            "crash after event 2",
            "",
            "crash",
            "crash after write",
            "crash after write 0",
            "answer x to write 1",
            "cut before day 2",
        ] {
            assert_eq!(text.parse::<Fault>(), Err(NoFault(text.to_owned())), "{text:?}");
        }
    }
}
