//! `PodDisruptionBudget`.

use super::super::checks::{Errors, count_or_percent, not_over_100_percent, one_of};
use super::super::json::set;
use super::super::{Env, Rules, names};
use super::common::{self, SPEC, invalid_text, selector_text};
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    prepare_create,
    prepare_update: common::prepare_update,
    prepare_status: common::prepare_status,
    validate,
    validate_update: |new, _, errors| validate(new, errors),
    validate_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

fn prepare_create(budget: &mut Value, _env: &Env<'_>) {
    let status =
        json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    common::prepare_create_with(budget, status);
}

fn validate(budget: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = budget.get("spec").unwrap_or(&nothing);
    if set(spec, "minAvailable").is_some() && set(spec, "maxUnavailable").is_some() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(invalid_text(&SPEC, spec_text(spec), why));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(value) = set(spec, field) {
            count_or_percent(errors, &SPEC.field(field), value);
            not_over_100_percent(errors, &SPEC.field(field), value);
        }
    }
    if let Some(selector) = set(spec, "selector") {
        names::validate_label_selector(selector, &SPEC.field("selector"), errors);
    }
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    one_of(errors, &SPEC, spec, "unhealthyPodEvictionPolicy", &policies);
}

/// A spec as the real server's own type prints it.
fn spec_text(spec: &Value) -> String {
    let of = |field: &str| spec.get(field).unwrap_or(&Value::Null).to_string();
    format!(
        "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
        of("minAvailable"),
        selector_text(spec.get("selector")),
        of("maxUnavailable"),
        of("unhealthyPodEvictionPolicy"),
    )
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    common::validate_counts(new.get("status").unwrap_or(&nothing), &counts, errors);
}
