//! Checks the schema that a `CustomResourceDefinition` brings.
//!
//! A schema must be *structural*: its shape is said once, outside of `allOf` and the like, so that pruning
//! and defaulting know what every field is. On top of that Kubernetes forbids keywords it does not
//! implement, and wants defaults and rules that hold and do not cost too much. All of it is reported with
//! Kubernetes' paths and words.

mod costs;
mod defaults;
mod invariants;
mod keywords;
mod rules;

use super::read::{MAX_DEPTH, flag, read, text};
use crate::field::{FieldError, Path};
use costs::Costs;
use serde_json::{Map, Value};

type Json = Map<String, Value>;

/// Reports what is wrong with a version's `openAPIV3Schema`, which stands at `at`
/// (`spec.validation.openAPIV3Schema` if all versions have the same schema, as Kubernetes names it, else
/// `spec.versions[i].schema.openAPIV3Schema`). `status` says whether that version has the status
/// subresource, `accepted` whether the same schema was accepted before.
pub(crate) fn check_crd_schema(json: &Value, at: &Path<'_>, status: bool, accepted: bool) -> Vec<FieldError> {
    let Value::Object(root) = json else {
        return vec![FieldError::invalid(at, json, "must be an object")];
    };
    if let Some(deep) = too_deep(json, 0) {
        let detail = format!("must not be nested more than {MAX_DEPTH} levels deep, but is at {deep}");
        return vec![FieldError::forbidden(at, detail)];
    }
    let mut errors = Vec::new();
    if status {
        check_root_for_status(root, at, &mut errors);
    }
    if flag(root, "nullable") {
        errors.push(FieldError::forbidden(&at.field("nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = unsupported_keyword(json);
    let schema = read(json);
    let mut sound = false;
    if unsupported.is_none() {
        let mut structural = invariants::check(root, at);
        if structural.is_empty() {
            structural = defaults::check(&schema, at);
            sound = structural.is_empty();
        }
        errors.extend(structural);
    }
    let mut costs = Costs::new(accepted);
    errors.extend(keywords::check(root, &schema, at, sound, &mut costs));
    if let (true, Some(keyword)) = (errors.is_empty(), unsupported) {
        let detail = format!("OpenAPIV3Schema '{keyword}' is not supported");
        errors.push(FieldError::invalid(at, &Value::String(String::new()), detail));
    }
    errors.extend(costs.finish(at));
    errors
}

/// The status is validated alone, so nothing at the root may constrain it from there.
fn check_root_for_status(root: &Json, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    const HIDDEN: [&str; 9] = [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "enum",
        "default",
        "maxProperties",
        "minProperties",
        "additionalProperties",
    ];
    if let Some(kind) = text(root, "type").filter(|kind| !matches!(*kind, "object" | "")) {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
                      subresource is enabled";
        errors.push(FieldError::invalid(&at.field("type"), &kind.into(), detail));
    } else if HIDDEN.iter().any(|keyword| root.contains_key(*keyword)) {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum \
                      ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
                      MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields \
                      XValidations] fields are allowed at the root of the schema if the status subresource \
                      is enabled";
        errors.push(FieldError::invalid(at, &Value::Object(root.clone()), detail));
    }
}

/// A keyword that makes a schema impossible to read as structural.
fn unsupported_keyword(json: &Value) -> Option<&'static str> {
    const KEYWORDS: [(&str, &str); 7] = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    let Value::Object(map) = json else { return None };
    let here = KEYWORDS.iter().find(|(keyword, _)| map.contains_key(*keyword)).map(|(_, name)| *name);
    let preserve = "x-kubernetes-preserve-unknown-fields";
    here.or_else(|| map.get("items").filter(|items| items.is_array()).map(|_| "items"))
        .or_else(|| (map.get(preserve) == Some(&Value::Bool(false))).then_some(preserve))
        .or_else(|| children(map).find_map(unsupported_keyword))
}

/// All schemas directly below a schema.
fn children(map: &Json) -> impl Iterator<Item = &Value> {
    let one = ["items", "additionalProperties", "not"];
    let many = ["allOf", "anyOf", "oneOf"];
    let single = one.into_iter().filter_map(|name| map.get(name)).filter(|value| value.is_object());
    let listed = many.into_iter().flat_map(|name| super::read::array(map, name));
    let named = map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    single.chain(listed).chain(named)
}

/// The first depth beyond what schemas may have, if the schema reaches it.
fn too_deep(json: &Value, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return Some(depth);
    }
    json.as_object().and_then(|map| children(map).find_map(|child| too_deep(child, depth + 1)))
}

fn properties(map: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let named = map.get("properties").and_then(Value::as_object);
    named.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_object()?)))
}

fn property<'a>(map: &'a Json, name: &str) -> Option<&'a Json> {
    map.get("properties")?.as_object()?.get(name)?.as_object()
}

fn object<'a>(map: &'a Json, name: &str) -> Option<&'a Json> {
    map.get(name).and_then(Value::as_object)
}
