//! The rules of `metadata`, for every kind: what it must hold on creation and what an update may change.

use super::{NameCheck, dns1123_label, label_key, label_value, masked_prefix};
use crate::apply::validate_managed_fields;
use crate::builtin::rules::checks::IMMUTABLE;
use crate::builtin::rules::json::text;
use crate::field::{FieldError, Path, Problem, go_quote};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};

const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;
/// A further controller among the owners is refused with an error of its own up to this number.
const CONTROLLERS_TOLD_MAX: usize = 10;
const METADATA: Path<'static> = Path::of("metadata");

/// Checks the metadata of a new object. The name has been generated already; `name_check` is the kind's.
pub(crate) fn validate_object_meta(
    object: &Value,
    namespaced: bool,
    name_check: NameCheck,
    errors: &mut Vec<FieldError>,
) {
    validate_object_names(object, name_check, errors);
    let meta = &object["metadata"];
    let path = METADATA.field("namespace");
    match (namespaced, text(meta, "namespace")) {
        (true, "") => errors.push(FieldError::required(&path, "")),
        (true, namespace) => complain(errors, &path, namespace, dns1123_label(namespace)),
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&path, "not allowed on this type")),
    }
    if let Some(generation) = meta["generation"].as_i64().filter(|g| *g < 0) {
        let path = METADATA.field("generation");
        errors.push(FieldError::invalid(&path, &generation.into(), "must be greater than or equal to 0"));
    }
    validate_labels(&meta["labels"], &METADATA.field("labels"), errors);
    validate_annotations(&meta["annotations"], &METADATA.field("annotations"), errors);
    validate_owner_references(&meta["ownerReferences"], &METADATA.field("ownerReferences"), errors);
    validate_finalizers(&meta["finalizers"], &METADATA.field("finalizers"), errors);
    validate_managed_fields(&meta["managedFields"], &METADATA.field("managedFields"), errors);
}

/// Checks the name of a new object, and what it was generated from.
pub(crate) fn validate_object_names(object: &Value, name_check: NameCheck, errors: &mut Vec<FieldError>) {
    let meta = &object["metadata"];
    let prefix = text(meta, "generateName");
    if !prefix.is_empty() {
        complain(errors, &METADATA.field("generateName"), prefix, name_check(&masked_prefix(prefix)));
    }
    match text(meta, "name") {
        "" => errors.push(FieldError::required(&METADATA.field("name"), "name or generateName is required")),
        name => complain(errors, &METADATA.field("name"), name, name_check(name)),
    }
}

/// Checks what an update does to the metadata.
pub(crate) fn validate_object_meta_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, old) = (&new["metadata"], &old["metadata"]);
    if !old["deletionTimestamp"].is_null() {
        validate_no_new_finalizers(&new["finalizers"], &old["finalizers"], errors);
    }
    if text(new, "resourceVersion").is_empty() {
        let path = METADATA.field("resourceVersion");
        errors.push(FieldError::invalid(&path, &"".into(), "must be specified for an update"));
    }
    let generation = new["generation"].as_i64().unwrap_or(0);
    if generation < old["generation"].as_i64().unwrap_or(0) {
        let path = METADATA.field("generation");
        errors.push(FieldError::invalid(&path, &generation.into(), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        let (new, old) = (text(new, field), text(old, field));
        if new != old {
            errors.push(FieldError::invalid(&METADATA.field(field), &new.into(), IMMUTABLE));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        validate_immutable(&new[field], &old[field], &METADATA.field(field), errors);
    }
    validate_labels(&new["labels"], &METADATA.field("labels"), errors);
    validate_annotations(&new["annotations"], &METADATA.field("annotations"), errors);
    validate_owner_references(&new["ownerReferences"], &METADATA.field("ownerReferences"), errors);
    validate_managed_fields(&new["managedFields"], &METADATA.field("managedFields"), errors);
}

/// Reports each sentence of a check as a wrong value at `path`.
pub(crate) fn complain(errors: &mut Vec<FieldError>, path: &Path<'_>, value: &str, wrong: Vec<String>) {
    errors.extend(wrong.into_iter().map(|why| FieldError::invalid(path, &value.into(), why)));
}

/// Refuses a changed value.
pub(crate) fn validate_immutable(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if new != old {
        errors.push(FieldError::invalid(path, new, IMMUTABLE));
    }
}

/// Refuses a changed text; an absent one is empty.
pub(crate) fn validate_immutable_text(
    new: &Value,
    old: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (new, old) = (new.as_str().unwrap_or(""), old.as_str().unwrap_or(""));
    if new != old {
        errors.push(FieldError::invalid(path, &new.into(), IMMUTABLE));
    }
}

/// Checks a map of labels; its errors stand at the map, not at its keys.
pub(crate) fn validate_labels(labels: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        complain(errors, path, key, label_key(key));
        let value = value.as_str().unwrap_or("");
        complain(errors, path, value, label_value(value));
    }
}

/// Checks a map of annotations, and its size.
pub(crate) fn validate_annotations(annotations: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(annotations) = annotations.as_object() else { return };
    let mut bytes = 0;
    for (key, value) in annotations {
        complain(errors, path, key, label_key(&key.to_lowercase()));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
}

fn validate_owner_references(references: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    let mut told = 0;
    for reference in references.as_array().into_iter().flatten() {
        validate_owner_reference(reference, path, errors);
        if reference["controller"] != Value::Bool(true) {
            continue;
        }
        let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &controller {
            None => controller = Some(name),
            // Each shows all references, so that all of them would be too much to read.
            Some(_) if told == CONTROLLERS_TOLD_MAX => {}
            Some(first) => {
                told += 1;
                errors.push(FieldError {
                    problem: Problem::Invalid,
                    field: path.to_string(),
                    value: Some(render_references(references)),
                    detail: format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for \
                         {first} and {name}"
                    ),
                });
            }
        }
    }
}

/// Drops owners that are named twice, and gives the warning that says so. For every write, before all else.
pub(crate) fn drop_repeated_owners(object: &mut Value) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut uids = Vec::new();
    if owners.len() > 1 {
        // Compared by their text: there may be thousands.
        let mut seen = HashSet::with_capacity(owners.len());
        owners.retain(|owner| {
            let is_new = seen.insert(owner.to_string());
            if !is_new {
                uids.push(text(owner, "uid").to_owned());
            }
            is_new
        });
    }
    (!uids.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            uids.join(", ")
        )
    })
}

fn validate_owner_reference(reference: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let api_version = text(reference, "apiVersion");
    // A text that is no group and version parses to neither, as the real parser has it.
    let version = match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if !version.contains('/') => version,
        Some(_) => "",
    };
    if version.is_empty() {
        let path = path.field("apiVersion");
        errors.push(FieldError::invalid(&path, &api_version.into(), "version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        if text(reference, field).is_empty() {
            errors.push(FieldError::invalid(&path.field(field), &"".into(), "must not be empty"));
        }
    }
    if api_version == "v1" && text(reference, "kind") == "Event" {
        errors.push(FieldError {
            problem: Problem::Invalid,
            field: path.to_string(),
            value: Some(render_reference(reference)),
            detail: "/v1, Kind=Event is disallowed from being an owner".to_owned(),
        });
    }
}

const REFERENCE_FIELDS: &[&str] = &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

fn render_reference(reference: &Value) -> String {
    let mut whole = reference.clone();
    for field in ["apiVersion", "kind", "name", "uid"] {
        // These are printed even when they are empty.
        if let (None, Some(map)) = (reference.get(field), whole.as_object_mut()) {
            map.insert(field.to_owned(), "".into());
        }
    }
    in_order(&whole, REFERENCE_FIELDS)
}

fn render_references(references: &Value) -> String {
    let items: Vec<String> = references.as_array().into_iter().flatten().map(render_reference).collect();
    format!("[{}]", items.join(","))
}

/// Renders an object with its fields in the order of its Go type, absent ones left out.
pub(crate) fn in_order(object: &Value, fields: &[&str]) -> String {
    let empty = Map::new();
    let object = object.as_object().unwrap_or(&empty);
    let fields: Vec<String> = fields
        .iter()
        .filter_map(|field| object.get(*field).map(|value| format!("\"{field}\":{value}")))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Checks a list of finalizers.
pub(crate) fn validate_finalizers(finalizers: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let names = || finalizers.as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in names() {
        complain(errors, path, name, label_key(name));
    }
    if names().any(|name| name == "orphan") && names().any(|name| name == "foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, finalizers, detail));
    }
}

/// Checks that finalizers are those of Kubernetes itself or name their owner, as most built-in kinds want it.
pub(crate) fn validate_standard_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    let path = METADATA.field("finalizers");
    let names = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    for (index, name) in names.filter_map(Value::as_str).enumerate() {
        validate_standard_finalizer(name, &path.index(index), errors);
    }
}

/// Checks that a finalizer is one of Kubernetes itself or names its owner.
pub(crate) fn validate_standard_finalizer(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&name);
    if !name.contains('/') && !standard {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, &name.into(), detail));
    }
}

fn validate_no_new_finalizers(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let set = |list: &Value| -> BTreeSet<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let added: Vec<String> = set(new).difference(&set(old)).map(|name| go_quote(name)).collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(FieldError::forbidden(&METADATA.field("finalizers"), detail));
    }
}
