//! Warnings about `format`s that nobody checks.

use crate::builtin::rules::json::{list, text};
use serde_json::Value;

/// Formats of strings, dashes left out.
const STRING_FORMATS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

pub(super) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unrecognized).unwrap_or_default();
    let fresh = unrecognized(new).into_iter().filter(|format| !known.contains(format));
    fresh.map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unrecognized(crd: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let versions = list(&crd["spec"], "versions");
    let count = if super::Shared::of(crd).schema { 1 } else { versions.len() };
    for version in &versions[..count.min(versions.len())] {
        walk(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

fn walk<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    let format = text(schema, "format");
    let recognized = match text(schema, "type") {
        _ if format.is_empty() => true,
        "" | "string" => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if !recognized {
        found.push(format);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], found);
    }
    for field in ["allOf", "oneOf", "anyOf"] {
        for part in list(schema, field) {
            walk(part, found);
        }
    }
    if schema["not"].is_object() {
        walk(&schema["not"], found);
    }
    for schema in schema["properties"].as_object().into_iter().flatten() {
        walk(schema.1, found);
    }
    if schema["additionalProperties"].is_object() {
        walk(&schema["additionalProperties"], found);
    }
}
