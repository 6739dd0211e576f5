//! What a check of values has found so far, within bounds.

use crate::field::FieldError;

/// Errors with the sentence that tells them apart, and a measure of how much was fine.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub errors: Vec<(FieldError, String)>,
    /// How many there are in `errors`.
    bytes: usize,
    pub matches: u64,
}

/// How many bytes of errors are collected. What is wrong with an object is no better known from more, and an object can have
/// hundreds of thousands of values, each with a path as long as the object.
const ERRORS_BYTES_MAX: usize = 1 << 20;

/// What an error takes up beside its text, about.
const ERROR_BYTES: usize = 100;

impl Findings {
    pub(super) fn merge(&mut self, other: Findings) {
        self.errors.extend(other.errors);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.matches = self.matches.saturating_add(other.matches);
    }

    /// Whether no more is looked for. There are errors then.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > ERRORS_BYTES_MAX
    }

    pub(super) fn push(&mut self, error: FieldError, said: String) {
        self.bytes = self.bytes.saturating_add(bytes(&error, &said));
        self.errors.push((error, said));
    }

    /// Takes the errors back that came after these.
    pub(super) fn truncate(&mut self, count: usize) {
        let dropped: usize = self.errors.drain(count..).map(|(error, said)| bytes(&error, &said)).sum();
        self.bytes = self.bytes.saturating_sub(dropped);
    }
}

fn bytes(error: &FieldError, said: &str) -> usize {
    let value = error.value.as_ref().map_or(0, String::len);
    ERROR_BYTES + error.field.len() + value + error.detail.len() + said.len()
}
