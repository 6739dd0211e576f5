//! What a built-in object is before anything is set.

use crate::schema::{Presence, Schema, Type};
use serde_json::{Map, Value};

/// An object of which nothing is set, written as Go writes one: fields that are always there have their
/// zero value. Nobody comes to own those. Custom kinds have none, so for them it is empty.
pub(super) fn zero(schema: &Schema) -> Value {
    let mut map = Map::new();
    for (name, member) in schema.members.iter().flat_map(|members| members.iter()) {
        if member.presence == Presence::Always
            && let Some(property) = schema.properties.get(name)
        {
            map.insert(name.clone(), zero_value(property));
        }
    }
    Value::Object(map)
}

fn zero_value(schema: &Schema) -> Value {
    if schema.int_or_string {
        return 0.into();
    }
    match schema.kind {
        Some(Type::Object) if schema.members.is_some() => zero(schema),
        Some(Type::Integer | Type::Number) => 0.into(),
        Some(Type::Boolean) => false.into(),
        Some(Type::String) => {
            let format = schema.checks.as_ref().and_then(|checks| checks.format.as_deref());
            if format == Some("date-time") { Value::Null } else { "".into() }
        }
        // Maps, lists, and values of any type are nil pointers.
        Some(Type::Object | Type::Array) | None => Value::Null,
    }
}
