//! What makes a schema structural.

use super::{Json, object, properties, property};
use crate::field::{FieldError, Path};
use crate::schema::read::{array, flag, text};
use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Reports what keeps a schema from being structural, sorted by text.
pub(super) fn check(root: &Json, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_spine(root, Level::Root, at, &mut errors);
    check_complete(root, root, at, at, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn check_spine(map: &Json, level: Level, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(map, "type").unwrap_or_default();
    match object(map, "items") {
        Some(items) => check_spine(items, Level::Item, &at.field("items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(&at.field("items"), "must be specified"));
        }
        None => {}
    }
    for (name, schema) in properties(map) {
        check_spine(schema, Level::Field, &at.field("properties").key(name), errors);
    }
    if let Some(additional) = map.get("additionalProperties").filter(|value| !value.is_null()) {
        let at = at.field("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if let Value::Object(values) = additional {
            check_spine(values, Level::Field, &at, errors);
        }
        if flag(map, "x-kubernetes-embedded-resource") {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
    check_extensions(map, at, errors);
    let first_all_of = array(map, "allOf").first().and_then(Value::as_object);
    let skip =
        Skip { any_of: is_int_or_string(map), first_all_of: first_all_of.is_some_and(is_int_or_string) };
    check_branches(map, skip, at, errors);
    check_type(map, kind, level, at, errors);
    check_metadata(map, level, at, errors);
}

fn check_extensions(map: &Json, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !flag(map, "x-kubernetes-int-or-string") {
        return;
    }
    for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(map, keyword) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&at.field(keyword), &true.into(), detail));
        }
    }
}

fn check_type(map: &Json, kind: &str, level: Level, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at_type = at.field("type");
    let embedded = flag(map, "x-kubernetes-embedded-resource");
    let preserves = flag(map, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&at_type, detail)
        } else {
            FieldError::invalid(&at_type, &kind.into(), detail)
        });
    } else if kind.is_empty() && !flag(map, "x-kubernetes-int-or-string") && !preserves {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&at_type, format!("must not be empty {place}")));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at_type, &kind.into(), "must be object at the root"));
    }
    if embedded && !preserves && properties(map).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&at.field("properties"), detail));
    }
}

/// `kind`, `apiVersion` and `metadata` of resources are what they are; only names may be restricted.
fn check_metadata(map: &Json, level: Level, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let resource = level == Level::Root || flag(map, "x-kubernetes-embedded-resource");
    let at = at.field("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(schema) = property(map, name).filter(|_| resource) {
            let kind = text(schema, "type").unwrap_or_default();
            if kind != "string" {
                let at = at.key(name);
                errors.push(FieldError::invalid(&at.field("type"), &kind.into(), "must be string"));
            }
        }
    }
    let Some(metadata) = property(map, "metadata") else { return };
    let at = at.key("metadata");
    let kind = text(metadata, "type").unwrap_or_default();
    if resource && kind != "object" {
        errors.push(FieldError::invalid(&at.field("type"), &kind.into(), "must be object"));
    }
    let named_only = properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let plain = metadata.keys().all(|keyword| matches!(keyword.as_str(), "type" | "default" | "properties"));
    if level == Level::Root && !(named_only && plain) {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        errors.push(FieldError::forbidden(&at, detail));
    }
}

#[derive(Clone, Copy, Default)]
struct Skip {
    any_of: bool,
    first_all_of: bool,
}

/// The one form in which types may stand in branches.
fn is_int_or_string(map: &Json) -> bool {
    map.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

/// Checks the branches of a schema: they may constrain values but not say their shape.
fn check_branches(map: &Json, skip: Skip, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip.any_of {
            continue;
        }
        let list = at.field(name);
        for (index, branch) in array(map, name).iter().enumerate() {
            let Value::Object(branch) = branch else { continue };
            let any_of = name == "allOf" && index == 0 && skip.first_all_of;
            check_nested(branch, Skip { any_of, first_all_of: false }, &list.index(index), errors);
        }
    }
    if let Some(not) = object(map, "not") {
        check_nested(not, Skip::default(), &at.field("not"), errors);
    }
    if let Some(pattern) = text(map, "pattern").filter(|pattern| !pattern.is_empty())
        && let Err(error) = crate::schema::regexes::compile(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&at.field("pattern"), &pattern.into(), detail));
    }
}

/// Keywords that may not stand below a junctor, and how they must be instead.
const MUST_BE: [(&str, &str); 13] = [
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
];

fn check_nested(map: &Json, skip: Skip, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    check_branches(map, skip, at, errors);
    if let Some(items) = object(map, "items") {
        check_nested(items, Skip::default(), &at.field("items"), errors);
    }
    for (name, schema) in properties(map) {
        check_nested(schema, Skip::default(), &at.field("properties").key(name), errors);
    }
    for (keyword, state) in MUST_BE {
        let set = match map.get(keyword) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty() || state == "undefined",
            Some(Value::Array(items)) => !items.is_empty() || state == "undefined",
            Some(_) => true,
        };
        if set {
            let detail = format!("must be {state} to be structural");
            errors.push(FieldError::forbidden(&at.field(keyword), detail));
        }
    }
    if property(map, "metadata").is_some() {
        let at = at.field("properties");
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&at.key("metadata"), detail));
    }
}

/// What branches at the root constrain must be specified outside of them.
fn check_complete(
    map: &Json,
    spine: &Json,
    spine_at: &Path<'_>,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = object(map, "not") {
        check_complete_nested(not, Some(spine), spine_at, &at.field("not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = at.field(name);
        for (index, branch) in array(map, name).iter().enumerate() {
            let Value::Object(branch) = branch else { continue };
            check_complete_nested(branch, Some(spine), spine_at, &list.index(index), errors);
        }
    }
}

fn check_complete_nested(
    map: &Json,
    spine: Option<&Json>,
    spine_at: &Path<'_>,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(spine) = spine else {
        errors.push(FieldError::required(spine_at, format!("because it is defined in {at}")));
        return;
    };
    check_complete(map, spine, spine_at, at, errors);
    if let Some(items) = object(map, "items") {
        let (spine_at, at) = (spine_at.field("items"), at.field("items"));
        check_complete_nested(items, object(spine, "items"), &spine_at, &at, errors);
    }
    let (spine_at, at) = (spine_at.field("properties"), at.field("properties"));
    for (name, schema) in properties(map) {
        check_complete_nested(schema, property(spine, name), &spine_at.key(name), &at.key(name), errors);
    }
}
