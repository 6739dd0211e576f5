//! Conditions of a status, in the standard shape.
//!
//! - [`Conditions::set`] moves `lastTransitionTime` only when the status changes.
//! - What is not changed is written back as it was read, byte for byte, whoever wrote it and however oddly. A status
//!   whose conditions are all set to what they are is the same status, so it costs no write.
//! - Conditions keep their order; a new one comes last.
//!
//! ```
//! use mainstay::conditions::{Conditions, State};
//! # fn main() -> Result<(), mainstay::conditions::InvalidCondition> {
//! # let now = "2030-01-01T12:00:00Z".parse().unwrap();
//! let status = serde_json::json!({"conditions": [{
//!     "type": "Ready", "status": "False", "reason": "Starting", "message": "1 of 2 pods",
//!     "lastTransitionTime": "2030-01-01T11:00:00Z",
//! }]});
//! let mut conditions = Conditions::of_status(&status);
//! conditions.set("Ready", State::True, "AllReady", "2 of 2 pods", Some(3), now)?;
//! assert!(conditions.is_true("Ready"));
//! assert_eq!(serde_json::json!({"conditions": conditions})["conditions"][0]["lastTransitionTime"], "2030-01-01T12:00:00Z");
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod tests;

use std::fmt;

use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// As many characters as the standard schema lets a message have.
const MESSAGE_CHARS_MAX: usize = 32_768;
/// As many bytes as the standard schema lets a reason have.
const REASON_BYTES_MAX: usize = 1024;
/// As many bytes as the standard schema lets a type have.
const TYPE_BYTES_MAX: usize = 316;

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody can tell at present.
    Unknown,
}

impl State {
    /// As conditions carry it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<bool> for State {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

/// Why a condition was not set. An API server would refuse the whole status with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCondition {
    /// The type is not one word, with or without a domain before a slash.
    #[error("cannot set condition {type_:?}: a type is a word such as Ready, or example.com/Ready")]
    Type {
        /// The type that was given.
        type_: String,
    },
    /// The reason is empty or more than one word.
    #[error("cannot set condition {type_}: the reason {reason:?} is not one CamelCase word")]
    Reason {
        /// The condition's type.
        type_: String,
        /// The reason that was given.
        reason: String,
    },
}

/// The conditions of one object. See the [module](self).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions(Vec<Entry>);

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// A condition that was set here, or came typed.
    Typed(Condition),
    /// A condition in the standard shape, and what it was read from.
    Read(Condition, Value),
    /// Something else in the list. It is kept.
    Foreign(Value),
}

impl Entry {
    fn read(value: &Value) -> Self {
        match Condition::deserialize(value) {
            Ok(condition) => Self::Read(condition, value.clone()),
            Err(_) => Self::Foreign(value.clone()),
        }
    }

    fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Typed(condition) | Self::Read(condition, _) => Some(condition),
            Self::Foreign(_) => None,
        }
    }

    fn is_of(&self, type_: &str) -> bool {
        match self {
            Self::Typed(condition) | Self::Read(condition, _) => condition.type_ == type_,
            Self::Foreign(value) => value.get("type").and_then(Value::as_str) == Some(type_),
        }
    }
}

impl Conditions {
    /// No conditions yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The list `conditions` of a status; none if there is no status or no such list.
    pub fn of_status(status: &Value) -> Self {
        let list = status.get("conditions").and_then(Value::as_array);
        Self(list.into_iter().flatten().map(Entry::read).collect())
    }

    /// The condition of a type, if it is there in the standard shape.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition is there and says `True`.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == State::True.as_str())
    }

    /// All conditions in the standard shape.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter().filter_map(Entry::condition)
    }

    /// Sets what a condition says. True if anything is different now.
    ///
    /// The transition time becomes `now`, in whole seconds, only if the status was another one before. A message
    /// that is longer than the standard schema allows is cut.
    pub fn set(
        &mut self,
        type_: &str,
        state: State,
        reason: &str,
        message: &str,
        observed_generation: Option<i64>,
        now: Timestamp,
    ) -> Result<bool, InvalidCondition> {
        check(type_, reason)?;
        let message = cut(message);
        let at = self.0.iter().position(|entry| entry.is_of(type_));
        let before = at.and_then(|at| self.0[at].condition());
        let same_state = before.filter(|before| before.status == state.as_str());
        if same_state.is_some_and(|before| {
            before.reason == reason
                && before.message == message
                && before.observed_generation == observed_generation
        }) {
            return Ok(false);
        }
        let since = same_state.map(|before| before.last_transition_time.clone());
        let entry = Entry::Typed(Condition {
            type_: type_.to_owned(),
            status: state.as_str().to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation,
            last_transition_time: since.unwrap_or_else(|| Time(whole_seconds(now))),
        });
        match at {
            Some(at) => self.0[at] = entry,
            None => self.0.push(entry),
        }
        Ok(true)
    }

    /// Removes a condition. True if it was there.
    pub fn remove(&mut self, type_: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|entry| !entry.is_of(type_));
        self.0.len() < before
    }
}

/// From a typed status.
impl From<Vec<Condition>> for Conditions {
    fn from(conditions: Vec<Condition>) -> Self {
        Self(conditions.into_iter().map(Entry::Typed).collect())
    }
}

/// Into a typed status, which has room for conditions in the standard shape only.
impl From<Conditions> for Vec<Condition> {
    fn from(conditions: Conditions) -> Self {
        let typed = conditions.0.into_iter().filter_map(|entry| match entry {
            Entry::Typed(condition) | Entry::Read(condition, _) => Some(condition),
            Entry::Foreign(_) => None,
        });
        typed.collect()
    }
}

/// As the list `conditions` of a status.
impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Typed(condition) => condition.serialize(serializer),
            Self::Read(_, value) | Self::Foreign(value) => value.serialize(serializer),
        }
    }
}

/// The shapes that the standard schema of conditions asks for.
fn check(type_: &str, reason: &str) -> Result<(), InvalidCondition> {
    let word = |text: &str, inside: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        edge(text.chars().next())
            && edge(text.chars().next_back())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || inside.contains(c))
    };
    let domain = |text: &str| {
        text.split('.').all(|label| word(label, "-")) && !text.contains(|c: char| c.is_ascii_uppercase())
    };
    let (before, name) = type_.split_once('/').map_or((None, type_), |(before, name)| (Some(before), name));
    if type_.len() > TYPE_BYTES_MAX || !word(name, "-_.") || !before.is_none_or(domain) {
        return Err(InvalidCondition::Type { type_: type_.to_owned() });
    }
    let starts_with_letter = reason.starts_with(|c: char| c.is_ascii_alphabetic());
    let ends_well = reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_word = reason.chars().all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c));
    if reason.len() > REASON_BYTES_MAX || !starts_with_letter || !ends_well || !is_word {
        return Err(InvalidCondition::Reason { type_: type_.to_owned(), reason: reason.to_owned() });
    }
    Ok(())
}

fn cut(message: &str) -> &str {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => &message[..end],
        None => message,
    }
}

fn whole_seconds(now: Timestamp) -> Timestamp {
    let round = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    // Only the first second of all time has no whole second at or before it.
    now.round(round).unwrap_or(now)
}
