//! What an update of a job may change.

use super::super::common::{self, SPEC, invalid_text};
use super::validate::{validate_job, validate_selected_spec};
use crate::builtin::rules::checks::{Errors, IMMUTABLE};
use crate::builtin::rules::json::{int, is_empty, keep, list, object_mut, put, same, set, take, text};
use crate::builtin::rules::pod;
use crate::field::FieldError;
use serde_json::{Value, json};

/// Checks an update of a Job.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
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
