//! The rules file of a node: which images are local programs, and how containers of all others behave.
//!
//! ```yaml
//! images:                      # run as processes
//! - image: "shop/worker:*"
//!   command: ["./target/debug/worker"]
//!   args: ["--verbose"]
//!   env: {LOG: debug}
//!   workingDir: /srv/shop
//! simulated:                   # run nowhere, but seem to
//! - image: "*/migrate:*"
//!   startsAfter: 2s
//!   endsAfter: 30s
//!   exitCode: 1
//! ```
//!
//! The first rule whose pattern fits an image counts. In a pattern `*` stands for any text and `?` for one character. What is wrong
//! in a file is told with the path of the field; a field that does not exist is wrong too.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a rules file says. The default has no rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rules {
    /// Images that are local programs.
    pub images: Vec<ImageRule>,
    /// How containers of other images behave.
    pub simulated: Vec<SimulatedRule>,
}

/// An image that is a local program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageRule {
    /// Which images.
    pub image: Glob,
    /// What the image's entry point would be: the program and its first arguments. A container's `command` takes its place.
    #[serde(deserialize_with = "command")]
    pub command: Vec<String>,
    /// What the image's command would be: further arguments. A container's `args` take their place.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables that the image would set. A container's `env` goes before them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The image's working directory. A container's `workingDir` takes its place.
    #[serde(default)]
    pub working_dir: Option<PathBuf>,
}

/// How containers of some images behave.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "SimulatedWire")]
pub struct SimulatedRule {
    /// Which images.
    pub image: Glob,
    /// How they behave.
    pub behaviour: Behaviour,
}

/// How a simulated container behaves. What is absent is left to the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// When it runs after it was told to start for the first time.
    pub starts_after: Option<Span>,
    /// When it is ready after it runs.
    pub ready_after: Option<Moment>,
    /// When it ends by itself after it runs.
    pub ends_after: Option<Moment>,
    /// How it ends by itself.
    pub exit_code: Option<u8>,
    /// How many of its attempts, from the first on, end with an error.
    pub crashes: Option<Crashes>,
    /// When it ends after it was asked to.
    pub stops_after: Option<Span>,
    /// Whether its image cannot be pulled.
    pub cannot_pull: Option<bool>,
    /// What it writes to its log.
    pub log: Option<String>,
}

/// A [`SimulatedRule`] as it is written: in one level.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SimulatedWire {
    image: Glob,
    #[serde(default, deserialize_with = "parsed")]
    starts_after: Option<Span>,
    #[serde(default, deserialize_with = "parsed")]
    ready_after: Option<Moment>,
    #[serde(default, deserialize_with = "parsed")]
    ends_after: Option<Moment>,
    #[serde(default)]
    exit_code: Option<u8>,
    #[serde(default, deserialize_with = "parsed")]
    crashes: Option<Crashes>,
    #[serde(default, deserialize_with = "parsed")]
    stops_after: Option<Span>,
    #[serde(default)]
    cannot_pull: Option<bool>,
    #[serde(default)]
    log: Option<String>,
}

impl From<SimulatedWire> for SimulatedRule {
    fn from(wire: SimulatedWire) -> Self {
        let SimulatedWire { image, starts_after, ready_after, ends_after, exit_code, .. } = wire;
        let SimulatedWire { crashes, stops_after, cannot_pull, log, .. } = wire;
        let behaviour = Behaviour {
            starts_after,
            ready_after,
            ends_after,
            exit_code,
            crashes,
            stops_after,
            cannot_pull,
            log,
        };
        Self { image, behaviour }
    }
}

/// Why a text is no rules file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// It is no YAML.
    #[error("the rules are not YAML")]
    Yaml(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A field is wrong.
    #[error("{path}: {message}")]
    Field {
        /// Which.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

impl Rules {
    /// The image's rule, if it is a local program.
    pub fn image(&self, image: &str) -> Option<&ImageRule> {
        self.images.iter().find(|rule| rule.image.fits(image))
    }

    /// How containers of an image behave, if a rule says so.
    pub fn behaviour(&self, image: &str) -> Option<&Behaviour> {
        self.simulated.iter().find(|rule| rule.image.fits(image)).map(|rule| &rule.behaviour)
    }
}

impl FromStr for Rules {
    type Err = RulesError;

    fn from_str(text: &str) -> Result<Self, RulesError> {
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let value: Value = serde_saphyr::from_str(text).map_err(|error| RulesError::Yaml(Box::new(error)))?;
        if value.is_null() {
            return Ok(Self::default());
        }
        serde_path_to_error::deserialize(value).map_err(|error| RulesError::Field {
            path: error.path().to_string(),
            message: error.into_inner().to_string(),
        })
    }
}

/// A pattern for images.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob(String);

impl Glob {
    /// Whether an image fits it.
    pub fn fits(&self, image: &str) -> bool {
        fits(self.0.as_bytes(), image.as_bytes())
    }
}

/// The usual walk with one place to return to: a later `*` never needs an earlier one to be tried again.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read, mut retry) = (0, 0, None);
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, read));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[read] => (at, read) = (at + 1, read + 1),
            _ => match retry {
                Some((after, from)) => {
                    (at, read) = (after, from + 1);
                    retry = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() { Err("a pattern for images cannot be empty".to_owned()) } else { Ok(Self(text)) }
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.0
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A length of time, written as `5s`, `500ms` or `1m30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let length = text.parse::<SignedDuration>().ok().and_then(|length| Duration::try_from(length).ok());
        length.map(Self).ok_or_else(|| format!("{text:?} is no length of time; write 5s, 500ms or 1m30s"))
    }
}

/// After a length of time, or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// After this time.
    After(Duration),
    /// Never.
    Never,
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Self::Never),
            text => text
                .parse()
                .map(|Span(length)| Self::After(length))
                .map_err(|error| format!("{error}, or never")),
        }
    }
}

/// How many attempts of a container end with an error, from the first on: a number or `always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crashes {
    /// So many.
    Times(u32),
    /// All of them.
    Always,
}

impl FromStr for Crashes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "always" => Ok(Self::Always),
            text => {
                text.parse().map(Self::Times).map_err(|_| format!("{text:?} is neither a number nor always"))
            }
        }
    }
}

/// Anything that is written as one word or number.
fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        other => other.to_string(),
    };
    text.parse().map(Some).map_err(D::Error::custom)
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(D::Error::custom("it has to begin with the program to run"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests;
