//! `Namespace`: born with the `kubernetes` finalizer, which only its own subresource takes away.

use super::{check_meta_again, check_new_meta_again};
use crate::builtin::rules::json::{default_to, ensure_object, keep, list, put, text};
use crate::builtin::rules::names::object_meta::validate_standard_finalizer;
use crate::builtin::rules::names::{complain, dns1123_label, label_key};
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};

/// What the server itself waits for before a namespace is gone.
pub(crate) const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const SPEC: Path<'static> = Path::of("spec");

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update,
    validate_status,
    name: dns1123_label,
    ..Rules::NONE
};

fn default(object: &mut Value) {
    label(object);
    if let Some(status) = ensure_object(object, "status") {
        default_to(status, "phase", "Active");
    }
}

fn label(object: &mut Value) {
    let name = text(&object["metadata"], "name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) = ensure_object(object, "metadata").and_then(|meta| ensure_object(meta, "labels")) {
        put(labels, NAME_LABEL, name);
    }
}

fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    // The name may have been generated since defaults were set.
    label(object);
    put(object, "status", json!({"phase": "Active"}));
    let Some(spec) = ensure_object(object, "spec") else { return };
    let mut finalizers = list(spec, "finalizers").to_vec();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    put(spec, "finalizers", finalizers);
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    if let Some(spec) = ensure_object(new, "spec") {
        keep(spec, &old["spec"], "finalizers");
    }
    keep(new, old, "status");
}

fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
}

/// What a write to `/finalize` may not touch.
pub(crate) fn prepare_finalize(new: &mut Value, old: &Value) {
    keep(new, old, "status");
}

fn validate_finalizer(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    complain(errors, path, name, label_key(name));
    validate_standard_finalizer(name, path, errors);
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let path = SPEC.field("finalizers");
    for name in list(&object["spec"], "finalizers") {
        validate_finalizer(name.as_str().unwrap_or(""), &path, errors);
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_new_meta_again(new, false, dns1123_label, errors);
    validate(new, errors);
    check_meta_again(new, old, errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    let phase = text(&new["status"], "phase");
    let (expected, detail) = if new["metadata"]["deletionTimestamp"].is_null() {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    } else {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    };
    if phase != expected {
        let status = Path::of("status");
        errors.push(FieldError::invalid(&status.field("Phase"), &phase.into(), detail));
    }
}

/// Everything wrong with a write to `/finalize`.
pub(crate) fn validate_finalize(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    let path = SPEC.field("finalizers");
    for (index, name) in list(&new["spec"], "finalizers").iter().enumerate() {
        validate_finalizer(name.as_str().unwrap_or(""), &path.index(index), errors);
    }
}
