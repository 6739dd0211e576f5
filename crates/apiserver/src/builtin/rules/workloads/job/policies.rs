//! When a job fails before its retries are used up, and when it succeeds before all its pods have.

use super::super::common::invalid_without_value;
use super::indexes;
use crate::builtin::rules::checks::{Errors, form, nonnegative};
use crate::builtin::rules::json::{int, list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::HashSet;

/// Checks `podFailurePolicy` of a job spec.
pub(super) fn validate_failure_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let nothing = Value::Null;
    let rules = list(spec.get("podFailurePolicy").unwrap_or(&nothing), "rules");
    let rules_path = path.field("rules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&rules_path, rules.len(), 20));
    }
    let pods = spec.pointer("/template/spec").unwrap_or(&nothing);
    let containers = list(pods, "containers").iter().chain(list(pods, "initContainers"));
    let containers: HashSet<&str> = containers.map(|c| text(c, "name")).collect();
    for (index, rule) in rules.iter().enumerate() {
        let at = rules_path.index(index);
        validate_failure_action(spec, rule, &at.field("action"), errors);
        let codes = set(rule, "onExitCodes");
        if let Some(codes) = codes {
            validate_exit_codes(codes, &containers, &at.field("onExitCodes"), errors);
        }
        let conditions = list(rule, "onPodConditions");
        validate_failure_conditions(conditions, &at.field("onPodConditions"), errors);
        if codes.is_some() && !conditions.is_empty() {
            let why = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.push(invalid_without_value(&at, why));
        }
        if codes.is_none() && conditions.is_empty() {
            let why = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.push(invalid_without_value(&at, why));
        }
    }
}

fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn validate_failure_action(spec: &Value, rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    match text(rule, "action") {
        "" => errors.push(FieldError::required(path, valid_values(&actions))),
        "FailIndex" if set(spec, "backoffLimitPerIndex").is_none() => {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(path, &"FailIndex".into(), why));
        }
        other if !actions.contains(&other) => {
            errors.push(FieldError::not_supported(path, &other.into(), &actions));
        }
        _ => {}
    }
}

fn validate_failure_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if conditions.len() > 20 {
        errors.push(FieldError::too_many(path, conditions.len(), 20));
    }
    let statuses = ["False", "True", "Unknown"];
    for (index, pattern) in conditions.iter().enumerate() {
        let at = path.index(index);
        form(errors, &at.field("type"), text(pattern, "type"), names::label_key);
        match text(pattern, "status") {
            "" => errors.push(FieldError::required(&at.field("status"), valid_values(&statuses))),
            status if !statuses.contains(&status) => {
                errors.push(FieldError::not_supported(&at.field("status"), &status.into(), &statuses));
            }
            _ => {}
        }
    }
}

fn validate_exit_codes(codes: &Value, containers: &HashSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let operators = ["In", "NotIn"];
    let operator = text(codes, "operator");
    let at = path.field("operator");
    if operator.is_empty() {
        errors.push(FieldError::required(&at, valid_values(&operators)));
    } else if !operators.contains(&operator) {
        errors.push(FieldError::not_supported(&at, &operator.into(), &operators));
    }
    if let Some(name) = set(codes, "containerName").and_then(Value::as_str)
        && !containers.contains(name)
    {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.field("containerName"), &name.into(), why));
    }
    let values = list(codes, "values");
    let at = path.field("values");
    if values.is_empty() {
        let shown = codes.get("values").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&at, shown, "at least one value is required"));
    } else if values.len() > 255 {
        errors.push(FieldError::too_many(&at, values.len(), 255));
    }
    let mut seen = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && value.as_i64() == Some(0) {
            errors.push(FieldError::invalid(&at.index(index), value, "must not be 0 for the In operator"));
        }
        if !seen.insert(value.as_i64()) {
            errors.push(FieldError::duplicate(&at.index(index), value));
        }
    }
    if !values.is_sorted_by_key(serde_json::Value::as_i64) {
        errors.push(FieldError::invalid(&at, &codes["values"], "must be ordered"));
    }
}

/// Checks `successPolicy` of a job spec.
pub(super) fn validate_success_policy(spec: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = list(policy, "rules");
    let rules_path = path.field("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&rules_path, why));
    }
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&rules_path, rules.len(), 20));
    }
    let completions = int(spec, "completions").unwrap_or(0);
    for (index, rule) in rules.iter().enumerate() {
        let at = rules_path.index(index);
        let wanted = set(rule, "succeededIndexes").and_then(Value::as_str);
        let count = int(rule, "succeededCount");
        if wanted.is_none() && count.is_none() {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(&at, why));
        }
        let mut total = 0;
        if let Some(wanted) = wanted {
            let at = at.field("succeededIndexes");
            if wanted.len() > 64 * 1024 {
                errors.push(FieldError::too_long(&at, 64 * 1024));
            }
            match indexes::count(wanted, completions) {
                Ok(count) => total = count,
                Err(why) => {
                    let why = format!("error parsing succeededIndexes: {why}");
                    errors.push(FieldError::invalid(&at, &wanted.into(), why));
                }
            }
        }
        let Some(count) = count else { continue };
        nonnegative(errors, &at, rule, "succeededCount");
        let bounds = [
            (completions, "the number of specified completions", true),
            (total, "the number of indexes in the specified succeededIndexes field", wanted.is_some()),
        ];
        for (max, what, _) in bounds.into_iter().filter(|(max, _, applies)| *applies && count > *max) {
            let why = format!("must be less than or equal to {max} ({what})");
            errors.push(FieldError::invalid(&at.field("succeededCount"), &count.into(), why));
        }
    }
}
