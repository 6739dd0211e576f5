//! As much of a status as a kind's schema takes.
//!
//! The server refuses a status as a whole if anything in it breaks a rule of the schema. So what breaks one is left out, and whatever
//! needs that goes with it. What cannot be judged here goes as well: rules in CEL, and combinations of schemas.

use std::cmp::Ordering;

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Map, Value};

use super::schema::{Found, step};

/// Rules that nobody here can judge.
const BEYOND: [&str; 5] = ["x-kubernetes-validations", "allOf", "anyOf", "oneOf", "not"];
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// Formats that say nothing about a string.
const ANY_TEXT: [&str; 2] = ["password", "binary"];

/// As much of a value as the server takes by its schema. None: nothing of it.
pub fn kept(value: &Value, schema: &Value) -> Option<Value> {
    let is_empty = |rule: &Value| rule.as_array().is_some_and(Vec::is_empty);
    let is_either = schema[INT_OR_STRING] == true;
    let is_beyond = |rule: &&str| schema.get(*rule).is_some_and(|rule| !is_empty(rule));
    // Whatever is an integer or a string says so with an `anyOf`, too.
    if BEYOND.iter().filter(|rule| !(is_either && **rule == "anyOf")).any(is_beyond) {
        return None;
    }
    if value.is_null() {
        return (schema["nullable"] == true).then_some(Value::Null);
    }
    if !schema.is_object() || !has_type(value, schema) {
        return None;
    }
    if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
        return None;
    }
    match value {
        Value::Object(fields) => kept_fields(fields, schema).map(Value::Object),
        Value::Array(items) => kept_items(items, schema).map(Value::Array),
        Value::String(text) => is_text(text, schema).then(|| value.clone()),
        Value::Number(number) => is_number(number, schema).then(|| value.clone()),
        Value::Bool(_) | Value::Null => Some(value.clone()),
    }
}

fn has_type(value: &Value, schema: &Value) -> bool {
    let is_whole = |number: &serde_json::Number| {
        number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
    };
    if schema[INT_OR_STRING] == true {
        return value.is_string() || value.as_number().is_some_and(is_whole);
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("integer") => value.as_number().is_some_and(is_whole),
        Some("number") => value.is_number(),
        Some(_) => false,
        // Without a type anything is kept that the server does not prune.
        None => schema["x-kubernetes-preserve-unknown-fields"] == true,
    }
}

fn kept_fields(fields: &Map<String, Value>, schema: &Value) -> Option<Map<String, Value>> {
    // It must say what it is, and a status does not.
    if schema["x-kubernetes-embedded-resource"] == true {
        return None;
    }
    let of_field = |(name, value): (&String, &Value)| {
        let value = match step(schema, name) {
            Found::Field(schema) => kept(value, schema)?,
            Found::Anything => value.clone(),
            Found::Nowhere { .. } => return None,
        };
        Some((name.clone(), value))
    };
    let mut all: Map<String, Value> = fields.iter().filter_map(of_field).collect();
    let required: Vec<&str> = texts(&schema["required"]).collect();
    if let Some(most) = limit(schema, "maxProperties") {
        let mut spare: Vec<String> =
            all.keys().filter(|name| !required.contains(&name.as_str())).cloned().collect();
        while all.len() > most {
            all.remove(&spare.pop()?);
        }
    }
    let has_default = |name: &str| schema["properties"][name].get("default").is_some();
    let is_whole = required.iter().all(|name| all.contains_key(*name) || has_default(name));
    let has_enough = limit(schema, "minProperties").is_none_or(|least| all.len() >= least);
    (is_whole && has_enough).then_some(all)
}

fn kept_items(items: &[Value], schema: &Value) -> Option<Vec<Value>> {
    let mut all: Vec<Value> = items.iter().filter_map(|item| kept(item, &schema["items"])).collect();
    match schema["x-kubernetes-list-type"].as_str() {
        Some("map") => {
            let names: Vec<&str> = texts(&schema["x-kubernetes-list-map-keys"]).collect();
            let key =
                |item: &Value| names.iter().map(|name| item.get(*name).cloned()).collect::<Option<Vec<_>>>();
            let mut seen = Vec::new();
            all.retain(|item| key(item).is_some_and(|key| is_new(&mut seen, key)));
        }
        Some("set") => {
            let mut seen = Vec::new();
            all.retain(|item| is_new(&mut seen, item.clone()));
        }
        _ if schema["uniqueItems"] == true => return None,
        _ => {}
    }
    // What comes first is the newest.
    all.truncate(limit(schema, "maxItems").unwrap_or(usize::MAX));
    limit(schema, "minItems").is_none_or(|least| all.len() >= least).then_some(all)
}

fn is_new<T: PartialEq>(seen: &mut Vec<T>, one: T) -> bool {
    let is_new = !seen.contains(&one);
    seen.push(one);
    is_new
}

fn is_text(text: &str, schema: &Value) -> bool {
    let length = text.chars().count();
    let fits_pattern = schema["pattern"]
        .as_str()
        .is_none_or(|pattern| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text)));
    let fits_format = match schema["format"].as_str() {
        None => true,
        Some("date-time") => text.parse::<Timestamp>().is_ok(),
        Some(format) => ANY_TEXT.contains(&format),
    };
    limit(schema, "minLength").is_none_or(|least| length >= least)
        && limit(schema, "maxLength").is_none_or(|most| length <= most)
        && fits_pattern
        && fits_format
}

fn is_number(number: &serde_json::Number, schema: &Value) -> bool {
    let Some(number) = number.as_f64() else { return false };
    let bound = |name: &str| schema[name].as_f64();
    // On the right side of a bound, or at it unless that is excluded.
    let is_within = |name: &str, exclusive: &str, side: Ordering| {
        bound(name).is_none_or(|bound| match number.partial_cmp(&bound) {
            Some(Ordering::Equal) => schema[exclusive] != true,
            other => other == Some(side),
        })
    };
    let is_above = is_within("minimum", "exclusiveMinimum", Ordering::Greater);
    let is_below = is_within("maximum", "exclusiveMaximum", Ordering::Less);
    let is_multiple = bound("multipleOf").is_none_or(|part| part > 0.0 && (number / part).fract() == 0.0);
    let is_in_range =
        schema["format"] != "int32" || (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    is_above && is_below && is_multiple && is_in_range
}

fn limit(schema: &Value, name: &str) -> Option<usize> {
    schema[name].as_u64().map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
