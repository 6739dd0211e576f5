//! What the kinds that run pods have in common.

use super::super::checks::{Errors, IMMUTABLE, nonnegative};
use super::super::json::{
    bump_generation, int, is_empty, keep, list, put, same, same_field, set, set_generation, text,
};
use super::super::{Env, names, pod};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};

pub(super) const SPEC: Path<'static> = Path::of("spec");
pub(super) const STATUS: Path<'static> = Path::of("status");

/// A new object of a kind whose status has no fields that are always written.
pub(super) fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    prepare_create_with(object, json!({}));
}

/// A new object: an unused status, generation 1, fields of disabled features ignored.
pub(super) fn prepare_create_with(object: &mut Value, status: Value) {
    put(object, "status", status);
    set_generation(object, 1);
    pod::prepare::drop_disabled(object.pointer_mut("/spec/template/spec"), None);
}

/// An update: status stays, and a changed spec counts as a new generation.
pub(super) fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep_status(new, old);
    let changed = !same_field(new, old, "spec");
    bump_generation(new, old, changed);
}

/// Everything an update does before the generation is decided.
pub(super) fn keep_status(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    pod::prepare::drop_disabled(new.pointer_mut("/spec/template/spec"), old.pointer("/spec/template/spec"));
}

/// A write to status: spec stays.
pub(super) fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
}

/// Whether labels fulfil a selector; none if the selector is no valid one. An absent selector chooses
/// nothing, an empty one everything.
pub(crate) fn selects(selector: Option<&Value>, labels: Option<&Value>) -> Option<bool> {
    let Some(selector) = selector.filter(|s| !s.is_null()) else { return Some(false) };
    let mut errors = Vec::new();
    names::validate_label_selector(selector, &Path::ROOT, &mut errors);
    if !errors.is_empty() {
        return None;
    }
    let label = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let labels_match = wanted.into_iter().flatten().all(|(key, value)| label(key) == value.as_str());
    Some(
        labels_match
            && list(selector, "matchExpressions").iter().all(|requirement| {
                let value = label(text(requirement, "key"));
                let listed = list(requirement, "values").iter().any(|v| v.as_str() == value);
                match text(requirement, "operator") {
                    "In" => value.is_some() && listed,
                    "NotIn" => value.is_none() || !listed,
                    "Exists" => value.is_some(),
                    _ => value.is_none(),
                }
            }),
    )
}

/// An `Invalid` that quotes text made elsewhere instead of a value.
pub(super) fn invalid_text(path: &Path<'_>, shown: String, why: impl Into<String>) -> FieldError {
    let mut error = FieldError::invalid(path, &Value::Null, why);
    error.value = Some(shown);
    error
}

/// An `Invalid` about a field as a whole, without its value.
pub(super) fn invalid_without_value(path: &Path<'_>, why: impl Into<String>) -> FieldError {
    let mut error = FieldError::invalid(path, &Value::Null, why);
    error.value = None;
    error
}

/// A selector in the order of its type.
pub(super) fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector.filter(|s| !s.is_null()) else { return "null".to_owned() };
    let fields = ["matchLabels", "matchExpressions"].iter();
    let set = fields.filter_map(|f| Some(format!("\"{f}\":{}", selector.get(f)?)));
    format!("{{{}}}", set.collect::<Vec<_>>().join(","))
}

/// Refuses a changed selector.
pub(super) fn immutable_selector(new: &Value, old: &Value, errors: &mut Errors) {
    let of = |object: &'_ Value| object.pointer("/spec/selector").cloned();
    let (now, before) = (of(new), of(old));
    if !same(now.as_ref(), before.as_ref()) {
        errors.push(invalid_text(&SPEC.field("selector"), selector_text(now.as_ref()), IMMUTABLE));
    }
}

/// Checks a required selector and the template it must choose. `kind` is how the kind calls itself.
pub(super) fn validate_selected_template(spec: &Value, kind: &SelectorWording, errors: &mut Errors) {
    let path = SPEC.field("selector");
    let selector = set(spec, "selector");
    match selector {
        None => errors.push(FieldError::required(&path, "")),
        Some(selector) => {
            names::validate_label_selector(selector, &path, errors);
            if is_empty(selector.get("matchLabels")) && is_empty(selector.get("matchExpressions")) {
                let why = format!("empty selector is invalid for {}", kind.empty_for);
                errors.push(invalid_text(&path, selector_text(Some(selector)), why));
            }
        }
    }
    let nothing = Value::Null;
    let template = spec.get("template").unwrap_or(&nothing);
    let path = SPEC.field("template");
    match selects(selector, template.pointer("/metadata/labels")) {
        None => {
            let shown = selector_text(selector);
            errors.push(invalid_text(&SPEC.field("selector"), shown, kind.broken));
            return;
        }
        Some(false) => errors.push(unselected(template, &path)),
        Some(true) => {}
    }
    (kind.validate_template)(spec, template, &path, errors);
}

/// How a kind words what is wrong with its selector, and checks its template.
pub(super) struct SelectorWording {
    /// The kind for which an empty selector is wrong.
    pub empty_for: &'static str,
    /// What is said of a selector that cannot be evaluated.
    pub broken: &'static str,
    /// Checks the template: `(spec, template, path, errors)`.
    pub validate_template: fn(&Value, &Value, &Path<'_>, &mut Errors),
}

/// The template's labels are not what the selector wants.
pub(super) fn unselected(template: &Value, path: &Path<'_>) -> FieldError {
    let labels = template.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let path = path.field("metadata");
    FieldError::invalid(&path.field("labels"), labels, "`selector` does not match template `labels`")
}

/// Pods of these kinds run until they are deleted.
pub(super) fn validate_always_running(template: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = template.get("spec").unwrap_or(&nothing);
    let path = path.field("spec");
    let policy = text(spec, "restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.field("restartPolicy"), &policy.into(), &["Always"]));
    }
    if set(spec, "activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(&path.field("activeDeadlineSeconds"), why));
    }
}

/// None of these counts may be below zero.
pub(super) fn validate_counts(status: &Value, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        nonnegative(errors, &STATUS, status, field);
    }
}

/// None of these counts may be above `status.replicas`, nor the available above the ready.
pub(super) fn validate_replica_counts(status: &Value, fields: &[&str], ready: &str, errors: &mut Errors) {
    let of = |field: &str| int(status, field).unwrap_or(0);
    for field in fields.iter().filter(|field| of(field) > of("replicas")) {
        let why = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(&STATUS.field(field), &of(field).into(), why));
    }
    let available = of("availableReplicas");
    if available > of("readyReplicas") {
        let why = format!("cannot be greater than {ready}");
        errors.push(FieldError::invalid(&STATUS.field("availableReplicas"), &available.into(), why));
    }
}

/// The number of name collisions only grows.
pub(super) fn validate_collisions(new: &Value, old: &Value, errors: &mut Errors) {
    let of = |object: &Value| object.pointer("/status/collisionCount").and_then(Value::as_i64);
    let (now, before) = (of(new), of(old));
    if before.is_some_and(|before| now.is_none_or(|now| now < before)) {
        let path = STATUS.field("collisionCount");
        errors.push(FieldError::invalid(&path, &now.unwrap_or(0).into(), "cannot be decremented"));
    }
}

/// Warns of a name that cannot be a host name.
pub(super) fn name_warnings(object: &Value) -> Vec<String> {
    let name = object.get("metadata").map_or("", |m| text(m, "name"));
    let wrong = names::dns1123_label(name);
    if wrong.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a \
         DNS label is recommended: [{}]",
        wrong.join(" ")
    )]
}
