//! What a version says of its objects beside their schema: subresources, columns, selectable fields.

use crate::builtin::rules::json::{list, set, text};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::BTreeSet;

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_MAX: usize = 8;

fn validate_json_path(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let fine = value.starts_with('.');
    if !fine {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(path, &value.into(), detail));
    }
    fine
}

pub(super) fn validate_subresources(subresources: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = set(subresources, "scale") else { return };
    for (field, dotted, root) in [
        ("specReplicasPath", "scale.specReplicasPath", ".spec"),
        ("statusReplicasPath", "scale.statusReplicasPath", ".status"),
    ] {
        let path = path.field(dotted);
        match text(scale, field) {
            "" => errors.push(FieldError::required(&path, "")),
            value => {
                let below = value.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'));
                if validate_json_path(value, &path, errors) && !below {
                    let detail = format!("should be a json path under {root}");
                    errors.push(FieldError::invalid(&path, &value.into(), detail));
                }
            }
        }
    }
    let selector = text(scale, "labelSelectorPath");
    let path = path.field("scale.labelSelectorPath");
    if !selector.is_empty()
        && validate_json_path(selector, &path, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(&path, &selector.into(), detail));
    }
}

pub(super) fn validate_columns(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("additionalPrinterColumns");
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let path = path.index(index);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        }
        let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(FieldError::required(&path.field("type"), detail)),
            kind if COLUMN_TYPES.contains(&kind) => {}
            kind => errors.push(FieldError::invalid(&path.field("type"), &kind.into(), detail)),
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(&path.field("format"), &format.into(), detail));
        }
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(&path.field("JSONPath"), "")),
            value => {
                validate_json_path(value, &path.field("JSONPath"), errors);
            }
        }
    }
}

pub(super) fn validate_selectable(
    version: &Value,
    schema: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut seen = BTreeSet::new();
    for (index, field) in list(version, "selectableFields").iter().enumerate() {
        let path = path.index(index);
        let path = path.field("jsonPath");
        let text = text(field, "jsonPath");
        if text.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let mut refuse = |detail: &str| errors.push(FieldError::invalid(&path, &text.into(), detail));
        let found = match follow(text, schema) {
            Ok(found) => found,
            Err(why) => {
                refuse(&format!("is an invalid path: {why}"));
                continue;
            }
        };
        if text == ".metadata" || text.starts_with(".metadata.") {
            refuse("must not point to fields in metadata");
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            refuse(
                "must point to a field of type string, boolean or integer. Enum string fields and strings \
                 with formats are allowed.",
            );
        }
        if !seen.insert(text) {
            errors.push(FieldError::duplicate(&path, &text.into()));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
}

/// The schema that a path of dots and names leads to.
fn follow<'a>(path: &str, mut schema: &'a Value) -> Result<&'a Value, String> {
    let mut rest = path;
    while !rest.is_empty() {
        let Some(after) = rest.strip_prefix('.') else {
            if rest.starts_with('[') {
                return Err("array notation is not allowed".to_owned());
            }
            let token = rest.split(['.', '[', ']']).next().filter(|t| !t.is_empty()).unwrap_or(&rest[..1]);
            return Err(format!("expected [ or . but got: {token}"));
        };
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let end = after.find(['.', '[', ']']).unwrap_or(after.len()).max(1);
        let (name, next) = after.split_at(end);
        rest = next;
        let missing = || "does not refer to a valid field".to_owned();
        schema = if schema["properties"].is_object() {
            schema["properties"].get(name).ok_or_else(missing)?
        } else {
            set(schema, "additionalProperties").ok_or_else(missing)?
        };
    }
    Ok(schema)
}
