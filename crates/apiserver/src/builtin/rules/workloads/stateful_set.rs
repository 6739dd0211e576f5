//! `StatefulSet`.

use super::super::json::{bump_generation, default_to, ensure_object, list_mut, put, same_field, set, text};
use super::super::{Env, Rules, pod};
use super::common;
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    name: super::super::names::dns1123_label,
    ..Rules::NONE
};

fn default(set: &mut Value) {
    let Some(spec) = ensure_object(set, "spec") else { return };
    default_to(spec, "podManagementPolicy", "OrderedReady");
    default_update_strategy(spec);
    if let Some(policy) = ensure_object(spec, "persistentVolumeClaimRetentionPolicy") {
        default_to(policy, "whenDeleted", "Retain");
        default_to(policy, "whenScaled", "Retain");
    }
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    pod::defaults::default_template(spec);
    for claim in list_mut(spec, "volumeClaimTemplates") {
        put(claim, "apiVersion", "v1");
        put(claim, "kind", "PersistentVolumeClaim");
        if let Some(spec) = ensure_object(claim, "spec") {
            pod::defaults::default_claim_spec(spec);
        }
        if let Some(status) = ensure_object(claim, "status") {
            default_to(status, "phase", "Pending");
        }
    }
}

fn default_update_strategy(spec: &mut Value) {
    let Some(strategy) = ensure_object(spec, "updateStrategy") else { return };
    if text(strategy, "type").is_empty() {
        put(strategy, "type", "RollingUpdate");
        ensure_object(strategy, "rollingUpdate");
    }
    // A strategy that names its type but no details is left alone.
    if text(strategy, "type") == "RollingUpdate" && set(strategy, "rollingUpdate").is_some() {
        if let Some(rolling) = ensure_object(strategy, "rollingUpdate") {
            default_to(rolling, "partition", 0);
        }
    }
}

fn prepare_create(set: &mut Value, _env: &Env<'_>) {
    common::prepare_create_with(set, json!({"replicas": 0, "availableReplicas": 0}));
    drop_max_unavailable(set, None);
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    common::keep_status(new, old);
    drop_max_unavailable(new, Some(old));
    let changed = !same_field(new, old, "spec");
    bump_generation(new, old, changed);
}

/// `maxUnavailable` belongs to a feature that is off.
fn drop_max_unavailable(new: &mut Value, old: Option<&Value>) {
    let path = "/spec/updateStrategy/rollingUpdate";
    let in_use = old.and_then(|o| o.pointer(path)).is_some_and(|r| set(r, "maxUnavailable").is_some());
    if let (Some(Value::Object(rolling)), false) = (new.pointer_mut(path), in_use) {
        rolling.remove("maxUnavailable");
    }
}
