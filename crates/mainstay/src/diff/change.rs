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
            (Some(from), Some(to)) => write!(f, "{path}: {} → {}", Shown(from), Shown(to)),
            (None, Some(to)) => write!(f, "{path}: added {}", Shown(to)),
            (Some(from), None) => write!(f, "{path}: removed, was {}", Shown(from)),
            (None, None) => write!(f, "{path}: absent"),
        }
    }
}

/// The beginning of a value's text. Only as much of the value is looked at as is shown.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_str() == Some(REDACTED) {
            return f.write_str(REDACTED);
        }
        let mut text = String::new();
        let mut left = VALUE_CHARS_MAX;
        let whole = canonical::write(self.0, &mut |part| {
            for character in part.chars() {
                if left == 0 {
                    return Err(());
                }
                text.push(character);
                left -= 1;
            }
            Ok(())
        });
        f.write_str(&text)?;
        f.write_str(if whole.is_ok() { "" } else { "…" })
    }
}
