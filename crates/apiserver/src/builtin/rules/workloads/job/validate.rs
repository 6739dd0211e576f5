//! What is wrong with a job, or with the job template of a `CronJob`.

use super::super::common::{self, SPEC, invalid_text, invalid_without_value, selector_text, selects};
use super::indexes;
use crate::builtin::rules::checks::{Errors, IMMUTABLE, form, nonnegative};
use crate::builtin::rules::json::{flag, int, is_empty, keep, list, object_mut, put, same, set, take, text};
use crate::builtin::rules::{names, pod};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::HashSet;

const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const HIGH_COMPLETIONS_MAX: i64 = 10_000;
const INDEXED_MAX: i64 = 100_000;
const METADATA: Path<'static> = Path::of("metadata");

/// Checks a new Job.
pub(super) fn validate(job: &Value, errors: &mut Errors) {
    validate_job(job, true, errors);
}

/// Checks an update of a Job.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let labels = old.pointer("/spec/template/metadata/labels");
    let prefixed = ["batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"];
    let had_prefixed = prefixed.iter().all(|key| labels.is_some_and(|l| l.get(key).is_some()));
    validate_job(new, had_prefixed, errors);
    let nothing = Value::Null;
    let (spec, before) = (new.get("spec").unwrap_or(&nothing), old.get("spec").unwrap_or(&nothing));
    // The real server checks the spec a second time here, and reports what it finds a second time.
    validate_selected_spec(spec, errors);
    validate_completions(spec, before, errors);
    common::immutable_selector(new, old, errors);
    validate_template_update(old, spec, before, errors);
    let fields = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
    for field in fields.iter().filter(|field| !same(spec.get(**field), before.get(**field))) {
        let now = spec.get(field).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&SPEC.field(field), now, IMMUTABLE));
    }
}

fn validate_job(job: &Value, prefixed_labels: bool, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = job.get("spec").unwrap_or(&nothing);
    let meta = job.get("metadata").unwrap_or(&nothing);
    validate_generated_selector(meta, spec, prefixed_labels, errors);
    validate_selected_spec(spec, errors);
    let name = text(meta, "name");
    if let Some(completions) = int(spec, "completions").filter(|c| *c > 0)
        && text(spec, "completionMode") == "Indexed"
    {
        let last = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&last).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {last}");
            errors.push(FieldError::invalid(&METADATA.field("name"), &name.into(), why));
        }
    }
}

fn validate_generated_selector(meta: &Value, spec: &Value, prefixed: bool, errors: &mut Errors) {
    let Some(selector) = set(spec, "selector").filter(|_| !flag(spec, "manualSelector")) else { return };
    let (name, uid) = (text(meta, "name"), text(meta, "uid"));
    if uid.is_empty() {
        errors.push(FieldError::required(&METADATA.field("uid"), ""));
    }
    let mut expected = vec![("controller-uid", uid), ("job-name", name)];
    if prefixed {
        expected.push(("batch.kubernetes.io/controller-uid", uid));
        expected.push(("batch.kubernetes.io/job-name", name));
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    let template = SPEC.field("template");
    let at = template.field("metadata");
    let at = at.field("labels");
    for (key, value) in &expected {
        let why = format!("must be '{value}'");
        match labels.get(*key) {
            None => errors.push(FieldError::required(&at.key(key), why)),
            Some(label) if label != *value => {
                errors.push(FieldError::invalid(&at.key(key), labels, why));
            }
            Some(_) => {}
        }
    }
    let expected: serde_json::Map<String, Value> =
        expected.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    if selects(Some(selector), Some(&expected.into())) == Some(false) {
        let shown = selector_text(Some(selector));
        errors.push(invalid_text(&SPEC.field("selector"), shown, "`selector` not auto-generated"));
    }
}

fn validate_selected_spec(spec: &Value, errors: &mut Errors) {
    validate_spec(spec, &SPEC, errors);
    let path = SPEC.field("selector");
    let selector = set(spec, "selector");
    match selector {
        None => errors.push(FieldError::required(&path, "")),
        Some(selector) => names::validate_label_selector(selector, &path, errors),
    }
    let nothing = Value::Null;
    let template = spec.get("template").unwrap_or(&nothing);
    if selects(selector, template.pointer("/metadata/labels")) == Some(false) {
        errors.push(common::unselected(template, &SPEC.field("template")));
    }
}

/// Checks a job spec, of a job or of a template for jobs.
pub(in super::super) fn validate_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        nonnegative(errors, path, spec, field);
    }
    if set(spec, "maxFailedIndexes").is_some() && set(spec, "backoffLimitPerIndex").is_none() {
        let why = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.field("backoffLimitPerIndex"), why));
    }
    validate_manager(spec, path, errors);
    validate_mode(spec, path, errors);
    if set(spec, "podFailurePolicy").is_some() {
        validate_failure_policy(spec, &path.field("podFailurePolicy"), errors);
    }
    if let Some(policy) = set(spec, "successPolicy") {
        let at = path.field("successPolicy");
        if text(spec, "completionMode") == "Indexed" {
            validate_success_policy(spec, policy, &at, errors);
        } else {
            errors.push(FieldError::invalid(&at, policy, "requires indexed completion mode"));
        }
    }
    validate_replacement(spec, path, errors);
    let nothing = Value::Null;
    let template = spec.get("template").unwrap_or(&nothing);
    pod::validate::validate_template(template, &path.field("template"), errors);
    validate_restart_policy(spec, template, path, errors);
}

fn validate_manager(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(manager) = set(spec, "managedBy").and_then(Value::as_str) else { return };
    let at = path.field("managedBy");
    match manager.split_once('/') {
        _ if manager.is_empty() => errors.push(FieldError::required(&at, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            form(errors, &at, host, names::dns1123_subdomain);
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(&at, &manager.into(), why));
        }
    }
    if manager.len() > 63 {
        errors.push(FieldError::too_long(&at, 63));
    }
}

fn validate_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mode = text(spec, "completionMode");
    let modes = ["NonIndexed", "Indexed"];
    if !mode.is_empty() && !modes.contains(&mode) {
        errors.push(FieldError::not_supported(&path.field("completionMode"), &mode.into(), &modes));
    }
    let of = |field: &str| int(spec, field);
    let mut refuse = |field: &str, why: String| {
        let shown = of(field).map_or(Value::Null, Value::from);
        errors.push(FieldError::invalid(&path.field(field), &shown, why));
    };
    if mode == "Indexed" {
        validate_indexed(spec, path, errors);
    } else if matches!(mode, "" | "NonIndexed") {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if of(field).is_some() {
                refuse(field, "requires indexed completion mode".to_owned());
            }
        }
    }
}

fn validate_indexed(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |field: &str| int(spec, field);
    let (completions, parallelism, failed) = (of("completions"), of("parallelism"), of("maxFailedIndexes"));
    let over = |errors: &mut Errors, field: &str, value: Option<i64>, max: i64, why: String| {
        if let Some(value) = value.filter(|value| *value > max) {
            errors.push(FieldError::invalid(&path.field(field), &value.into(), why));
        }
    };
    if completions.is_none() {
        let why = "when completion mode is Indexed";
        errors.push(FieldError::required(&path.field("completions"), why));
    }
    let why = format!("must be less than or equal to {INDEXED_MAX} when completion mode is Indexed");
    over(errors, "parallelism", parallelism, INDEXED_MAX, why);
    if let Some(completions) = completions {
        let why = "must be less than or equal to completions".to_owned();
        over(errors, "maxFailedIndexes", failed, completions, why);
    }
    let why = format!("must be less than or equal to {INDEXED_MAX}");
    over(errors, "maxFailedIndexes", failed, INDEXED_MAX, why);
    if completions.is_some_and(|c| c > COMPLETIONS_SOFT_MAX) && of("backoffLimitPerIndex").is_some() {
        if failed.is_none() {
            let why = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.push(FieldError::required(&path.field("maxFailedIndexes"), why));
        }
        for (field, value) in [("parallelism", parallelism), ("maxFailedIndexes", failed)] {
            let why = format!(
                "must be less than or equal to {HIGH_COMPLETIONS_MAX} when completions are above \
                 {COMPLETIONS_SOFT_MAX} and used with backoff limit per index"
            );
            over(errors, field, value, HIGH_COMPLETIONS_MAX, why);
        }
    }
}

fn validate_failure_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
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
        "FailIndex" => {
            if set(spec, "backoffLimitPerIndex").is_none() {
                let why = "requires the backoffLimitPerIndex to be set";
                errors.push(FieldError::invalid(path, &"FailIndex".into(), why));
            }
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
    if !values.is_sorted_by_key(|v| v.as_i64()) {
        errors.push(FieldError::invalid(&at, &codes["values"], "must be ordered"));
    }
}

fn validate_success_policy(spec: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
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

fn validate_replacement(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = text(spec, "podReplacementPolicy");
    let supported: &[&str] = if set(spec, "podFailurePolicy").is_some() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    if !policy.is_empty() && !supported.contains(&policy) {
        let at = path.field("podReplacementPolicy");
        errors.push(FieldError::not_supported(&at, &policy.into(), supported));
    }
}

fn validate_restart_policy(spec: &Value, template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("template");
    let at = at.field("spec");
    let at = at.field("restartPolicy");
    let policy = template.get("spec").map_or("", |s| text(s, "restartPolicy"));
    match policy {
        "" | "Always" => {
            errors.push(FieldError::required(&at, "valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if set(spec, "podFailurePolicy").is_some() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(&at, &policy.into(), why));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(FieldError::not_supported(&at, &policy.into(), &["OnFailure", "Never"])),
    }
}

/// The completions of an indexed job can follow its parallelism; others are fixed.
fn validate_completions(spec: &Value, before: &Value, errors: &mut Errors) {
    let (now, old) = (int(spec, "completions"), int(before, "completions"));
    if now == old {
        return;
    }
    let path = SPEC.field("completions");
    if text(spec, "completionMode") != "Indexed" {
        let shown = now.map_or(Value::Null, Value::from);
        errors.push(FieldError::invalid(&path, &shown, IMMUTABLE));
    } else if let Some(now) = now.filter(|now| Some(*now) != int(spec, "parallelism")) {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(&path, &now.into(), why));
    }
}

/// A job that is suspended and not running can still be given other nodes and other resources.
fn validate_template_update(old: &Value, spec: &Value, before: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let template = spec.get("template").unwrap_or(&nothing);
    let mut allowed = before.get("template").cloned().unwrap_or(Value::Null);
    if !is_idle(old) {
        if *template != allowed {
            let shown = pod::internal::render("PodTemplateSpec", template);
            errors.push(invalid_text(&SPEC.field("template"), shown, IMMUTABLE));
        }
        return;
    }
    if let (Some(pods), Some(now)) = (object_mut(&mut allowed, "spec"), template.get("spec")) {
        allow_node_affinity(pods, now);
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            keep(pods, now, field);
        }
        for field in ["containers", "initContainers"] {
            let containers = list(now, field);
            let Some(Value::Array(before)) = pods.get_mut(field) else { continue };
            if before.len() == containers.len() {
                for (before, now) in before.iter_mut().zip(containers) {
                    if text(before, "name") == text(now, "name") {
                        keep(before, now, "resources");
                    }
                }
            }
        }
    }
    if template.get("spec") != allowed.get("spec") {
        let shown = pod::internal::render("PodSpec", template.get("spec").unwrap_or(&Value::Null));
        errors.push(invalid_text(&SPEC.field("template.spec"), shown, IMMUTABLE));
    }
}

fn is_idle(job: &Value) -> bool {
    let nothing = Value::Null;
    let status = job.get("status").unwrap_or(&nothing);
    job.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false)
        && (set(status, "startTime").is_none() || super::status::has_condition(status, "Suspended", "True"))
        && int(status, "active").unwrap_or(0) == 0
}

fn allow_node_affinity(before: &mut Value, now: &Value) {
    let wanted = now.pointer("/affinity/nodeAffinity").cloned();
    if set(now, "affinity").is_some() && set(before, "affinity").is_none() {
        put(before, "affinity", json!({}));
    }
    let Some(affinity) = object_mut(before, "affinity") else { return };
    match wanted {
        Some(wanted) => put(affinity, "nodeAffinity", wanted),
        None => drop(take(affinity, "nodeAffinity")),
    }
    if set(now, "affinity").is_none() && is_empty(before.get("affinity")) {
        take(before, "affinity");
    }
}
