//! Reads the `openAPIV3Schema` of a `CustomResourceDefinition`.
//!
//! Reading never fails: what is not a schema keyword, or has the wrong type, is left out here and
//! reported by [`super::structural`], which sees the same JSON. Nodes nested deeper than [`MAX_DEPTH`]
//! are cut off (and reported there too), so that no walk over a schema can exhaust the stack.

use super::formats::Format;
use super::{Additional, Checks, ListType, Rule, Schema, SchemaRef, Type};
use serde_json::{Map, Value};

/// How deep schemas may be nested.
pub(crate) const MAX_DEPTH: usize = 128;

/// Reads the schema of a kind's objects.
///
/// The root gets `apiVersion`, `kind` and `metadata` where the schema does not name them, as every
/// object has these. Contents of `metadata` are never pruned by the schema, see [`super::prune`].
pub(crate) fn read(json: &Value) -> Schema {
    let mut root = read_node(json, 0);
    for name in ["apiVersion", "kind"] {
        let string = || SchemaRef::new(Schema { kind: Some(Type::String), ..Schema::default() });
        root.properties.entry(name.to_owned()).or_insert_with(string);
    }
    root.properties.entry("metadata".to_owned()).or_insert_with(|| {
        SchemaRef::new(Schema { kind: Some(Type::Object), preserve_unknown: true, ..Schema::default() })
    });
    root
}

/// Reads a schema below the root, adding nothing.
pub(crate) fn read_node(json: &Value, depth: usize) -> Schema {
    let Value::Object(map) = json else { return Schema::default() };
    if depth > MAX_DEPTH {
        return Schema::default();
    }
    let child = |value: &Value| SchemaRef::new(read_node(value, depth + 1));
    let kind = text(map, "type").and_then(Type::from_name);
    let int_or_string = flag(map, "x-kubernetes-int-or-string");
    Schema {
        kind: if int_or_string { None } else { kind },
        nullable: flag(map, "nullable"),
        properties: match map.get("properties") {
            Some(Value::Object(entries)) => entries.iter().map(|(k, v)| (k.clone(), child(v))).collect(),
            _ => std::collections::BTreeMap::new(),
        },
        additional: match map.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Any,
            Some(values @ Value::Object(_)) => Additional::Values(child(values)),
            _ => Additional::None,
        },
        items: map.get("items").filter(|items| items.is_object()).map(child),
        default: map.get("default").filter(|value| !value.is_null()).cloned(),
        preserve_unknown: flag(map, "x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag(map, "x-kubernetes-embedded-resource"),
        int_or_string,
        list: read_list_type(map),
        atomic_map: text(map, "x-kubernetes-map-type") == Some("atomic"),
        checks: read_checks(map, kind, int_or_string, depth).map(Box::new),
        ..Schema::default()
    }
}

fn read_list_type(map: &Map<String, Value>) -> ListType {
    match text(map, "x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(map, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

/// The keywords that constrain values, if there are any.
fn read_checks(
    map: &Map<String, Value>,
    kind: Option<Type>,
    int_or_string: bool,
    depth: usize,
) -> Option<Checks> {
    const KEYWORDS: [&str; 21] = [
        "allOf",
        "anyOf",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "required",
        "uniqueItems",
        "x-kubernetes-validations",
    ];
    if !KEYWORDS.iter().any(|keyword| map.contains_key(*keyword)) {
        return None;
    }
    let branches = |name: &str| -> Vec<SchemaRef> {
        let nested = |value: &Value| SchemaRef::new(read_node(value, depth + 1));
        array(map, name).iter().map(nested).collect()
    };
    let format = text(map, "format").filter(|name| Format::supported(name, kind, int_or_string));
    Some(Checks {
        required: texts(map, "required"),
        format: format.map(str::to_owned),
        pattern: text(map, "pattern").filter(|pattern| !pattern.is_empty()).map(str::to_owned),
        minimum: number(map, "minimum"),
        maximum: number(map, "maximum"),
        exclusive_minimum: flag(map, "exclusiveMinimum"),
        exclusive_maximum: flag(map, "exclusiveMaximum"),
        multiple_of: number(map, "multipleOf"),
        min_length: count(map, "minLength"),
        max_length: count(map, "maxLength"),
        min_items: count(map, "minItems"),
        max_items: count(map, "maxItems"),
        unique_items: flag(map, "uniqueItems"),
        min_properties: count(map, "minProperties"),
        max_properties: count(map, "maxProperties"),
        enumeration: array(map, "enum").to_vec(),
        all_of: branches("allOf"),
        any_of: branches("anyOf"),
        one_of: branches("oneOf"),
        not: map.get("not").filter(|not| not.is_object()).map(|v| SchemaRef::new(read_node(v, depth + 1))),
        rules: array(map, "x-kubernetes-validations").iter().map(read_rule).collect(),
        compiled: super::Compiled::default(),
    })
}

fn read_rule(json: &Value) -> Rule {
    let Value::Object(map) = json else { return Rule::default() };
    let given = |name: &str| text(map, name).filter(|value| !value.is_empty()).map(str::to_owned);
    Rule {
        rule: text(map, "rule").unwrap_or_default().to_owned(),
        message: given("message"),
        message_expression: given("messageExpression"),
        reason: given("reason"),
        field_path: given("fieldPath"),
        optional_old_self: flag(map, "optionalOldSelf"),
    }
}

/// A keyword's text; none if it is absent or no text.
pub(super) fn text<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    map.get(name).and_then(Value::as_str)
}

fn texts(map: &Map<String, Value>, name: &str) -> Vec<String> {
    array(map, name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A keyword's list; empty if it is absent or no list.
pub(super) fn array<'a>(map: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    map.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a keyword is true.
pub(super) fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn number(map: &Map<String, Value>, name: &str) -> Option<f64> {
    map.get(name).and_then(Value::as_f64)
}

pub(super) fn count(map: &Map<String, Value>, name: &str) -> Option<u64> {
    map.get(name).and_then(Value::as_u64)
}
