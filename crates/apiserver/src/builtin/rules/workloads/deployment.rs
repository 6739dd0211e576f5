//! `Deployment`.

use super::super::checks::{Errors, count_or_percent, nonnegative, not_over_100_percent, percent};
use super::super::json::{
    bump_generation, default_to, ensure_object, int, keep, object_mut, same, same_field, set, text,
};
use super::super::{Env, Rules, names, pod};
use super::common::{self, SPEC, SelectorWording};
use crate::field::{FieldError, Path};
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: common::prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update,
    validate_status,
    warnings,
    name: names::dns1123_subdomain,
};

fn default(deployment: &mut Value) {
    let Some(spec) = ensure_object(deployment, "spec") else { return };
    default_to(spec, "replicas", 1);
    if let Some(strategy) = ensure_object(spec, "strategy") {
        default_to(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = ensure_object(strategy, "rollingUpdate")
        {
            default_count(rolling, "maxUnavailable", "25%".into());
            default_count(rolling, "maxSurge", "25%".into());
        }
    }
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    pod::defaults::default_template(spec);
}

/// Sets a number-or-percentage unless it is set; unlike other texts, an empty one counts as set.
pub(super) fn default_count(holder: &mut Value, field: &str, value: Value) {
    if let Some(map) = holder.as_object_mut() {
        let slot = map.entry(field).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value;
        }
    }
}

/// Annotations count as well: a rollout controller of old kept its requests there.
fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    common::keep_status(new, old);
    let annotations = "/metadata/annotations";
    let same_annotations = same(new.pointer(annotations), old.pointer(annotations));
    let changed = !same_field(new, old, "spec") || !same_annotations;
    bump_generation(new, old, changed);
}

fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
    if let (Some(meta), Some(before)) = (object_mut(new, "metadata"), old.get("metadata")) {
        keep(meta, before, "labels");
    }
}

const WORDING: SelectorWording = SelectorWording {
    empty_for: "deployment",
    broken: "invalid label selector",
    validate_template: super::replica_set::validate_template,
};

fn validate(deployment: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = deployment.get("spec").unwrap_or(&nothing);
    nonnegative(errors, &SPEC, spec, "replicas");
    common::validate_selected_template(spec, &WORDING, errors);
    validate_strategy(spec, errors);
    nonnegative(errors, &SPEC, spec, "minReadySeconds");
    nonnegative(errors, &SPEC, spec, "revisionHistoryLimit");
    nonnegative(errors, &SPEC, spec, "progressDeadlineSeconds");
    let ready = int(spec, "minReadySeconds").unwrap_or(0);
    if let Some(deadline) = int(spec, "progressDeadlineSeconds").filter(|d| *d <= ready) {
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(&SPEC.field("progressDeadlineSeconds"), &deadline.into(), why));
    }
}

fn validate_strategy(spec: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let strategy = spec.get("strategy").unwrap_or(&nothing);
    let path = SPEC.field("strategy");
    let rolling_path = path.field("rollingUpdate");
    match (text(strategy, "type"), set(strategy, "rollingUpdate")) {
        ("Recreate", None) => {}
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&rolling_path, why));
        }
        ("RollingUpdate", None) => {
            let why = "this should be defaulted and never be nil";
            errors.push(FieldError::required(&rolling_path, why));
        }
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &rolling_path, errors),
        (_, rolling) => {
            let mut error = FieldError::not_supported(&path, &Value::Null, &["Recreate", "RollingUpdate"]);
            error.value = Some(strategy_text(strategy, rolling));
            errors.push(error);
        }
    }
}

/// A strategy as the real server's own type prints it.
pub(super) fn strategy_text(strategy: &Value, rolling: Option<&Value>) -> String {
    let kind = crate::field::go_quote(text(strategy, "type"));
    let rolling = rolling.map_or_else(|| "null".to_owned(), ToString::to_string);
    format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}")
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    let zero = Value::from(0);
    let unavailable = rolling.get("maxUnavailable").unwrap_or(&zero);
    let surge = rolling.get("maxSurge").unwrap_or(&zero);
    count_or_percent(errors, &path.field("maxUnavailable"), unavailable);
    count_or_percent(errors, &path.field("maxSurge"), surge);
    if amount(unavailable) == 0 && amount(surge) == 0 {
        let why = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(&path.field("maxUnavailable"), unavailable, why));
    }
    not_over_100_percent(errors, &path.field("maxUnavailable"), unavailable);
}

/// The number in a count or percentage.
pub(super) fn amount(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    validate(new, errors);
    common::immutable_selector(new, old, errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let status = new.get("status").unwrap_or(&nothing);
    common::validate_counts(
        status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        errors,
    );
    let counts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    common::validate_replica_counts(status, &counts, "readyReplicas", errors);
    common::validate_collisions(new, old, errors);
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    pod::warnings::for_workload(new, old, common::name_warnings)
}
