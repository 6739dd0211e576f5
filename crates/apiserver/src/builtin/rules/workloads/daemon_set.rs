//! `DaemonSet`.

use super::super::json::{bump_generation, default_to, ensure_object, put, same_field, text};
use super::super::{Env, Rules, names, pod};
use super::common;
use super::deployment::default_count;
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

/// How often the template changed. A field of the type long ago, kept as an annotation since.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn default(set: &mut Value) {
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
