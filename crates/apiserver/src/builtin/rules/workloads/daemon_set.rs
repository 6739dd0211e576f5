//! `DaemonSet`.

use super::super::checks::{Errors, count_or_percent, nonnegative, not_over_100_percent};
use super::super::json::{bump_generation, default_to, ensure_object, is_empty, put, same_field, set, text};
use super::super::{Env, Rules, names, pod};
use super::common::{self, SPEC, invalid_text, selector_text, selects};
use super::deployment::{amount, default_count, strategy_text};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    validate,
    validate_update,
    validate_status,
    warnings,
    name: names::dns1123_subdomain,
};

/// How often the template changed. A field of the type long ago, kept as an annotation since.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn default(set: &mut Value) {
    let generation = template_generation(set);
    put_template_generation(set, generation);
    let Some(spec) = ensure_object(set, "spec") else { return };
    if let Some(strategy) = ensure_object(spec, "updateStrategy") {
        default_to(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = ensure_object(strategy, "rollingUpdate")
        {
            default_count(rolling, "maxUnavailable", 1.into());
            default_count(rolling, "maxSurge", 0.into());
        }
    }
    default_to(spec, "revisionHistoryLimit", 10);
    pod::defaults::default_template(spec);
}

fn prepare_create(set: &mut Value, _env: &Env<'_>) {
    let status = json!({
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    });
    common::prepare_create_with(set, status);
    let generation = template_generation(set).max(1);
    put_template_generation(set, generation);
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    common::keep_status(new, old);
    let template_changed = new.pointer("/spec/template") != old.pointer("/spec/template");
    put_template_generation(new, template_generation(old) + i64::from(template_changed));
    let changed = template_changed || !same_field(new, old, "spec");
    bump_generation(new, old, changed);
}

fn template_generation(set: &Value) -> i64 {
    let annotations = set.pointer("/metadata/annotations").unwrap_or(&Value::Null);
    text(annotations, TEMPLATE_GENERATION).parse().unwrap_or(0)
}

fn put_template_generation(set: &mut Value, generation: i64) {
    if let Some(annotations) = ensure_object(set, "metadata").and_then(|m| ensure_object(m, "annotations")) {
        put(annotations, TEMPLATE_GENERATION, generation.to_string());
    }
}

fn validate(daemons: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = daemons.get("spec").unwrap_or(&nothing);
    let (selector, path) = (set(spec, "selector"), SPEC.field("selector"));
    if let Some(selector) = selector {
        names::validate_label_selector(selector, &path, errors);
    }
    let template = spec.get("template").unwrap_or(&nothing);
    let template_path = SPEC.field("template");
    if selects(selector, template.pointer("/metadata/labels")) == Some(false) {
        errors.push(common::unselected(template, &template_path));
    }
    if let Some(selector) = selector
        && is_empty(selector.get("matchLabels"))
        && is_empty(selector.get("matchExpressions"))
    {
        let why = "empty selector is invalid for daemonset";
        errors.push(invalid_text(&path, selector_text(Some(selector)), why));
    }
    pod::validate::validate_template(template, &template_path, errors);
    common::validate_always_running(template, "DaemonSet", &template_path, errors);
    nonnegative(errors, &SPEC, spec, "minReadySeconds");
    validate_strategy(spec, errors);
    nonnegative(errors, &SPEC, spec, "revisionHistoryLimit");
}

fn validate_strategy(spec: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&nothing);
    let path = SPEC.field("updateStrategy");
    let rolling_path = path.field("rollingUpdate");
    match (text(strategy, "type"), set(strategy, "rollingUpdate")) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => errors.push(FieldError::required(&rolling_path, "")),
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &rolling_path, errors),
        (_, rolling) => {
            let mut error = FieldError::not_supported(&path, &Value::Null, &["RollingUpdate", "OnDelete"]);
            error.value = Some(strategy_text(strategy, rolling));
            errors.push(error);
        }
    }
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    let zero = Value::from(0);
    let of = |field: &str| rolling.get(field).unwrap_or(&zero);
    for field in ["maxUnavailable", "maxSurge"] {
        count_or_percent(errors, &path.field(field), of(field));
    }
    for field in ["maxUnavailable", "maxSurge"] {
        not_over_100_percent(errors, &path.field(field), of(field));
    }
    match (amount(of("maxUnavailable")) != 0, amount(of("maxSurge")) != 0) {
        (true, true) => {
            let why = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&path.field("maxSurge"), of("maxSurge"), why));
        }
        (false, false) => {
            let why = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(&path.field("maxUnavailable"), why));
        }
        _ => {}
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    common::immutable_selector(new, old, errors);
    validate(new, errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    common::validate_counts(new.get("status").unwrap_or(&nothing), &counts, errors);
    common::validate_collisions(new, old, errors);
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| template_generation(old) == template_generation(new)) {
        return Vec::new();
    }
    pod::warnings::for_workload(new, old, |_| Vec::new())
}
