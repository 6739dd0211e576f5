//! Objects as values of the evaluator.

use super::types::{escape, is_unordered};
use super::used::Used;
use crate::schema::formats::parse_duration;
use crate::schema::{Additional, ListType, Schema, Type as JsonType};
use base64::Engine as _;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map as CelMap};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Converts the used parts of a value. Without `ordered`, lists that are sets or keyed get an order of
/// their own, the same for all lists with the same items, so that they compare as Kubernetes compares
/// them.
pub(super) fn convert(value: &Value, schema: &Schema, used: &Used, ordered: bool) -> Cel {
    match (value, schema.kind) {
        (Value::Object(map), _) => convert_map(map, schema, used, ordered),
        (Value::Array(items), _) => {
            let unknown = Schema::default();
            let item_schema = schema.items.as_deref().unwrap_or(&unknown);
            let convert_item = |item: &Value| convert(item, item_schema, &Used::All, ordered);
            let converted = if !ordered && is_unordered(schema) {
                let mut sorted: Vec<&Value> = items.iter().collect();
                sorted.sort_by_cached_key(|item| sort_key(item, &schema.list));
                sorted.into_iter().map(convert_item).collect()
            } else {
                items.iter().map(convert_item).collect::<Vec<_>>()
            };
            Cel::List(Arc::new(converted))
        }
        (Value::String(text), Some(JsonType::String)) => convert_text(text, schema),
        (Value::Number(number), Some(JsonType::Number)) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        (Value::Number(number), _) => match number.as_i64() {
            Some(int) => Cel::Int(int),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        (Value::String(text), _) => Cel::String(Arc::new(text.clone())),
        (Value::Bool(flag), _) => Cel::Bool(*flag),
        (Value::Null, _) => Cel::Null,
    }
}

fn convert_map(map: &Map<String, Value>, schema: &Schema, used: &Used, ordered: bool) -> Cel {
    let unknown = Schema::default();
    let mut out = HashMap::with_capacity(map.len());
    let mut insert = |name: String, value: &Value, schema: &Schema, used: &Used| {
        out.insert(Key::String(Arc::new(name)), convert(value, schema, used, ordered));
    };
    for (name, value) in map {
        // Keys of maps are data and stand as they are; names of fields are escaped.
        let (shown, field) = match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => (escape(name), &**property),
            (None, Additional::Values(values)) => (Some(name.clone()), &**values),
            (None, _) => (escape(name), &unknown),
        };
        let Some(shown) = shown else { continue };
        // A field that is null counts as absent; an entry of a map does not.
        if value.is_null() && !matches!(schema.additional, Additional::Values(_)) {
            continue;
        }
        match used {
            Used::All => insert(shown, value, field, &Used::All),
            Used::Fields(fields) => {
                if let Some(used) = fields.get(&shown) {
                    insert(shown, value, field, used);
                }
            }
        }
    }
    Cel::Map(CelMap { map: Arc::new(out) })
}

fn convert_text(text: &str, schema: &Schema) -> Cel {
    let string = || Cel::String(Arc::new(text.to_owned()));
    let format = schema.checks.as_ref().and_then(|checks| checks.format.as_deref());
    match format {
        Some("byte") => base64::engine::general_purpose::URL_SAFE
            .decode(text)
            .or_else(|_| base64::engine::general_purpose::STANDARD.decode(text))
            .map_or_else(|_| string(), |bytes| Cel::Bytes(Arc::new(bytes))),
        Some("duration") => parse_duration(text)
            .and_then(|nanoseconds| i64::try_from(nanoseconds).ok())
            .map_or_else(string, super::time::duration),
        Some("date-time") => super::time::timestamp(text).unwrap_or_else(string),
        Some("date") => super::time::timestamp(&format!("{text}T00:00:00Z")).unwrap_or_else(string),
        _ => string(),
    }
}

fn sort_key(item: &Value, list: &ListType) -> String {
    match list {
        ListType::Map(keys) => {
            keys.iter().map(|key| item.get(key).map_or_else(String::new, Value::to_string)).collect()
        }
        _ => item.to_string(),
    }
}
