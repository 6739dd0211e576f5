//! Whether a schema allows a value. Covers the keywords that [`Schema`] reads; rules in CEL are the server's to judge.

use std::collections::BTreeSet;

use serde_json::Value;

use super::formats;
use super::place::extended;
use super::schema::{Bound, Schema, Type, Unique};

/// Whether the schema allows the value.
pub(super) fn validates(schema: &Schema, value: &Value) -> bool {
    refusals(schema, value).is_empty()
}

/// What the schema refuses of a value, each with its place. The value is expected to be
/// [complete](Schema::complete).
pub(super) fn refusals(schema: &Schema, value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    judge(schema, value, "", &mut found);
    found
}

fn judge(schema: &Schema, value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let mut refuse = |allowed: bool, keyword: &str| {
        if !allowed {
            found.insert(format!("{path}: {keyword}"));
        }
    };
    refuse(schema.choices.is_empty() || schema.choices.contains(value), "enum");
    if value.is_null() {
        return refuse(schema.nullable || schema.kind == Type::Any, "type");
    }
    refuse(is_of(schema.kind, value), "type");
    refuse(schema.all_of.iter().all(|part| validates(part, value)), "allOf");
    refuse(schema.any_of.is_empty() || schema.any_of.iter().any(|part| validates(part, value)), "anyOf");
    let fitting = schema.one_of.iter().filter(|part| validates(part, value)).count();
    refuse(schema.one_of.is_empty() || fitting == 1, "oneOf");
    refuse(schema.not.as_ref().is_none_or(|part| !validates(part, value)), "not");
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            refuse(schema.minimum.is_none_or(|bound| is_above(number, bound)), "minimum");
            refuse(schema.maximum.is_none_or(|bound| is_below(number, bound)), "maximum");
            refuse(schema.multiple_of.is_none_or(|factor| is_multiple(number, factor)), "multipleOf");
            refuse(formats::holds(schema.format.as_deref(), number), "format");
        }
        Value::String(text) => {
            refuse(schema.length.allows(text.chars().count()), "length");
            refuse(schema.pattern.as_ref().is_none_or(|pattern| pattern.matches(text)), "pattern");
            refuse(formats::fits(schema.format.as_deref(), text), "format");
        }
        Value::Array(items) => {
            refuse(schema.item_count.allows(items.len()), "number of items");
            refuse(!has_twins(&schema.unique, items), "unique items");
            for (index, item) in items.iter().enumerate() {
                if let Some(schema) = &schema.items {
                    judge(schema, item, &format!("{path}[{index}]"), found);
                }
            }
        }
        Value::Object(fields) => {
            refuse(schema.fields.allows(fields.len()), "number of fields");
            for name in &schema.required {
                refuse(
                    fields.get(name).is_some_and(|field| !field.is_null()),
                    &format!("{name} is required"),
                );
            }
            if schema.embedded {
                let named =
                    |name: &str| fields.get(name).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
                refuse(named("apiVersion") && named("kind"), "a whole object");
            }
            for (name, field) in fields {
                if let Some(schema) = schema.properties.get(name).or(schema.additional.as_deref()) {
                    judge(schema, field, &extended(path, name), found);
                }
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

fn is_of(kind: Type, value: &Value) -> bool {
    let is_whole = |value: &Value| value.as_f64().is_some_and(|number| number.fract() == 0.0);
    match kind {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::Text => value.is_string(),
        Type::Integer => is_whole(value),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || is_whole(value),
    }
}

fn is_above(number: f64, bound: Bound) -> bool {
    if bound.exclusive { number > bound.value } else { number >= bound.value }
}

fn is_below(number: f64, bound: Bound) -> bool {
    if bound.exclusive { number < bound.value } else { number <= bound.value }
}

fn is_multiple(number: f64, factor: f64) -> bool {
    let ratio = number / factor;
    (ratio - ratio.round()).abs() < 1e-9
}

/// Whether items occur twice that may not.
pub(super) fn has_twins(unique: &Unique, items: &[Value]) -> bool {
    let identity = |item: &Value| match unique {
        Unique::Nothing => None,
        Unique::Items => Some(item.to_string()),
        Unique::Keys(keys) => {
            let parts: Vec<String> =
                keys.iter().map(|key| item.get(key).unwrap_or(&Value::Null).to_string()).collect();
            Some(parts.join(","))
        }
    };
    let mut seen = BTreeSet::new();
    items.iter().filter_map(identity).any(|identity| !seen.insert(identity))
}
