//! What the walk reads of a structural schema, and the defaults in it.
//!
//! Keywords that say nothing about which values are allowed (descriptions, titles) are left out. A pattern that cannot
//! be compiled matches nothing: better no value than one that the server refuses.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// What may stand at one place of an object.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) kind: Type,
    pub(super) nullable: bool,
    /// Fields that nobody has described may stand here.
    pub(super) open: bool,
    /// A whole Kubernetes object stands here.
    pub(super) embedded: bool,
    pub(super) choices: Vec<Value>,
    pub(super) format: Option<String>,
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
    pub(super) length: Size,
    pub(super) pattern: Option<Pattern>,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) required: Vec<String>,
    /// What the values of a map are.
    pub(super) additional: Option<Box<Schema>>,
    pub(super) fields: Size,
    pub(super) items: Option<Box<Schema>>,
    pub(super) item_count: Size,
    pub(super) unique: Unique,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
    pub(super) default: Option<Value>,
    pub(super) example: Option<Value>,
    /// The text of each validation rule.
    pub(super) rules: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Type {
    #[default]
    Any,
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// The end of a range of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

/// How many characters, items or fields there may be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

impl Size {
    pub(super) fn allows(self, size: usize) -> bool {
        size >= self.min && self.max.is_none_or(|max| size <= max)
    }
}

/// What may not occur twice in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Unique {
    #[default]
    Nothing,
    Items,
    Keys(Vec<String>),
}

/// A regular expression, compiled when it is first used.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    compiled: OnceCell<Option<Regex>>,
}

impl Pattern {
    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled
            .get_or_init(|| Regex::new(&self.text).ok())
            .as_ref()
            .is_some_and(|regex| regex.is_match(text))
    }
}

impl Schema {
    /// Reads an `openAPIV3Schema` or a part of one.
    pub(super) fn read(json: &Value) -> Self {
        let flag = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or(false);
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| json.get(name).and_then(Value::as_f64);
        let list = |name: &str| json.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let texts =
            |name: &str| list(name).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
        let schemas = |name: &str| list(name).iter().map(Self::read).collect::<Vec<_>>();
        let below = |name: &str| json.get(name).filter(|part| part.is_object()).map(Self::read).map(Box::new);
        Self {
            kind: kind_of(json),
            nullable: flag("nullable"),
            open: flag("x-kubernetes-preserve-unknown-fields") || flag("additionalProperties"),
            embedded: flag("x-kubernetes-embedded-resource"),
            choices: list("enum").to_vec(),
            format: text("format"),
            minimum: number("minimum").map(|value| Bound { value, exclusive: flag("exclusiveMinimum") }),
            maximum: number("maximum").map(|value| Bound { value, exclusive: flag("exclusiveMaximum") }),
            multiple_of: number("multipleOf").filter(|factor| *factor > 0.0),
            length: size_of(json, "minLength", "maxLength"),
            pattern: text("pattern").map(|text| Pattern { text, compiled: OnceCell::new() }),
            properties: json
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, part)| (name.clone(), Self::read(part)))
                .collect(),
            required: texts("required"),
            additional: below("additionalProperties"),
            fields: size_of(json, "minProperties", "maxProperties"),
            items: below("items"),
            item_count: size_of(json, "minItems", "maxItems"),
            unique: match json.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => Unique::Items,
                Some("map") => Unique::Keys(texts("x-kubernetes-list-map-keys")),
                _ if flag("uniqueItems") => Unique::Items,
                _ => Unique::Nothing,
            },
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: below("not"),
            default: json.get("default").cloned(),
            example: json.get("example").cloned(),
            rules: list("x-kubernetes-validations")
                .iter()
                .filter_map(|rule| rule.get("rule").and_then(Value::as_str).map(str::to_owned))
                .collect(),
        }
    }

    /// Whether there are fields, items or entries below this place to walk to.
    pub(super) fn is_leaf(&self) -> bool {
        self.properties.is_empty() && self.additional.is_none() && self.items.is_none()
    }

    /// A tree with the defaults that it lacks, and without the nulls that may not stand where they do. The server
    /// stores objects like that.
    pub(super) fn complete(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut completed = serde_json::Map::new();
                for (name, field) in fields {
                    let schema = self.properties.get(name).or(self.additional.as_deref());
                    match schema {
                        Some(schema) if field.is_null() && !schema.nullable && schema.kind != Type::Any => {}
                        Some(schema) => {
                            completed.insert(name.clone(), schema.complete(field));
                        }
                        None => {
                            completed.insert(name.clone(), field.clone());
                        }
                    }
                }
                for (name, schema) in &self.properties {
                    if let Some(default) = &schema.default
                        && !completed.contains_key(name)
                    {
                        completed.insert(name.clone(), schema.complete(default));
                    }
                }
                Value::Object(completed)
            }
            Value::Array(items) => match &self.items {
                Some(schema) => items.iter().map(|item| schema.complete(item)).collect(),
                None => value.clone(),
            },
            scalar => scalar.clone(),
        }
    }
}

fn kind_of(json: &Value) -> Type {
    if json.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return Type::IntOrString;
    }
    match json.get("type").and_then(Value::as_str) {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::Text,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn size_of(json: &Value, min: &str, max: &str) -> Size {
    let read = |name: &str| {
        json.get(name).and_then(Value::as_u64).map(|size| usize::try_from(size).unwrap_or(usize::MAX))
    };
    Size { min: read(min).unwrap_or(0), max: read(max) }
}
