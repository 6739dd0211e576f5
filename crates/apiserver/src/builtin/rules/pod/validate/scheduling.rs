//! Where a pod may run: tolerations, affinity, spreading, gates.

use crate::builtin::rules::checks::{Errors, NOT_POSITIVE, form, one_of};
use crate::builtin::rules::json::{int, list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::HashSet;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks a list of tolerations.
pub(super) fn validate_tolerations(tolerations: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = path.index(index);
        let of = |field: &str| text(toleration, field);
        if !of("key").is_empty() {
            form(errors, &at.field("key"), of("key"), names::label_key);
        } else if of("operator") != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&at.field("operator"), &of("operator").into(), why));
        }
        if set(toleration, "tolerationSeconds").is_some() && of("effect") != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&at.field("effect"), &of("effect").into(), why));
        }
        let value: Value = of("value").into();
        match of("operator") {
            "Equal" | "" => {
                let wrong = names::label_value(of("value"));
                if !wrong.is_empty() {
                    errors.push(FieldError::invalid(&at.field("operator"), &value, wrong.join(";")));
                }
            }
            "Exists" => {
                if !of("value").is_empty() {
                    let why = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(&at.field("operator"), &value, why));
                }
            }
            other => {
                let supported: &[&str] = match other {
                    "Lt" | "Gt" => &["Equal", "Exists", "Lt", "Gt"],
                    _ => &["Equal", "Exists"],
                };
                errors.push(FieldError::not_supported(&at.field("operator"), &other.into(), supported));
            }
        }
        one_of(errors, &at, toleration, "effect", &EFFECTS);
    }
}

/// Checks `affinity`.
pub(super) fn validate_affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(nodes) = set(affinity, "nodeAffinity") {
        let at = path.field("nodeAffinity");
        if let Some(selector) = set(nodes, REQUIRED) {
            validate_node_selector(selector, &at.field(REQUIRED), errors);
        }
        let preferred = at.field(PREFERRED);
        for (index, term) in list(nodes, PREFERRED).iter().enumerate() {
            let at = preferred.index(index);
            validate_weight(term, &at, errors);
            let nothing = Value::Null;
            let preference = term.get("preference").unwrap_or(&nothing);
            validate_node_term(preference, true, &at.field("preference"), errors);
        }
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = set(affinity, side) else { continue };
        let at = path.field(side);
        let required = at.field(REQUIRED);
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            validate_pod_term(term, &required.index(index), errors);
        }
        let preferred = at.field(PREFERRED);
        for (index, term) in list(pods, PREFERRED).iter().enumerate() {
            let at = preferred.index(index);
            validate_weight(term, &at, errors);
            let nothing = Value::Null;
            let inner = term.get("podAffinityTerm").unwrap_or(&nothing);
            validate_pod_term(inner, &at.field("podAffinityTerm"), errors);
        }
    }
}

fn validate_weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = int(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.field("weight"), &weight.into(), "must be in the range 1-100"));
    }
}

fn validate_node_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        validate_node_term(term, false, &path.index(index), errors);
    }
}

/// Values of preferences were never checked, and are not now.
fn validate_node_term(term: &Value, any_values: bool, path: &Path<'_>, errors: &mut Errors) {
    let expressions = path.field("matchExpressions");
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        validate_node_requirement(requirement, any_values, &expressions.index(index), errors);
    }
    let fields = path.field("matchFields");
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        let at = fields.index(index);
        let values = list(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.len() == 1 => {}
            "In" | "NotIn" => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&at.field("values"), why));
            }
            other => {
                let why = "not a valid selector operator";
                errors.push(FieldError::invalid(&at.field("operator"), &other.into(), why));
            }
        }
        let key = text(requirement, "key");
        if key != "metadata.name" {
            errors.push(FieldError::invalid(&at.field("key"), &key.into(), "not a valid field selector key"));
            continue;
        }
        let values_path = at.field("values");
        for (index, value) in values.iter().enumerate() {
            form(
                errors,
                &values_path.index(index),
                value.as_str().unwrap_or_default(),
                names::dns1123_subdomain,
            );
        }
    }
}

fn validate_node_requirement(requirement: &Value, any_values: bool, path: &Path<'_>, errors: &mut Errors) {
    let values = list(requirement, "values");
    let at = path.field("values");
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&at, why));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&at, why));
            }
        }
        "Gt" | "Lt" => {
            if values.len() != 1 {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(&at, why));
            }
        }
        other => {
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.field("operator"), &other.into(), why));
        }
    }
    form(errors, &path.field("key"), text(requirement, "key"), names::label_key);
    if !any_values {
        for (index, value) in values.iter().enumerate() {
            form(errors, &at.index(index), value.as_str().unwrap_or_default(), names::label_value);
        }
    }
}

fn validate_pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = set(term, field) {
            names::validate_label_selector(selector, &path.field(field), errors);
        }
    }
    for namespace in list(term, "namespaces") {
        form(errors, &path.field("namespace"), namespace.as_str().unwrap_or_default(), names::dns1123_label);
    }
    validate_label_keys(term, path, errors);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path.field("topologyKey"), "can not be empty"));
    }
    form(errors, &path.field("topologyKey"), key, names::label_key);
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys` against each other and against the selector, which by
/// now has been completed from them.
fn validate_label_keys(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = set(term, "labelSelector");
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = list(term, field);
        let at = path.field(field);
        if !keys.is_empty() && selector.is_none() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(&at, why));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            form(errors, &at.index(index), key.as_str().unwrap_or_default(), names::label_key);
        }
    }
    let matching = list(term, "matchLabelKeys");
    if let Some(selector) = selector {
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        let mut selected: HashSet<&str> = labels.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        for expression in list(selector, "matchExpressions") {
            let key = text(expression, "key");
            let twice = !selected.insert(key);
            if let (true, Some(index)) = (twice, matching.iter().rposition(|k| *k == key)) {
                let why = "exists in both matchLabelKeys and labelSelector";
                errors.push(FieldError::invalid(&path.index(index), &key.into(), why));
            }
        }
    }
    let mismatching = list(term, "mismatchLabelKeys");
    let at = path.field("matchLabelKeys");
    for (index, key) in matching.iter().enumerate().filter(|(_, key)| mismatching.contains(key)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(&at.index(index), key, why));
    }
}

/// Checks `topologySpreadConstraints`.
pub(super) fn validate_spread(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("topologySpreadConstraints");
    let constraints = list(spec, "topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let at = path.index(index);
        let skew = int(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.push(FieldError::invalid(&at.field("maxSkew"), &skew.into(), NOT_POSITIVE));
        }
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(&at.field("topologyKey"), "can not be empty"));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action) {
            errors.push(FieldError::not_supported(&at.field("whenUnsatisfiable"), &action.into(), &actions));
        }
        let same = |c: &Value| text(c, "topologyKey") == key && text(c, "whenUnsatisfiable") == action;
        if constraints[index + 1..].iter().any(same) {
            let at = at.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&at, &format!("{{{key}, {action}}}").into()));
        }
        if let Some(domains) = int(constraint, "minDomains") {
            let at = at.field("minDomains");
            if domains <= 0 {
                errors.push(FieldError::invalid(&at, &domains.into(), NOT_POSITIVE));
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(&at, &domains.into(), why));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of(errors, &at, constraint, field, &["Honor", "Ignore"]);
        }
        validate_label_keys(constraint, &at, errors);
        if let Some(selector) = set(constraint, "labelSelector") {
            names::validate_label_selector(selector, &at.field("labelSelector"), errors);
        }
    }
}

/// Checks `readinessGates` and `schedulingGates`.
pub(super) fn validate_gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let readiness = path.field("readinessGates");
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let at = readiness.index(index);
        form(errors, &at.field("conditionType"), text(gate, "conditionType"), names::label_key);
    }
    let scheduling = path.field("schedulingGates");
    let mut seen = HashSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let (at, name) = (scheduling.index(index), text(gate, "name"));
        form(errors, &at, name, names::label_key);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at, &name.into()));
        }
    }
}
