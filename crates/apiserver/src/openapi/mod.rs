//! The `OpenAPI` v3 documents, one per group and version.
//!
//! They are made for the clients that read them. kubectl's `explain` finds a kind's schema through the
//! `x-kubernetes-group-version-kind` of an operation and of a component, and follows `$ref`s; before it
//! leaves field validation to the server, kubectl looks for the `fieldValidation` parameter at a PATCH
//! operation of the kind (any of them: so each has it); `apply` sends a strategic merge patch only if
//! that operation takes one. Descriptions of operations are left out.
//!
//! Documents are large and asked for rarely: [`index`] needs only a hash of what a document is made of,
//! and [`document`] is rendered when asked for; both can be cached until the hash changes.

mod paths;
#[cfg(test)]
mod tests;
pub(crate) mod v2;

use crate::discovery::{Resource, fingerprint, group_version};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The place of a document below `/openapi/v3/`: `api/v1` or `apis/apps/v1`.
pub(crate) fn document_path(group: &str, version: &str) -> String {
    let prefix = if group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", group_version(group, version))
}

/// A hash that changes when a document does. `revision` tells one state of a resource's schema from
/// another: any constant for built-in kinds, something of the definition for custom ones.
pub(crate) fn document_hash<'a>(
    resources: &[&'a Resource],
    revision: impl Fn(&'a Resource) -> String,
) -> String {
    let parts: Vec<String> =
        resources.iter().map(|resource| format!("{resource:?}\n{}\n", revision(resource))).collect();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    fingerprint(std::iter::once(version).chain(parts.iter().map(String::as_bytes)))
}

/// `/openapi/v3`: where each document is found, given group, version and hash of each.
pub(crate) fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str, String)>) -> Value {
    let paths: Map<String, Value> = documents
        .into_iter()
        .map(|(group, version, hash)| {
            let path = document_path(group, version);
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// The document of one group and version. `definition` gives a schema by its name; schemas that are
/// referred to are included, and those it does not know become objects of any shape.
pub(crate) fn document(
    group: &str,
    version: &str,
    resources: &[&Resource],
    definition: impl Fn(&str) -> Option<Value>,
) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        paths::insert(&mut paths, resource);
    }
    if resources.iter().any(|resource| !resource.custom) {
        let list = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
        let root = format!("/{}/", document_path(group, version));
        paths.insert(root, json!({"get": {"responses": paths::responses(&["200"], list)}}));
    }
    let paths = Value::Object(paths);
    let schemas = closure(&paths, resources, definition);
    let mut components = json!({"schemas": schemas});
    components["securitySchemes"] = json!({
        "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"},
    });
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": components,
    })
}

const REFERENCE: &str = "#/components/schemas/";
const OLD_REFERENCE: &str = "#/definitions/";

/// Every schema that the paths lead to, with references in the form of version 3.
fn closure(
    paths: &Value,
    resources: &[&Resource],
    definition: impl Fn(&str) -> Option<Value>,
) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut pending: Vec<String> = resources.iter().map(|resource| resource.definition.to_string()).collect();
    collect_references(paths, &mut pending);
    while let Some(name) = pending.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let mut schema = definition(&name).unwrap_or_else(|| json!({"type": "object"}));
        modernise(&mut schema);
        collect_references(&schema, &mut pending);
        schemas.insert(name, schema);
    }
    schemas
}

fn collect_references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                names.extend(name.strip_prefix(REFERENCE).map(ToOwned::to_owned));
            }
            map.values().for_each(|value| collect_references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        _ => {}
    }
}

/// Rewrites references of version 2.
fn modernise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(OLD_REFERENCE)
            {
                *reference = format!("{REFERENCE}{name}");
            }
            map.values_mut().for_each(modernise);
        }
        Value::Array(items) => items.iter_mut().for_each(modernise),
        _ => {}
    }
}
