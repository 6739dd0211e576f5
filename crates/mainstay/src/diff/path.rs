//! Where a field is inside an object.
//!
//! A [`FieldPath`] names list items as the schema does: by key, by value or by position. Two paths are equal
//! when they name the same field, whatever the order of the list they go through. While an object is walked
//! the path is a [`Trail`] of borrowed steps on the stack; it is written down only where something is found.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::canonical;
use super::lists::MapKey;

/// The place of one field: `spec.template.spec.containers[name=web].image`.
///
/// Its text, which is also its serialised form, can be parsed back.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Box<[Step]>);

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A field of an object: `.image`, `["a.b/c"]`.
    Field(Box<str>),
    /// The item of a list that has these keys: `[name=web]`. Keys are in alphabetical order.
    Item(Box<[(Box<str>, Literal)]>),
    /// This member of a set: `[=web]`.
    Member(Literal),
    /// The item at this position, counted from zero: `[2]`.
    Index(usize),
}

/// A JSON value inside a path. Numbers are equal by value: `1` and `1.0` are the same literal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Literal {
    /// `null`: a key that the item doesn't have.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A string.
    Text(Box<str>),
    /// Anything else, as canonical JSON.
    Json(Box<str>),
}

impl FieldPath {
    /// The path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The path through these fields: `FieldPath::of(["spec", "replicas"])`.
    pub fn of<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        fields.into_iter().map(|name| Step::Field(name.into())).collect()
    }

    /// Its steps, from the object inwards.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is the path of the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `other` is this field, or lies inside it.
    pub fn contains(&self, other: &FieldPath) -> bool {
        other.0.starts_with(&self.0)
    }

    /// This path with one more step.
    #[must_use]
    pub fn join(&self, step: Step) -> Self {
        self.0.iter().cloned().chain([step]).collect()
    }
}

impl FromIterator<Step> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl From<&Value> for Literal {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::String(value) => Self::Text(value.as_str().into()),
            Value::Number(number) => match canonical::integer(number).map(i64::try_from) {
                Some(Ok(integer)) => Self::Integer(integer),
                _ => Self::Json(canonical::text(value).into()),
            },
            Value::Array(_) | Value::Object(_) => Self::Json(canonical::text(value).into()),
        }
    }
}

impl Literal {
    /// The value that it stands for.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Integer(value) => Value::from(*value),
            Self::Text(value) => Value::from(&**value),
            // Made from a value by `From<&Value>` or by a parser that went through it, so it is JSON.
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

/// A path while an object is walked: each step points at the one before it.
#[derive(Clone, Copy)]
pub(super) struct Trail<'a> {
    up: Option<&'a Trail<'a>>,
    step: Footstep<'a>,
}

#[derive(Clone, Copy)]
enum Footstep<'a> {
    Root,
    Field(&'a str),
    Item(&'a [MapKey], &'a Value),
    Member(&'a Value),
    Index(usize),
}

impl<'a> Trail<'a> {
    pub(super) const ROOT: Trail<'static> = Trail { up: None, step: Footstep::Root };

    pub(super) fn field(&'a self, name: &'a str) -> Trail<'a> {
        Trail { up: Some(self), step: Footstep::Field(name) }
    }

    pub(super) fn item(&'a self, keys: &'a [MapKey], item: &'a Value) -> Trail<'a> {
        Trail { up: Some(self), step: Footstep::Item(keys, item) }
    }

    pub(super) fn member(&'a self, value: &'a Value) -> Trail<'a> {
        Trail { up: Some(self), step: Footstep::Member(value) }
    }

    pub(super) fn index(&'a self, index: usize) -> Trail<'a> {
        Trail { up: Some(self), step: Footstep::Index(index) }
    }

    /// The path, written down.
    pub(super) fn to_path(self) -> FieldPath {
        let mut steps: Vec<Step> = Vec::new();
        let mut at = Some(&self);
        while let Some(trail) = at {
            match trail.step {
                Footstep::Root => {}
                Footstep::Field(name) => steps.push(Step::Field(name.into())),
                Footstep::Item(keys, item) => steps.push(item_step(keys, item)),
                Footstep::Member(value) => steps.push(Step::Member(value.into())),
                Footstep::Index(index) => steps.push(Step::Index(index)),
            }
            at = trail.up;
        }
        steps.into_iter().rev().collect()
    }
}

/// The step to an item of a list with these keys.
pub(super) fn item_step(keys: &[MapKey], item: &Value) -> Step {
    let sorted: BTreeMap<&str, Literal> = keys.iter().map(|key| (key.name(), key.of(item).into())).collect();
    Step::Item(sorted.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// An object with just these keys.
pub(super) fn item_like(keys: &[(Box<str>, Literal)]) -> Value {
    keys.iter().map(|(name, value)| (name.to_string(), value.to_value())).collect::<Map<_, _>>().into()
}
