//! What schemas say about values: their types in CEL, and how large they can be.

use crate::schema::{Additional, Schema, Type as JsonType};
use mainstay_cel::estimate::Bounds;
use mainstay_cel::{ObjectType, Type};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type and the bounds of values of a schema.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub of: Type,
    pub bounds: Bounds,
}

/// What `self` is in rules on a schema; none if rules cannot see values of it.
pub(super) fn declare(schema: &Schema, resource: bool) -> Option<Declared> {
    declare_as(schema, resource, "selfType1")
}

fn declare_as(schema: &Schema, resource: bool, name: &str) -> Option<Declared> {
    let checks = schema.checks.as_deref();
    let limit = |max: Option<u64>| max.map(|max| i64::try_from(max).unwrap_or(i64::MAX));
    let length_max = limit(checks.and_then(|checks| checks.max_length));
    if schema.int_or_string {
        return Some(Declared { of: Type::Dyn, bounds: Bounds::int_or_string(length_max) });
    }
    let (of, bounds) = match schema.kind? {
        JsonType::Array => {
            let items = schema.items.as_deref()?;
            let item = declare_as(items, items.embedded_resource, &format!("{name}.@idx"))?;
            let max = limit(checks.and_then(|checks| checks.max_items));
            (Type::list(item.of), Bounds::list(item.bounds, max))
        }
        JsonType::Object => match &schema.additional {
            Additional::Values(values) => {
                let value = declare_as(values, values.embedded_resource, &format!("{name}.@elem"))?;
                let max = limit(checks.and_then(|checks| checks.max_properties));
                (Type::map(Type::String, value.of), Bounds::map(value.bounds, max))
            }
            _ => declare_object(schema, resource, name),
        },
        JsonType::String => {
            let format = checks.and_then(|checks| checks.format.as_deref());
            let of = match format {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::String,
            };
            let choices = checks.into_iter().flat_map(|checks| &checks.enumeration).filter_map(Value::as_str);
            (of, Bounds::string(format, length_max, choices))
        }
        JsonType::Boolean => (Type::Bool, Bounds::boolean()),
        JsonType::Number => (Type::Double, Bounds::number()),
        JsonType::Integer => (Type::Int, Bounds::number()),
    };
    Some(Declared { of, bounds })
}

fn declare_object(schema: &Schema, resource: bool, name: &str) -> (Type, Bounds) {
    let (mut types, mut bounds, mut required) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let is_required =
        |name: &String| schema.checks.as_ref().is_some_and(|checks| checks.required.contains(name));
    for (key, property) in &schema.properties {
        let Some(escaped) = escape(key) else { continue };
        let below = format!("{name}.{escaped}");
        let Some(declared) = declare_as(property, property.embedded_resource, &below) else { continue };
        // Fields with a default are filled in by the server, so that a request need not have them.
        if is_required(key) && property.default.is_none() {
            required.push((key.as_str(), declared.bounds.json_bytes_min));
        }
        types.insert(escaped.clone(), declared.of);
        bounds.insert(escaped, declared.bounds);
    }
    if resource {
        let text = || Bounds::string(None, None, []);
        for field in ["apiVersion", "kind"] {
            types.insert(field.to_owned(), Type::String);
            bounds.insert(field.to_owned(), text());
        }
        let names = ["name", "generateName"];
        let metadata = object(format!("{name}.metadata"), names.map(|n| (n.to_owned(), Type::String)).into());
        types.insert("metadata".to_owned(), metadata);
        let metadata = Bounds::object(names.map(|name| (name.to_owned(), text())).into(), []);
        bounds.insert("metadata".to_owned(), metadata);
    }
    (object(name.to_owned(), types), Bounds::object(bounds, required))
}

fn object(name: String, fields: BTreeMap<String, Type>) -> Type {
    Type::Object(Arc::new(ObjectType { name, fields }))
}

/// A property's name as it is written in expressions; none if it cannot be.
pub(super) fn escape(name: &str) -> Option<String> {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(plain) && !name.contains("__") {
        return Some(name.to_owned());
    }
    if !name.chars().all(|c| plain(c) || "-./".contains(c)) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}
