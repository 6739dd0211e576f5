//! `Deployment`.

use super::super::json::{
    bump_generation, default_to, ensure_object, keep, object_mut, same, same_field, text,
};
use super::super::{Env, Rules, names, pod};
use super::common;
use serde_json::Value;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: common::prepare_create,
    prepare_update,
    prepare_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

fn default(deployment: &mut Value) {
    let Some(spec) = ensure_object(deployment, "spec") else { return };
    default_to(spec, "replicas", 1);
    if let Some(strategy) = ensure_object(spec, "strategy") {
        default_to(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = ensure_object(strategy, "rollingUpdate")
        {
            default_count(rolling, "maxUnavailable", "25%".into());
            default_count(rolling, "maxSurge", "25%".into());
        }
    }
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    pod::defaults::default_template(spec);
}

/// Sets a number-or-percentage unless it is set; unlike other texts, an empty one counts as set.
pub(super) fn default_count(holder: &mut Value, field: &str, value: Value) {
    if let Some(map) = holder.as_object_mut() {
        let slot = map.entry(field).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value;
        }
    }
}

/// Annotations count as well: a rollout controller of old kept its requests there.
fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    common::keep_status(new, old);
    let annotations = "/metadata/annotations";
    let same_annotations = same(new.pointer(annotations), old.pointer(annotations));
    let changed = !same_field(new, old, "spec") || !same_annotations;
    bump_generation(new, old, changed);
}

fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
    if let (Some(meta), Some(before)) = (object_mut(new, "metadata"), old.get("metadata")) {
        keep(meta, before, "labels");
    }
}
