//! Objects as values of expressions.

use super::types::escape;
use crate::schema::formats::parse_duration;
use crate::schema::{Additional, ListType, Schema, Type as JsonType};
use base64::Engine as _;
use mainstay_cel::{Identity, Key, List, Map, Value as Cel, time};
use serde_json::{Map as JsonMap, Value};
use std::sync::Arc;

/// Converts a value of a schema. Of the metadata of a `resource`, rules see the names alone.
pub(super) fn convert(value: &Value, schema: &Schema, resource: bool) -> Cel {
    match (value, schema.kind) {
        (Value::Object(map), _) => convert_map(map, schema, resource),
        (Value::Array(items), _) => {
            let unknown = Schema::default();
            let item_schema = schema.items.as_deref().unwrap_or(&unknown);
            let items = items.iter().map(|item| convert(item, item_schema, item_schema.embedded_resource));
            Cel::List(List { items: Arc::new(items.collect()), identity: identity(&schema.list) })
        }
        (Value::String(text), Some(JsonType::String)) => convert_text(text, schema),
        (Value::Number(number), Some(JsonType::Number)) => Cel::Double(number.as_f64().unwrap_or(f64::NAN)),
        (Value::Number(number), _) => match number.as_i64() {
            Some(int) => Cel::Int(int),
            None => Cel::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        (Value::String(text), _) => text.as_str().into(),
        (Value::Bool(flag), _) => Cel::Bool(*flag),
        (Value::Null, _) => Cel::Null,
    }
}

fn identity(list: &ListType) -> Identity {
    match list {
        ListType::Atomic => Identity::Place,
        ListType::Set => Identity::Item,
        ListType::Map(keys) => Identity::Keys(keys.iter().filter_map(|key| escape(key)).collect()),
    }
}

fn convert_map(map: &JsonMap<String, Value>, schema: &Schema, resource: bool) -> Cel {
    let unknown = Schema::default();
    let mut out = Map::new();
    for (name, value) in map {
        if resource && name == "metadata" {
            out.insert(Key::String(name.as_str().into()), convert_metadata(value));
            continue;
        }
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
        out.insert(Key::String(shown.into()), convert(value, field, field.embedded_resource));
    }
    Cel::Map(Arc::new(out))
}

fn convert_metadata(metadata: &Value) -> Cel {
    let names = ["name", "generateName"].into_iter().filter_map(|name| {
        let value = metadata.get(name)?.as_str()?;
        Some((Key::String(name.into()), value.into()))
    });
    Cel::Map(Arc::new(names.collect()))
}

fn convert_text(text: &str, schema: &Schema) -> Cel {
    let format = schema.checks.as_ref().and_then(|checks| checks.format.as_deref());
    let converted = match format {
        Some("byte") => base64::engine::general_purpose::URL_SAFE
            .decode(text)
            .or_else(|_| base64::engine::general_purpose::STANDARD.decode(text))
            .ok()
            .map(|bytes| Cel::Bytes(bytes.into())),
        Some("duration") => {
            parse_duration(text).and_then(|nanoseconds| i64::try_from(nanoseconds).ok()).map(Cel::Duration)
        }
        Some("date-time") => time::parse_timestamp(text).map(Cel::Timestamp),
        Some("date") => time::parse_timestamp(&format!("{text}T00:00:00Z")).map(Cel::Timestamp),
        _ => None,
    };
    converted.unwrap_or_else(|| text.into())
}
