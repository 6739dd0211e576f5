//! The text of a [`FieldPath`]: what it looks like, and how it is read back.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::path::{FieldPath, Literal, Step};

/// As people write it: `spec.template.spec.containers[name=web].image`, `metadata.annotations["a.b/c"]`,
/// `args[2]`. The object itself is `.`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        for (position, step) in self.steps().iter().enumerate() {
            match step {
                Step::Field(name) if is_plain(name) => {
                    f.write_str(if position == 0 { "" } else { "." })?;
                    f.write_str(name)?;
                }
                Step::Field(name) => write!(f, "[{}]", Value::from(&**name))?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Member(value) => write!(f, "[={value}]")?,
                Step::Item(keys) => {
                    for (position, (name, value)) in keys.iter().enumerate() {
                        f.write_str(if position == 0 { "[" } else { "," })?;
                        if is_plain(name) {
                            write!(f, "{name}={value}")?;
                        } else {
                            write!(f, "{}={value}", Value::from(&**name))?;
                        }
                    }
                    f.write_str("]")?;
                }
            }
        }
        Ok(())
    }
}

/// Strings are bare where they can't be taken for anything else.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(text) if is_bare(text) => f.write_str(text),
            Self::Text(text) => write!(f, "{}", Value::from(&**text)),
            Self::Json(text) => f.write_str(text),
        }
    }
}

/// Whether a field's name can stand behind a dot.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-$".contains(&byte))
}

fn is_bare_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./:@".contains(&byte)
}

/// Whether a string can't be taken for another kind of literal.
fn is_bare(text: &str) -> bool {
    text.starts_with(starts_bare)
        && text.bytes().all(is_bare_byte)
        && !matches!(text, "true" | "false" | "null")
}

fn starts_bare(first: char) -> bool {
    first.is_ascii_alphabetic() || first == '_' || first == '/'
}

/// A text that is not a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the field path {text:?}: {problem} at byte {at}")]
pub struct FieldPathError {
    text: String,
    at: usize,
    problem: &'static str,
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "." {
            return Ok(Self::root());
        }
        let mut reader = Reader { text, at: 0 };
        let mut steps = Vec::new();
        while reader.at < text.len() {
            let step = reader.step(steps.is_empty()).map_err(|problem| FieldPathError {
                text: text.to_owned(),
                at: reader.at,
                problem,
            })?;
            steps.push(step);
        }
        if steps.is_empty() {
            return Err(FieldPathError { text: String::new(), at: 0, problem: "it is empty" });
        }
        Ok(steps.into_iter().collect())
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        // `at` only ever moves by the length of a prefix that was found in `text`.
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        // All bytes that are wanted anywhere are ASCII, so this is a boundary.
        let (word, _) = rest.split_at(length);
        self.at += length;
        word
    }

    fn step(&mut self, first: bool) -> Result<Step, &'static str> {
        if self.take('[') {
            let step = self.bracket()?;
            return if self.take(']') { Ok(step) } else { Err("a bracket is not closed") };
        }
        if !first && !self.take('.') {
            return Err("a dot or a bracket is missing");
        }
        self.name().map(|name| Step::Field(name.into()))
    }

    fn name(&mut self) -> Result<&'a str, &'static str> {
        let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || b"_-$".contains(&byte));
        if name.is_empty() { Err("a name is missing") } else { Ok(name) }
    }

    fn bracket(&mut self) -> Result<Step, &'static str> {
        if self.take('=') {
            return self.literal().map(Step::Member);
        }
        if self.rest().starts_with(|first: char| first.is_ascii_digit()) {
            let start = self.at;
            let digits = self.take_while(|byte| byte.is_ascii_digit());
            if self.rest().starts_with(']') {
                return digits.parse().map(Step::Index).map_err(|_| "the position is too large");
            }
            self.at = start;
        }
        let mut keys: Vec<(Box<str>, Literal)> = Vec::new();
        loop {
            let name: Box<str> = if self.rest().starts_with('"') {
                match self.json()? {
                    Value::String(name) if self.rest().starts_with(']') && keys.is_empty() => {
                        return Ok(Step::Field(name.into()));
                    }
                    Value::String(name) => name.into(),
                    _ => return Err("a name is missing"),
                }
            } else {
                self.name()?.into()
            };
            if !self.take('=') {
                return Err("an equals sign is missing");
            }
            keys.push((name, self.literal()?));
            if !self.take(',') {
                keys.sort();
                return Ok(Step::Item(keys.into()));
            }
        }
    }

    fn literal(&mut self) -> Result<Literal, &'static str> {
        if !self.rest().starts_with(starts_bare) {
            return Ok(Literal::from(&self.json()?));
        }
        Ok(match self.take_while(is_bare_byte) {
            "true" => Literal::Bool(true),
            "false" => Literal::Bool(false),
            "null" => Literal::Null,
            text => Literal::Text(text.into()),
        })
    }

    fn json(&mut self) -> Result<Value, &'static str> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            _ => Err("this is no JSON value"),
        }
    }
}

impl Serialize for FieldPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FieldPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
