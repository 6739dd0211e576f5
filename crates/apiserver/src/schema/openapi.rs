//! The `OpenAPI` v3 form of a custom kind, as `/openapi/v3/apis/<group>/<version>` serves it.
//!
//! Descriptions are those that the definition's author wrote; what Kubernetes adds to every kind has none.

use super::read::{array, flag};
use serde_json::{Map, Value, json};

/// What is published of a kind beside its schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishedKind<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    pub list_kind: &'a str,
    /// The JSON paths of `selectableFields`.
    pub selectable_fields: &'a [&'a str],
}

/// The entries of `components.schemas` for a kind and its list. `schema` is the version's
/// `openAPIV3Schema`, which must have passed [`super::check_crd_schema`].
pub(crate) fn publish(schema: Option<&Value>, kind: &PublishedKind<'_>) -> Map<String, Value> {
    let mut object = if let Some(Value::Object(map)) = schema {
        let mut object = published(map);
        set_meta(&mut object);
        object
    } else {
        let mut object = Map::new();
        object.insert("type".to_owned(), "object".into());
        object
    };
    set_identity(&mut object, kind, kind.kind);
    let name = model_name(kind, kind.kind);
    let mut list = Map::new();
    list.insert("type".to_owned(), "object".into());
    list.insert("required".to_owned(), json!(["items"]));
    let items = json!({
        "type": "array",
        "items": {"$ref": format!("#/components/schemas/{name}")},
    });
    let list_meta = reference("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
    list.insert("properties".to_owned(), json!({"items": items}));
    set_meta(&mut list);
    set_property(&mut list, "metadata", list_meta);
    set_identity(&mut list, kind, kind.list_kind);
    let mut components = Map::new();
    components.insert(name, Value::Object(object));
    components.insert(model_name(kind, kind.list_kind), Value::Object(list));
    components
}

/// The name of a kind's schema: its group backwards, version, kind.
pub(crate) fn model_name(kind: &PublishedKind<'_>, of: &str) -> String {
    let group: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{of}", group.join("."), kind.version)
}

/// A schema without what says nothing, with what Kubernetes knows of values that are resources or
/// integers or strings.
fn published(map: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (keyword, value) in map {
        let value = match (keyword.as_str(), value) {
            ("default" | "enum" | "example", value) => value.clone(),
            ("items" | "not" | "additionalProperties", Value::Object(schema)) => {
                Value::Object(published(schema))
            }
            ("properties", Value::Object(fields)) => {
                let fields = fields.iter().map(|(name, schema)| (name.clone(), published_value(schema)));
                Value::Object(fields.collect())
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                Value::Array(branches.iter().map(published_value).collect())
            }
            (_, Value::Null | Value::Bool(false)) => continue,
            (_, Value::String(text)) if text.is_empty() => continue,
            (_, Value::Array(items)) if items.is_empty() => continue,
            (_, other) => other.clone(),
        };
        out.insert(keyword.clone(), value);
    }
    if flag(map, "x-kubernetes-int-or-string") {
        add_int_or_string(&mut out);
    }
    if flag(map, "x-kubernetes-embedded-resource") {
        set_meta(&mut out);
        let mut required = array(&out, "required").to_vec();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|given| given == name) {
                required.push(name.into());
            }
        }
        out.insert("required".to_owned(), required.into());
    }
    out
}

fn published_value(schema: &Value) -> Value {
    schema.as_object().map_or_else(|| schema.clone(), |map| Value::Object(published(map)))
}

fn add_int_or_string(out: &mut Map<String, Value>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let said_in_all_of = array(out, "allOf").first().is_some_and(|first| first["anyOf"] == either);
    match out.get("anyOf") {
        Some(any_of) if *any_of == either => {}
        _ if said_in_all_of => {}
        None => drop(out.insert("anyOf".to_owned(), either)),
        Some(_) => {
            let mut all_of = vec![json!({"anyOf": either})];
            all_of.extend_from_slice(array(out, "allOf"));
            out.insert("allOf".to_owned(), all_of.into());
        }
    }
}

/// Puts what every resource has in place of what the schema says of it.
fn set_meta(schema: &mut Map<String, Value>) {
    set_property(schema, "apiVersion", json!({"type": "string"}));
    set_property(schema, "kind", json!({"type": "string"}));
    set_property(schema, "metadata", reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
}

fn set_property(schema: &mut Map<String, Value>, name: &str, property: Value) {
    let fields = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(fields) = fields {
        fields.insert(name.to_owned(), property);
    }
}

fn reference(name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]})
}

fn set_identity(schema: &mut Map<String, Value>, kind: &PublishedKind<'_>, name: &str) {
    let identity = json!([{"group": kind.group, "kind": name, "version": kind.version}]);
    schema.insert("x-kubernetes-group-version-kind".to_owned(), identity);
    if !kind.selectable_fields.is_empty() {
        let path = |path: &&str| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)});
        let fields: Vec<Value> = kind.selectable_fields.iter().map(path).collect();
        schema.insert("x-kubernetes-selectable-fields".to_owned(), fields.into());
    }
}
