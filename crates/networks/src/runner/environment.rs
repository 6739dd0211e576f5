//! What a program is told in its environment.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};

/// A variable that a program cannot go by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongVariable {
    /// It is not there.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// It has no such value.
    #[error("{name}: `{value}` is not {expected}")]
    Wrong {
        /// Which.
        name: &'static str,
        /// What it has.
        value: String,
        /// What it should have.
        expected: &'static str,
    },
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

    pub(crate) fn need_text(&self, name: &'static str) -> Result<String, WrongVariable> {
        self.text(name).ok_or(WrongVariable::Missing(name))
    }

    /// The value of a variable, if it is there. `expected` says what it is, with an article.
    pub(crate) fn value<T: FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, WrongVariable> {
        self.read(name, expected, |value| value.trim().parse().ok())
    }

    pub(crate) fn need<T: FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<T, WrongVariable> {
        self.value(name, expected)?.ok_or(WrongVariable::Missing(name))
    }

    pub(crate) fn need_seconds(&self, name: &'static str) -> Result<Duration, WrongVariable> {
        self.need(name, "a number of seconds").map(Duration::from_secs)
    }

    /// One of the words that a type is written as.
    pub(crate) fn word<T: DeserializeOwned>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, WrongVariable> {
        self.read(name, expected, |value| {
            let text: StrDeserializer<'_, ValueError> = value.into_deserializer();
            T::deserialize(text).ok()
        })
    }

    /// A file in the pod. Processes of a cluster of one machine find what is mounted below a directory of their own.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(|path| self.below_root(&path))
    }

    /// Where a path of the pod is.
    pub(crate) fn below_root(&self, path: &str) -> PathBuf {
        match self.text("MAINSTAY_ROOT") {
            Some(root) => PathBuf::from(root).join(path.trim_start_matches('/')),
            None => path.into(),
        }
    }

    fn read<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, WrongVariable> {
        let Some(value) = self.text(name) else { return Ok(None) };
        read(&value).map(Some).ok_or(WrongVariable::Wrong { name, value, expected })
    }
}
