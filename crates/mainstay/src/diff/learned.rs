//! What the server makes of what it is sent.
//!
//! After an apply, whatever in the response differs from what was sent is the server's own rewriting: a
//! default inside an atomic map, an empty list that is dropped, a webhook's change. [`Learned`] remembers it
//! for that object: the field, the value sent, and the value that the server made of it. While both are still
//! so, it is no difference. When another value is desired, or somebody changes the live one to a third, it is
//! a difference again.
//!
//! What is remembered is a digest of the three, 16 bytes for each field whatever its size, so no value of a
//! Secret is kept here. Which rewritings are known can be told at any time: compare with nothing learned, and
//! ask [`Learned::knows`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::canonical;
use super::change::Change;
use super::compare::compare;
use super::lists::Rules;
use super::path::FieldPath;

/// Most fields that are remembered for one object. What goes beyond is a difference at every comparison,
/// which whoever looks for writes without end will find.
const REWRITINGS_MAX: usize = 1024;

/// What the server makes of what it is sent, for one object. Nearly always empty, and then it costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Sorted.
    rewritings: Box<[Digest]>,
}

type Digest = [u8; 16];

impl Learned {
    /// Nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// What the server made of an object that was sent.
    pub fn from_response(sent: &Value, response: &Value, rules: &Rules) -> Self {
        let mut learned = Self::nothing();
        learned.learn(&compare(sent, response, rules, &Self::nothing()));
        learned
    }

    /// Takes these differences, which [`compare`] found, for the server's rewriting from now on.
    pub fn learn<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>) {
        let mut rewritings = std::mem::take(&mut self.rewritings).into_vec();
        for change in changes.into_iter().filter(|change| change.to.is_some()) {
            rewritings.push(digest(&change.path, change.to.as_ref(), change.from.as_ref()));
        }
        rewritings.sort_unstable();
        rewritings.dedup();
        rewritings.truncate(REWRITINGS_MAX);
        self.rewritings = rewritings.into();
    }

    /// Whether this difference is the server's own rewriting.
    pub fn knows(&self, change: &Change) -> bool {
        !self.is_empty() && self.has(&digest(&change.path, change.to.as_ref(), change.from.as_ref()))
    }

    pub(super) fn knows_that(&self, path: &FieldPath, desired: &Value, live: Option<&Value>) -> bool {
        self.has(&digest(path, Some(desired), live))
    }

    fn has(&self, digest: &Digest) -> bool {
        self.rewritings.binary_search(digest).is_ok()
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.rewritings.is_empty()
    }

    /// How many fields the server rewrites.
    pub fn len(&self) -> usize {
        self.rewritings.len()
    }
}

/// A digest that nobody can make two of: whoever can choose values must not be able to hide a change.
fn digest(path: &FieldPath, sent: Option<&Value>, made: Option<&Value>) -> Digest {
    let mut hash = canonical::Hash::new();
    hash.text(&path.to_string());
    for value in [sent, made] {
        // Neither can be part of a canonical text at this place, so no two triples have one text.
        hash.text(if value.is_some() { "\n+" } else { "\n-" });
        if let Some(value) = value {
            hash.value(value);
        }
    }
    hash.finish()
}
