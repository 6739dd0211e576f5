//! What the server itself writes into a pod, and what a write may not touch.

use super::super::Env;
use super::super::json::{
    bump_generation, ensure_object, inside, int, is_empty, keep, list, list_mut, object_mut, put, set,
    set_generation, take, text,
};
use super::conditions::set_condition;
use super::resources;
use serde_json::{Map, Value, json};

/// Prepares a new Pod: a fresh status, and selectors completed from the pod's own labels.
pub(crate) fn prepare_create(pod: &mut Value, env: &Env<'_>) {
    set_generation(pod, 1);
    let class = pod.get("spec").map_or("BestEffort", resources::qos_class);
    put(pod, "status", json!({"phase": "Pending", "qosClass": class}));
    drop_disabled(pod.get_mut("spec"), None);
    if pod.get("spec").is_some_and(|s| !list(s, "schedulingGates").is_empty()) {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set_condition(pod, condition, env.now);
    }
    merge_label_keys(pod);
}

/// Prepares an update of a Pod: status stays, and a changed spec counts as a new generation.
pub(crate) fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "status");
    drop_disabled(new.get_mut("spec"), old.get("spec"));
    let changed = new.get("spec") != old.get("spec");
    bump_generation(new, old, changed);
}

/// Prepares a write to a Pod's status: spec and owners stay, deletion cannot be faked.
pub(crate) fn prepare_status(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "spec");
    if let (Some(meta), Some(before)) = (ensure_object(new, "metadata"), old.get("metadata")) {
        keep(meta, before, "ownerReferences");
        keep(meta, before, "deletionTimestamp");
    }
    let nothing = Value::Null;
    let before = old.get("status").unwrap_or(&nothing);
    let Some(status) = ensure_object(new, "status") else { return };
    if text(status, "qosClass").is_empty() {
        keep(status, before, "qosClass");
    }
    if int(status, "observedGeneration").unwrap_or(0) == 0 {
        keep(status, before, "observedGeneration");
    }
    keep_observed_generations(status, before);
}

/// Conditions written by clients that do not know `observedGeneration` keep the one they had.
fn keep_observed_generations(status: &mut Value, before: &Value) {
    let mut earlier: std::collections::HashMap<&str, std::collections::VecDeque<i64>> =
        std::collections::HashMap::new();
    for condition in list(before, "conditions") {
        let generation = int(condition, "observedGeneration").unwrap_or(0);
        earlier.entry(text(condition, "type")).or_default().push_back(generation);
    }
    for condition in list_mut(status, "conditions") {
        let kept = earlier.get_mut(text(condition, "type")).and_then(std::collections::VecDeque::pop_front);
        if int(condition, "observedGeneration").unwrap_or(0) == 0
            && let Some(generation) = kept.filter(|g| *g != 0)
        {
            put(condition, "observedGeneration", generation);
        }
    }
}

/// Ignores fields of features that are off by default, unless the old object has them already.
pub(crate) fn drop_disabled(spec: Option<&mut Value>, old: Option<&Value>) {
    let Some(spec) = spec else { return };
    let old_uses = |used: fn(&Value) -> bool| old.is_some_and(used);
    if !old_uses(uses_scheduling_group) {
        take(spec, "schedulingGroup");
    }
    if !old_uses(uses_stop_signals) {
        for containers in super::defaults::CONTAINERS {
            for container in list_mut(spec, containers) {
                if let Some(lifecycle) = object_mut(container, "lifecycle") {
                    take(lifecycle, "stopSignal");
                }
            }
        }
    }
    if !old_uses(uses_certificate_volumes) {
        for volume in list_mut(spec, "volumes") {
            if let Some(projected) = object_mut(volume, "projected") {
                for source in list_mut(projected, "sources") {
                    take(source, "podCertificate");
                }
            }
        }
    }
}

fn uses_scheduling_group(spec: &Value) -> bool {
    set(spec, "schedulingGroup").is_some()
}

fn uses_stop_signals(spec: &Value) -> bool {
    super::defaults::CONTAINERS
        .iter()
        .any(|containers| list(spec, containers).iter().any(|c| inside(c, "/lifecycle/stopSignal").is_some()))
}

fn uses_certificate_volumes(spec: &Value) -> bool {
    list(spec, "volumes").iter().any(|volume| {
        volume
            .get("projected")
            .is_some_and(|p| list(p, "sources").iter().any(|s| set(s, "podCertificate").is_some()))
    })
}

/// `matchLabelKeys` and `mismatchLabelKeys` become expressions over the pod's own labels.
fn merge_label_keys(pod: &mut Value) {
    let labels = inside(pod, "/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(spec) = object_mut(pod, "spec") else { return };
    for constraint in list_mut(spec, "topologySpreadConstraints") {
        merge_keys(constraint, "matchLabelKeys", "In", &labels);
    }
    let Some(affinity) = object_mut(spec, "affinity") else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(side) = object_mut(affinity, side) else { continue };
        for weighted in list_mut(side, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = object_mut(weighted, "podAffinityTerm") {
                merge_term(term, &labels);
            }
        }
        for term in list_mut(side, "requiredDuringSchedulingIgnoredDuringExecution") {
            merge_term(term, &labels);
        }
    }
}

fn merge_term(term: &mut Value, labels: &Map<String, Value>) {
    merge_keys(term, "matchLabelKeys", "In", labels);
    merge_keys(term, "mismatchLabelKeys", "NotIn", labels);
}

fn merge_keys(term: &mut Value, field: &str, operator: &str, labels: &Map<String, Value>) {
    let expressions: Vec<Value> = list(term, field)
        .iter()
        .filter_map(|key| {
            let value = labels.get(key.as_str()?)?;
            Some(json!({"key": key, "operator": operator, "values": [value]}))
        })
        .collect();
    if expressions.is_empty() {
        return;
    }
    let Some(selector) = object_mut(term, "labelSelector") else { return };
    if is_empty(selector.get("matchExpressions")) {
        put(selector, "matchExpressions", expressions);
    } else if let Some(Value::Array(present)) = selector.get_mut("matchExpressions") {
        present.extend(expressions);
    }
}

/// Restores the metadata that a write to a part of a pod may not touch.
pub(super) fn reset_metadata(new: &mut Value, old: &Value) {
    let (Some(meta), Some(before)) = (ensure_object(new, "metadata"), old.get("metadata")) else { return };
    for field in [
        "deletionTimestamp",
        "generation",
        "selfLink",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ] {
        keep(meta, before, field);
    }
}
