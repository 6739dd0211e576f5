//! `HorizontalPodAutoscaler`, version 2.

mod validate;

use super::common;
use crate::builtin::rules::json::{default_to, ensure_object, is_empty, keep, object_mut, put, set, take};
use crate::builtin::rules::{Env, Rules, names};
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    validate: validate::validate,
    validate_update: validate::validate_update,
    validate_status: validate::validate_status,
    name: names::dns1123_subdomain,
    ..Rules::NONE
};

fn default(autoscaler: &mut Value) {
    let Some(spec) = ensure_object(autoscaler, "spec") else { return };
    default_to(spec, "minReplicas", 1);
    if is_empty(spec.get("metrics")) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        put(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    let Some(behavior) = object_mut(spec, "behavior") else { return };
    if let Some(up) = ensure_object(behavior, "scaleUp") {
        default_to(up, "stabilizationWindowSeconds", 0);
        default_policies(
            up,
            json!([
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ]),
        );
    }
    if let Some(down) = ensure_object(behavior, "scaleDown") {
        default_policies(down, json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    }
}

fn default_policies(rules: &mut Value, policies: Value) {
    default_to(rules, "selectPolicy", "Max");
    if set(rules, "policies").is_none() {
        put(rules, "policies", policies);
    }
}

/// An autoscaler has no generation.
fn prepare_create(autoscaler: &mut Value, _env: &Env<'_>) {
    put(autoscaler, "status", json!({"desiredReplicas": 0, "currentMetrics": null}));
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "status");
    match old.pointer("/metadata/generation") {
        Some(generation) => {
            let generation = generation.clone();
            if let Some(meta) = ensure_object(new, "metadata") {
                put(meta, "generation", generation);
            }
        }
        None => {
            if let Some(meta) = object_mut(new, "metadata") {
                take(meta, "generation");
            }
        }
    }
}
