//! Claims for storage that are made for a pod: of ephemeral volumes and of stateful sets.

use crate::builtin::quantity::Quantity;
use crate::builtin::rules::checks::{Errors, NOT_POSITIVE, form, one_of};
use crate::builtin::rules::json::{list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::Value;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Checks the claim template of an ephemeral volume: of its metadata only labels and annotations count.
pub(super) fn validate_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let nothing = Value::Null;
    let meta = template.get("metadata").unwrap_or(&nothing);
    let at = path.field("metadata");
    names::validate_annotations(&meta["annotations"], &at.field("annotations"), errors);
    names::validate_labels(&meta["labels"], &at.field("labels"), errors);
    for (field, value) in meta.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "annotations" | "labels") && !value.is_null() {
            errors.push(FieldError::forbidden(&at.field(field), "cannot be set"));
        }
    }
    validate_spec(template.get("spec").unwrap_or(&nothing), &path.field("spec"), errors);
}

/// Checks the spec of a claim.
pub(crate) fn validate_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let modes = list(spec, "accessModes");
    let modes_path = path.field("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&modes_path, "at least 1 access mode is required"));
    }
    if let Some(selector) = set(spec, "selector") {
        names::validate_label_selector(selector, &path.field("selector"), errors);
    }
    let known = |mode: &&Value| mode.as_str().is_some_and(|m| ACCESS_MODES.contains(&m));
    for mode in modes.iter().filter(|m| !known(m)) {
        errors.push(FieldError::not_supported(&modes_path, mode, &ACCESS_MODES));
    }
    let single = modes.iter().any(|m| *m == "ReadWriteOncePod");
    if single && modes.iter().filter(known).any(|m| *m != "ReadWriteOncePod") {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&modes_path, why));
    }
    let resources = path.field("resources");
    let storage = resources.key("storage");
    match spec.pointer("/resources/requests/storage") {
        None => errors.push(FieldError::required(&storage, "")),
        Some(size) => {
            if Quantity::read(size).is_none_or(|q| !q.is_positive()) {
                errors.push(FieldError::invalid(&storage, size, NOT_POSITIVE));
            }
        }
    }
    if !text(spec, "storageClassName").is_empty() {
        form(
            errors,
            &path.field("storageClassName"),
            text(spec, "storageClassName"),
            names::dns1123_subdomain,
        );
    }
    one_of(errors, path, spec, "volumeMode", &["Block", "Filesystem"]);
}
