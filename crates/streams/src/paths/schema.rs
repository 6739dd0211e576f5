//! A walk through a structural schema.

use serde_json::Value;

const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Where a path leads.
pub(super) enum Found<'a> {
    /// To a field with this schema.
    Field(&'a Value),
    /// To something that the schema says nothing about, and that the server keeps.
    Anything,
    /// Nowhere: what this path leads to would be dropped.
    Nowhere {
        /// The first part of the path that is not there.
        at: String,
    },
}

/// Follows a path with dots.
pub(super) fn find<'a>(schema: &'a Value, path: &str) -> Found<'a> {
    let mut here = schema;
    let mut end = 0;
    for (depth, part) in path.split('.').enumerate() {
        end += part.len() + usize::from(depth > 0);
        // The server knows the metadata of all objects, whatever their schema says.
        let is_object = depth == 0 || here[EMBEDDED] == true;
        if is_object && !part.is_empty() && matches!(part, "metadata" | "apiVersion" | "kind") {
            return Found::Anything;
        }
        match step(here, part) {
            Found::Field(next) => here = next,
            Found::Anything => return Found::Anything,
            Found::Nowhere { .. } => return Found::Nowhere { at: path[..end].to_owned() },
        }
    }
    if is_open(here) { Found::Anything } else { Found::Field(here) }
}

/// The schema of one field of an object.
pub(super) fn step<'a>(here: &'a Value, part: &str) -> Found<'a> {
    if let Some(next) = here["properties"].get(part) {
        return Found::Field(next);
    }
    match &here["additionalProperties"] {
        Value::Bool(true) => return Found::Anything,
        Value::Object(_) if !part.is_empty() => return Found::Field(&here["additionalProperties"]),
        _ => {}
    }
    if here[OPEN] == true && !part.is_empty() {
        return Found::Anything;
    }
    Found::Nowhere { at: part.to_owned() }
}

/// Whether a schema says nothing about what it is for, not even the type.
pub(super) fn is_open(node: &Value) -> bool {
    node[OPEN] == true && node.get("type").is_none()
}

/// The type of a field, for people.
pub(super) fn kind_of(node: &Value) -> String {
    match node["type"].as_str() {
        _ if node["x-kubernetes-int-or-string"] == true => "an integer or a string".to_owned(),
        Some("object") => "an object".to_owned(),
        Some("array") => "a list".to_owned(),
        Some("integer") => "an integer".to_owned(),
        Some(other) => format!("a {other}"),
        None => "of no type".to_owned(),
    }
}
