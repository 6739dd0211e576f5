//! What is wrong with a job, or with the job template of a `CronJob`.

use super::super::common::{self, SPEC, invalid_text, selector_text, selects};
use super::policies::{validate_failure_policy, validate_success_policy};
use crate::builtin::rules::checks::{Errors, form, nonnegative};
use crate::builtin::rules::json::{flag, int, set, text};
use crate::builtin::rules::{names, pod};
use crate::field::{FieldError, Path};
use serde_json::Value;

const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const HIGH_COMPLETIONS_MAX: i64 = 10_000;
const INDEXED_MAX: i64 = 100_000;
const METADATA: Path<'static> = Path::of("metadata");

/// Checks a new Job.
pub(super) fn validate(job: &Value, errors: &mut Errors) {
    validate_job(job, true, errors);
}

/// Checks everything in a Job that does not depend on what it was before.
pub(super) fn validate_job(job: &Value, prefixed_labels: bool, errors: &mut Errors) {
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

/// Checks a spec and that its selector chooses its template.
pub(super) fn validate_selected_spec(spec: &Value, errors: &mut Errors) {
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
