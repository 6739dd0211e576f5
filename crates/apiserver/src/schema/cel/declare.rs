//! What a schema declares for rules: the type of `self`, and how large it can be.

use super::types::escape;
use crate::schema::{Additional, Schema, Type as JsonType};
use mainstay_cel::estimate::Bounds;
use mainstay_cel::{ObjectType, Type};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type and the bounds of `self` in rules on a schema; none if rules cannot see values of it.
pub(crate) fn declare(schema: &Schema, resource: bool) -> Option<(Type, Bounds)> {
    node(schema, resource, "selfType1")
}

/// Whether rules can see values of a schema.
pub(super) fn is_declared(schema: &Schema) -> bool {
    schema.int_or_string
        || match (schema.kind, &schema.additional) {
            (None, _) => false,
            (Some(JsonType::Array), _) => schema.items.as_deref().is_some_and(is_declared),
            (Some(JsonType::Object), Additional::Values(values)) => is_declared(values),
            (Some(_), _) => true,
        }
}

fn node(schema: &Schema, resource: bool, name: &str) -> Option<(Type, Bounds)> {
    let checks = schema.checks.as_deref();
    let length_max = checks.and_then(|checks| checks.max_length);
    if schema.int_or_string {
        return Some((Type::Dyn, Bounds::int_or_string(length_max)));
    }
    Some(match schema.kind? {
        JsonType::Boolean => (Type::Bool, Bounds::boolean()),
        JsonType::Number => (Type::Double, Bounds::number()),
        JsonType::Integer => (Type::Int, Bounds::number()),
        JsonType::String => {
            let format = checks.and_then(|checks| checks.format.as_deref());
            let choices = checks.iter().flat_map(|checks| &checks.enumeration).filter_map(Value::as_str);
            let of = match format {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::String,
            };
            (of, Bounds::string(format, length_max, choices))
        }
        JsonType::Array => {
            let items = schema.items.as_deref()?;
            let (of, bounds) = node(items, items.embedded_resource, &format!("{name}.@idx"))?;
            (Type::list(of), Bounds::list(bounds, checks.and_then(|checks| checks.max_items)))
        }
        JsonType::Object => match &schema.additional {
            Additional::Values(values) => {
                let (of, bounds) = node(values, values.embedded_resource, &format!("{name}.@elem"))?;
                let count_max = checks.and_then(|checks| checks.max_properties);
                (Type::map(Type::String, of), Bounds::map(bounds, count_max))
            }
            _ => object(schema, resource, name),
        },
    })
}

fn object(schema: &Schema, resource: bool, name: &str) -> (Type, Bounds) {
    let resource = resource && !has_meta(schema);
    let mut fields = Fields { name, required: required(schema), ..Fields::default() };
    for (property, shape) in &schema.properties {
        if !(resource && crate::schema::prune::is_meta(property)) {
            let of = |name: &str| node(shape, shape.embedded_resource, name);
            fields.declare(property, shape.default.is_some(), of);
        }
    }
    if resource {
        // Rules see this much of a resource, whatever the schema says.
        let text = || Some((Type::String, Bounds::string(None, None, [])));
        fields.declare("apiVersion", false, |_| text());
        fields.declare("kind", false, |_| text());
        fields.declare("metadata", false, |name| {
            let mut fields = Fields { name, ..Fields::default() };
            fields.declare("name", false, |_| text());
            fields.declare("generateName", false, |_| text());
            Some(fields.finish())
        });
    }
    fields.finish()
}

/// Whether the schema itself declares all that rules see of a resource.
fn has_meta(schema: &Schema) -> bool {
    let text = |of: &Schema, name: &str| {
        of.properties.get(name).is_some_and(|property| property.kind == Some(JsonType::String))
    };
    text(schema, "kind")
        && text(schema, "apiVersion")
        && schema.properties.get("metadata").is_some_and(|metadata| {
            metadata.kind == Some(JsonType::Object)
                && text(metadata, "name")
                && text(metadata, "generateName")
        })
}

fn required(schema: &Schema) -> &[String] {
    schema.checks.as_ref().map_or(&[], |checks| &checks.required)
}

/// The fields of an object.
#[derive(Default)]
struct Fields<'a> {
    name: &'a str,
    required: &'a [String],
    types: BTreeMap<String, Type>,
    bounds: BTreeMap<String, Bounds>,
    /// The bytes of fields that each object has, and that no default fills in.
    always: Vec<(String, u64)>,
}

impl Fields<'_> {
    fn declare(&mut self, property: &str, has_default: bool, of: impl Fn(&str) -> Option<(Type, Bounds)>) {
        let escaped = escape(property);
        let name = format!("{}.{}", self.name, escaped.as_deref().unwrap_or(property));
        let Some((of, bounds)) = of(&name) else { return };
        if !has_default && self.required.iter().any(|required| required == property) {
            self.always.push((property.to_owned(), bounds.json_bytes_min));
        }
        if let Some(escaped) = escaped {
            self.types.insert(escaped.clone(), of);
            self.bounds.insert(escaped, bounds);
        }
    }

    fn finish(self) -> (Type, Bounds) {
        let always = self.always.iter().map(|(name, bytes)| (name.as_str(), *bytes));
        let bounds = Bounds::object(self.bounds, always);
        let of = ObjectType { name: self.name.to_owned(), fields: self.types };
        (Type::Object(Arc::new(of)), bounds)
    }
}
