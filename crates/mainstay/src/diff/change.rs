//! One field that differs, and how it is told.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::canonical;
use super::path::{FieldPath, Step};
use crate::Kind;

/// A field that differs: what it is, and what it is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Which field.
    pub path: FieldPath,
    /// What it is now. None: it isn't there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// What it becomes. None: it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// Longest text of a value in a line, in characters.
const VALUE_CHARS_MAX: usize = 60;
/// As much is shown of what two long values share right before they differ.
const LEAD_CHARS: usize = 20;

const REDACTED: &str = "(redacted)";

impl Change {
    /// The same change without its values: only whether there was one and is one remains.
    #[must_use]
    pub fn redacted(self) -> Self {
        let hide = |value: Option<Value>| value.map(|_| Value::from(REDACTED));
        Self { path: self.path, from: hide(self.from), to: hide(self.to) }
    }

    /// The same change as it may be shown to anybody who may read plans and logs: of a Secret, what it holds
    /// is hidden, and so is the copy of it that `kubectl apply` keeps in an annotation.
    #[must_use]
    pub fn showable(self, kind: &Kind) -> Self {
        let secret = kind.group().is_empty() && kind.kind() == "Secret";
        if secret && holds_secret(&self.path) { self.redacted() } else { self }
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether the value at this path of a Secret has something of what it keeps secret in it.
fn holds_secret(path: &FieldPath) -> bool {
    let mut names = path.steps().iter().map(|step| match step {
        Step::Field(name) => &**name,
        _ => "",
    });
    match names.next() {
        None | Some("data" | "stringData") => true,
        Some("metadata") => match (names.next(), names.next()) {
            (None, _) | (Some("annotations"), None) => true,
            (Some("annotations"), Some(name)) => name == LAST_APPLIED,
            _ => false,
        },
        Some(_) => false,
    }
}

/// In one line: `spec.replicas: 2 → 3`, `spec.paused: added true`, `spec.paused: removed, was true`. Long
/// values are shortened.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                let (from, to) = shown_apart(from, to);
                write!(f, "{path}: {from} → {to}")
            }
            (None, Some(to)) => write!(f, "{path}: added {}", shown(to, 0)),
            (Some(from), None) => write!(f, "{path}: removed, was {}", shown(from, 0)),
            (None, None) => write!(f, "{path}: absent"),
        }
    }
}

/// Two values so that one sees how they differ: from their beginnings, or, if these are the same, from shortly before the difference.
fn shown_apart(from: &Value, to: &Value) -> (String, String) {
    let beginnings = (shown(from, 0), shown(to, 0));
    if beginnings.0 != beginnings.1 || beginnings.0 == REDACTED {
        return beginnings;
    }
    let (whole_from, whole_to) = (canonical::text(from), canonical::text(to));
    // An item that is there twice differs from itself.
    if whole_from == whole_to {
        return beginnings;
    }
    let same = whole_from.chars().zip(whole_to.chars()).take_while(|(one, other)| one == other).count();
    let skipped = same.saturating_sub(LEAD_CHARS);
    (shown(from, skipped), shown(to, skipped))
}

/// A part of a value's text, after so many characters. No more of the value is looked at than that.
fn shown(value: &Value, skipped: usize) -> String {
    if value.as_str() == Some(REDACTED) {
        return REDACTED.to_owned();
    }
    let mut text = String::from(if skipped > 0 { "…" } else { "" });
    let mut place = 0;
    let whole = canonical::write(value, &mut |part| {
        for character in part.chars() {
            if place == skipped + VALUE_CHARS_MAX {
                return Err(());
            }
            if place >= skipped {
                text.push(character);
            }
            place += 1;
        }
        Ok(())
    });
    if whole.is_err() {
        text.push('…');
    }
    text
}
