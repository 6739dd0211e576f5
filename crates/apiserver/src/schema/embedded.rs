//! Resources inside of resources (`x-kubernetes-embedded-resource`).

use super::Schema;
use super::defaults::schema_of;
use crate::builtin::rules::names::{validate_annotations, validate_labels};
use crate::field::{ERRORS_MAX, FieldError, Path};
use serde_json::{Map, Value};

/// Checks `apiVersion`, `kind` and `metadata` of every embedded resource. `at` is where the value stands.
pub(super) fn check_embedded(value: &Value, schema: &Schema, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(value, schema, at, &mut errors);
    errors
}

fn walk(value: &Value, schema: &Schema, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= ERRORS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                check_resource(map, at, errors);
            }
            for (name, value) in map {
                let Some(field) = schema_of(schema, name) else { continue };
                if schema.properties.contains_key(name) {
                    walk(value, field, &at.field(name), errors);
                } else {
                    walk(value, field, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, item_schema, &at.index(index), errors);
            }
        }
        _ => {}
    }
}

fn check_resource(map: &Map<String, Value>, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !map.contains_key(name) {
            errors.push(FieldError::required(&at.field(name), ""));
        }
    }
    if let Some(version) = map.get("apiVersion") {
        let at = at.field("apiVersion");
        match version.as_str() {
            None => errors.push(FieldError::invalid(&at, version, "must be a string")),
            Some("") => errors.push(FieldError::invalid(&at, version, "must not be empty")),
            Some(text) if text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(&at, version, detail));
            }
            Some(_) => {}
        }
    }
    if let Some(kind) = map.get("kind") {
        let at = at.field("kind");
        match kind.as_str() {
            None => errors.push(FieldError::invalid(&at, kind, "must be a string")),
            Some("") => errors.push(FieldError::invalid(&at, kind, "must not be empty")),
            Some(text) => {
                if let Some(wrong) = wrong_kind(text) {
                    let detail = format!("may have mixed case, but should otherwise match: {wrong}");
                    errors.push(FieldError::invalid(&at, kind, detail));
                }
            }
        }
    }
    if let Some(metadata) = map.get("metadata") {
        check_names(metadata, &at.field("metadata"), errors);
    }
}

/// Why the kind, in lower case, is no DNS label.
fn wrong_kind(kind: &str) -> Option<String> {
    let lower = kind.to_lowercase();
    let body = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let shaped = lower.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && lower.bytes().last().is_some_and(body)
        && lower.bytes().all(|b| body(b) || b == b'-');
    let mut reasons = Vec::new();
    if lower.len() > 63 {
        reasons.push("must be no more than 63 characters".to_owned());
    }
    if !shaped {
        reasons.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
             regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    (!reasons.is_empty()).then(|| reasons.join(","))
}

/// Names of embedded resources need only fit into a path; they have no kind that would say more.
fn check_names(metadata: &Value, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    for field in ["generateName", "name"] {
        let Some(value) = metadata.get(field) else { continue };
        let Some(name) = value.as_str() else { continue };
        let at = at.field(field);
        if field == "name" && (name == "." || name == "..") {
            errors.push(FieldError::invalid(&at, value, format!("may not be '{name}'")));
            continue;
        }
        for illegal in ["/", "%"] {
            if name.contains(illegal) {
                errors.push(FieldError::invalid(&at, value, format!("may not contain '{illegal}'")));
            }
        }
    }
    if let Some(labels) = metadata.get("labels") {
        validate_labels(labels, &at.field("labels"), errors);
    }
    if let Some(annotations) = metadata.get("annotations") {
        validate_annotations(annotations, &at.field("annotations"), errors);
    }
}
