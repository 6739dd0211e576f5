//! `Job`: defaults, and the selector that the server makes for it.

mod indexes;
mod policies;
mod status;
mod update;
pub(super) mod validate;

use super::common;
use crate::builtin::rules::json::{
    default_to, ensure_object, flag, generation, int, is_empty, list_mut, object_mut, put, set,
    set_generation, text,
};
use crate::builtin::rules::{Env, Rules, names, pod};
use crate::field::Path;
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update: common::prepare_update,
    prepare_status: common::prepare_status,
    validate: validate::validate,
    validate_update: update::validate,
    validate_status: status::validate,
    warnings,
    name: names::dns1123_subdomain,
};

/// Stands in `metadata.generation` between defaulting and preparing, which overwrites it, of a job whose
/// labels were taken from its template. Such a job shares its labels with the template from then on, so
/// it gets the generated ones too.
const LABELS_SHARED: i64 = -1;

fn default(job: &mut Value) {
    let Some(spec) = ensure_object(job, "spec") else { return };
    if set(spec, "parallelism").is_none() {
        default_to(spec, "completions", 1);
        default_to(spec, "parallelism", 1);
    }
    let backoff = if set(spec, "backoffLimitPerIndex").is_some() { i32::MAX } else { 6 };
    default_to(spec, "backoffLimit", backoff);
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "suspend", false);
    let replacement = if set(spec, "podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    default_to(spec, "podReplacementPolicy", replacement);
    default_to(spec, "manualSelector", false);
    default_template(spec);
    default_labels(job);
}

/// Fills in the parts of a job spec that a `CronJob`'s template has filled in too.
pub(super) fn default_template(spec: &mut Value) {
    pod::defaults::default_template(spec);
    if let Some(policy) = object_mut(spec, "podFailurePolicy") {
        for rule in list_mut(policy, "rules") {
            for pattern in list_mut(rule, "onPodConditions") {
                default_to(pattern, "status", "True");
            }
        }
    }
}

fn default_labels(job: &mut Value) {
    if !is_empty(job.pointer("/metadata/labels")) {
        return;
    }
    let Some(labels) = job.pointer("/spec/template/metadata/labels").filter(|l| !is_empty(Some(l))) else {
        return;
    };
    let labels = labels.clone();
    if let Some(meta) = ensure_object(job, "metadata") {
        put(meta, "labels", labels);
        put(meta, "generation", LABELS_SHARED);
    }
}

fn prepare_create(job: &mut Value, env: &Env<'_>) {
    let shared = generation(job) == LABELS_SHARED;
    common::prepare_create(job, env);
    if !job.get("spec").is_some_and(|spec| flag(spec, "manualSelector")) {
        generate_selector(job, shared, env);
    }
    // Defaulting happens again whenever a stored job is read, now with the generated labels.
    default_labels(job);
    set_generation(job, 1);
}

/// Labels the pods with the job's name and uid, and selects them by the uid.
fn generate_selector(job: &mut Value, shared: bool, env: &Env<'_>) {
    let Some(meta) = ensure_object(job, "metadata") else { return };
    if text(meta, "uid").is_empty() {
        put(meta, "uid", (env.uid)());
    }
    let (name, uid) = (text(meta, "name").to_owned(), text(meta, "uid").to_owned());
    let generated = [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ];
    let add = |holder: Option<&mut Value>| {
        if let Some(labels) = holder.and_then(|h| ensure_object(h, "labels")).and_then(Value::as_object_mut) {
            for (key, value) in generated {
                labels.entry(key).or_insert_with(|| value.as_str().into());
            }
        }
    };
    if shared {
        add(Some(meta));
    }
    let Some(spec) = ensure_object(job, "spec") else { return };
    add(ensure_object(spec, "template").and_then(|t| ensure_object(t, "metadata")));
    let selected = ensure_object(spec, "selector").and_then(|s| ensure_object(s, "matchLabels"));
    if let Some(labels) = selected.and_then(Value::as_object_mut) {
        labels.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| uid.as_str().into());
    }
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        Some(old) if generation(old) == generation(new) => Vec::new(),
        Some(_) => spec_warnings(new.get("spec"), &Path::of("spec")),
        None => {
            let mut warnings = common::name_warnings(new);
            warnings.extend(spec_warnings(new.get("spec"), &Path::of("spec")));
            warnings
        }
    }
}

/// Warnings about the job spec at this path.
pub(super) fn spec_warnings(spec: Option<&Value>, path: &Path<'_>) -> Vec<String> {
    let Some(spec) = spec else { return Vec::new() };
    let mut warnings = Vec::new();
    let of = |field: &str| int(spec, field).unwrap_or(0);
    if text(spec, "completionMode") == "Indexed" && of("completions") > 100_000 && of("parallelism") > 10_000
    {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher \
             than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes \
             fail"
        ));
    }
    warnings.extend(pod::warnings::for_template(spec.get("template"), None, &path.field("template")));
    warnings
}
