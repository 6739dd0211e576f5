//! What is wrong with an autoscaler.

use super::super::common::{SPEC, validate_counts};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::checks::{
    Errors, NOT_POSITIVE, form, nonnegative_quantity, one_of, required_form,
};
use crate::builtin::rules::json::{int, list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::Value;

const SOURCES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;

/// Whose API version a reference may leave out or misspell.
#[derive(Clone, Copy)]
struct Leniency {
    no_group: bool,
    any_version: bool,
}

/// Checks a new autoscaler.
pub(super) fn validate(autoscaler: &Value, errors: &mut Errors) {
    validate_spec(autoscaler, None, errors);
}

/// Checks an update of an autoscaler.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    validate_spec(new, Some(old), errors);
}

/// Checks a write to an autoscaler's status.
pub(super) fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    validate_counts(new.get("status").unwrap_or(&nothing), &["currentReplicas", "desiredReplicas"], errors);
}

fn validate_spec(autoscaler: &Value, old: Option<&Value>, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = autoscaler.get("spec").unwrap_or(&nothing);
    let before = old.and_then(|o| o.get("spec"));
    validate_bounds(spec, before, errors);
    let target = spec.get("scaleTargetRef").unwrap_or(&nothing);
    let same_target = before.and_then(|b| b.get("scaleTargetRef")).is_some_and(|before| {
        ["apiVersion", "kind"].iter().all(|field| text(before, field) == text(target, field))
    });
    let lenient =
        Leniency { no_group: text(target, "kind") == "ReplicationController", any_version: same_target };
    validate_reference(target, lenient, &SPEC.field("scaleTargetRef"), errors);
    let any_version = before.is_some_and(|before| {
        list(before, "metrics")
            .iter()
            .filter_map(|m| m.pointer("/object/describedObject"))
            .any(|object| version_error(text(object, "apiVersion"), true).is_some())
    });
    validate_metrics(spec, Leniency { no_group: true, any_version }, errors);
    if let Some(behavior) = set(spec, "behavior") {
        let path = SPEC.field("behavior");
        for field in ["scaleUp", "scaleDown"] {
            if let Some(rules) = set(behavior, field) {
                validate_rules(rules, &path.field(field), errors);
            }
        }
    }
}

fn validate_bounds(spec: &Value, before: Option<&Value>, errors: &mut Errors) {
    let least = i64::from(before.and_then(|b| int(b, "minReplicas")) != Some(0));
    let min = int(spec, "minReplicas");
    if let Some(min) = min.filter(|min| *min < least) {
        let why = format!("must be greater than or equal to {least}");
        errors.push(FieldError::invalid(&SPEC.field("minReplicas"), &min.into(), why));
    }
    let max = int(spec, "maxReplicas").unwrap_or(0);
    let path = SPEC.field("maxReplicas");
    if max == 0 {
        errors.push(FieldError::required(&path, "must be set and greater than 0"));
    } else if max < 0 {
        errors.push(FieldError::invalid(&path, &max.into(), "must be greater than or equal to 1"));
    }
    if min.is_some_and(|min| max < min) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path, &max.into(), why));
    }
}

fn validate_reference(reference: &Value, lenient: Leniency, path: &Path<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        required_form(errors, &path.field(field), text(reference, field), names::path_segment_name);
    }
    let version = text(reference, "apiVersion");
    if lenient.any_version {
        return;
    }
    if let Some(why) = version_error(version, lenient.no_group) {
        errors.push(FieldError::invalid(&path.field("apiVersion"), &version.into(), why));
    }
}

fn version_error(version: &str, no_group: bool) -> Option<String> {
    match version.split('/').count() {
        1 if no_group => None,
        1 => Some("apiVersion must specify API group".to_owned()),
        2 => {
            let no_name = version.starts_with('/') && !no_group;
            no_name.then(|| "apiVersion must specify API group".to_owned())
        }
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn validate_metrics(spec: &Value, lenient: Leniency, errors: &mut Errors) {
    let path = SPEC.field("metrics");
    let metrics = list(spec, "metrics");
    for (index, metric) in metrics.iter().enumerate() {
        validate_metric(metric, lenient, &path.index(index), errors);
    }
    let outside = metrics.iter().any(|m| matches!(text(m, "type"), "Object" | "External"));
    if int(spec, "minReplicas") == Some(0) && !outside {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&path, why));
    }
}

fn validate_metric(metric: &Value, lenient: Leniency, path: &Path<'_>, errors: &mut Errors) {
    const MISSING: &str = "must populate information for the given metric source";
    let kind = text(metric, "type");
    let unknown = FieldError::not_supported(&path.field("type"), &kind.into(), &SOURCES);
    if kind.is_empty() {
        errors.push(FieldError::required(&path.field("type"), "must specify a metric source type"));
    }
    if !SOURCES.contains(&kind) {
        errors.push(unknown.clone());
    }
    let fields = ["object", "external", "pods", "resource", "containerResource"];
    let mut present: Vec<&str> = fields.into_iter().filter(|f| set(metric, f).is_some()).collect();
    if let Some((field, source)) = present.first().and_then(|field| Some((*field, metric.get(*field)?))) {
        validate_source(field, source, lenient, &path.field(field), errors);
    }
    let expected = match kind {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => {
            errors.push(unknown);
            ""
        }
    };
    if !expected.is_empty() && !present.contains(&expected) {
        errors.push(FieldError::required(&path.field(expected), MISSING));
    }
    if present.len() != 1 {
        present.retain(|field| *field != expected);
        for field in present {
            let why = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.field(field), why));
        }
    }
}

fn validate_source(kind: &str, source: &Value, lenient: Leniency, path: &Path<'_>, errors: &mut Errors) {
    let nothing = Value::Null;
    if kind == "object" {
        let object = source.get("describedObject").unwrap_or(&nothing);
        validate_reference(object, lenient, &path.field("describedObject"), errors);
    }
    match kind {
        "resource" | "containerResource" => {
            if text(source, "name").is_empty() {
                errors.push(FieldError::required(&path.field("name"), "must specify a resource name"));
            }
        }
        _ => {
            let name = source.get("metric").map_or("", |m| text(m, "name"));
            let metric = path.field("metric");
            if name.is_empty() {
                errors.push(FieldError::required(&metric.field("name"), "must specify a metric name"));
            } else {
                form(errors, &metric.field("name"), name, names::path_segment_name);
            }
        }
    }
    if kind == "containerResource" {
        match text(source, "container") {
            "" => errors.push(FieldError::required(&path.field("container"), "must specify a container")),
            container => form(errors, &path.field("container"), container, names::dns1123_label),
        }
    }
    let target = source.get("target").unwrap_or(&nothing);
    validate_target(kind, target, &path.field("target"), errors);
}

fn validate_target(kind: &str, target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let named = text(target, "type");
    if named.is_empty() {
        errors.push(FieldError::required(&path.field("type"), "must specify a metric target type"));
    }
    if !matches!(named, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&path.field("type"), &named.into(), why));
    }
    for field in ["value", "averageValue"] {
        if let Some(value) = set(target, field)
            && Quantity::read(value).is_some_and(|q| !q.is_positive())
        {
            errors.push(FieldError::invalid(&path.field(field), value, "must be positive"));
        }
    }
    if let Some(utilization) = int(target, "averageUtilization").filter(|u| *u < 1) {
        let at = path.field("averageUtilization");
        errors.push(FieldError::invalid(&at, &utilization.into(), "must be greater than 0"));
    }
    let has = |field: &str| set(target, field).is_some();
    let (value, average, utilization) = (has("value"), has("averageValue"), has("averageUtilization"));
    let (average_path, value_path) = (path.field("averageValue"), path.field("value"));
    match kind {
        "object" if !value && !average => {
            let why = "must set either a target value or averageValue";
            errors.push(FieldError::required(&average_path, why));
        }
        "external" if !value && !average => {
            let why = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(&average_path, why));
        }
        "external" if value && average => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&value_path, why));
        }
        "pods" if !average => {
            let why = "must specify a positive target averageValue";
            errors.push(FieldError::required(&average_path, why));
        }
        "resource" | "containerResource" if !utilization && !average => {
            let why = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(&path.field("averageUtilization"), why));
        }
        "resource" | "containerResource" if utilization && average => {
            let why = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&average_path, why));
        }
        _ => {}
    }
}

fn validate_rules(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(window) = int(rules, "stabilizationWindowSeconds") {
        let at = path.field("stabilizationWindowSeconds");
        if window < 0 {
            let why = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&at, &window.into(), why));
        }
        if window > WINDOW_SECONDS_MAX {
            let why = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            errors.push(FieldError::invalid(&at, &window.into(), why));
        }
    }
    one_of(errors, path, rules, "selectPolicy", &["Disabled", "Max", "Min"]);
    let policies_path = path.field("policies");
    let policies = list(rules, "policies");
    if policies.is_empty() {
        errors.push(FieldError::required(&policies_path, "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        let at = policies_path.index(index);
        let kinds = ["Percent", "Pods"];
        let kind = text(policy, "type");
        if !kinds.contains(&kind) {
            errors.push(FieldError::not_supported(&at.field("type"), &kind.into(), &kinds));
        }
        for field in ["value", "periodSeconds"] {
            let number = int(policy, field).unwrap_or(0);
            if number <= 0 {
                errors.push(FieldError::invalid(&at.field(field), &number.into(), NOT_POSITIVE));
            }
        }
        if let Some(period) = int(policy, "periodSeconds").filter(|p| *p > PERIOD_SECONDS_MAX) {
            let why = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            errors.push(FieldError::invalid(&at.field("periodSeconds"), &period.into(), why));
        }
    }
    if let Some(tolerance) = set(rules, "tolerance") {
        nonnegative_quantity(errors, &path.field("tolerance"), tolerance);
    }
}
