//! What a program is told in its environment.

use std::str::FromStr;

/// A variable that has no such value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: `{value}` is not {expected}")]
pub struct WrongVariable {
    /// Which.
    pub name: &'static str,
    /// What it has.
    pub value: String,
    /// What it should have.
    pub expected: &'static str,
}

/// Variables by name. One that is empty is not there.
pub(crate) struct Environment<Get>(Get);

impl<Get: Fn(&str) -> Option<String>> Environment<Get> {
    pub(crate) fn new(get: Get) -> Self {
        Self(get)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// The value of a variable, if it is there. `expected` says what it is, with an article.
    pub(crate) fn value<T: FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, WrongVariable> {
        let read = |value: String| value.trim().parse().map_err(|_| WrongVariable { name, value, expected });
        self.text(name).map(read).transpose()
    }
}
