//! `StatefulSet`.

use super::super::checks::{Errors, count_or_percent, form, nonnegative, not_over_100_percent};
use super::super::json::{
    bump_generation, default_to, ensure_object, int, keep, list, list_mut, put, same_field, set, take, text,
};
use super::super::objects::claim;
use super::super::{Env, Rules, names, pod};
use super::common::{self, SPEC, SelectorWording, invalid_text};
use super::deployment::{amount, strategy_text};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: common::prepare_status,
    validate,
    validate_update,
    validate_status,
    warnings,
    name: names::dns1123_label,
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
    if text(strategy, "type") == "RollingUpdate"
        && set(strategy, "rollingUpdate").is_some()
        && let Some(rolling) = ensure_object(strategy, "rollingUpdate")
    {
        default_to(rolling, "partition", 0);
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

const WORDING: SelectorWording = SelectorWording { empty_for: "statefulset", broken: "", validate_template };

/// What an update may change.
const UPDATABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn validate(set: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let spec = set.get("spec").unwrap_or(&nothing);
    validate_policies(spec, errors);
    let claims = SPEC.field("volumeClaimTemplates");
    for (index, template) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let at = claims.index(index);
        claim::validate_spec(&template["spec"], &at.field("spec"), true, errors);
    }
    validate_numbers(spec, errors);
    if !text(spec, "serviceName").is_empty() {
        form(errors, &SPEC.field("serviceName"), text(spec, "serviceName"), names::dns1123_label);
    }
    validate_pods(spec, errors);
}

fn validate_policies(spec: &Value, errors: &mut Errors) {
    let management = text(spec, "podManagementPolicy");
    if !matches!(management, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&SPEC.field("podManagementPolicy"), &management.into(), why));
    }
    let nothing = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&nothing);
    let path = SPEC.field("updateStrategy");
    let rolling = set(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let shown = rolling_text(rolling);
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(invalid_text(&path.field("rollingUpdate"), shown, why));
            }
        }
        "RollingUpdate" => {
            if let Some(rolling) = rolling {
                validate_rolling(rolling, &path.field("rollingUpdate"), errors);
            }
        }
        _ => {
            let shown = strategy_text(strategy, rolling);
            errors.push(invalid_text(&path, shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
    let policy = spec.get("persistentVolumeClaimRetentionPolicy").unwrap_or(&nothing);
    let path = SPEC.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let value = text(policy, field);
        let supported = ["Retain", "Delete"];
        if !policy.is_null() && !supported.contains(&value) {
            errors.push(FieldError::not_supported(&path.field(field), &value.into(), &supported));
        }
    }
}

fn rolling_text(rolling: &Value) -> String {
    let unavailable = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
    format!("{{\"Partition\":{},\"MaxUnavailable\":{unavailable}}}", int(rolling, "partition").unwrap_or(0))
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    nonnegative(errors, path, rolling, "partition");
    if let Some(unavailable) = set(rolling, "maxUnavailable") {
        let path = path.field("maxUnavailable");
        count_or_percent(errors, &path, unavailable);
        if amount(unavailable) == 0 {
            errors.push(FieldError::invalid(&path, unavailable, "cannot be 0"));
        }
        not_over_100_percent(errors, &path, unavailable);
    }
}

fn validate_numbers(spec: &Value, errors: &mut Errors) {
    nonnegative(errors, &SPEC, spec, "replicas");
    nonnegative(errors, &SPEC, spec, "minReadySeconds");
    if let Some(ordinals) = set(spec, "ordinals") {
        let path = SPEC.field("ordinals");
        nonnegative(errors, &path, ordinals, "start");
    }
}

fn validate_pods(spec: &Value, errors: &mut Errors) {
    common::validate_selected_template(spec, &WORDING, errors);
    let nothing = Value::Null;
    let template = spec.get("template").unwrap_or(&nothing);
    common::validate_always_running(template, "StatefulSet", &SPEC.field("template"), errors);
}

fn validate_template(spec: &Value, template: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_filled_template(spec, template, path, errors);
    // The real server looks at the metadata twice, and reports what it finds twice.
    pod::validate::validate_template_metadata(template, path, errors);
}

/// Checks the template as its pods will see it: with the claimed volumes, and with names from the set.
fn validate_filled_template(spec: &Value, template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let claims = list(spec, "volumeClaimTemplates");
    let pods = template.get("spec").unwrap_or(&Value::Null);
    if claims.is_empty() && text(pods, "hostname").is_empty() && text(pods, "subdomain").is_empty() {
        return pod::validate::validate_template(template, path, errors);
    }
    let mut template = template.clone();
    if let Some(pods) = ensure_object(&mut template, "spec") {
        take(pods, "hostname");
        take(pods, "subdomain");
        let name = |claim: &Value| claim.get("metadata").map_or("", |m| text(m, "name")).to_owned();
        let claimed: Vec<String> = claims.iter().map(name).collect();
        let volumes = claimed
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
            .chain(
                list(pods, "volumes")
                    .iter()
                    .filter(|v| !claimed.iter().any(|c| c == text(v, "name")))
                    .cloned(),
            );
        let volumes: Vec<Value> = volumes.collect();
        put(pods, "volumes", volumes);
    }
    pod::validate::validate_template(&template, path, errors);
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let (spec, before) = (new.get("spec").unwrap_or(&nothing), old.get("spec").unwrap_or(&nothing));
    // What cannot be changed is not checked again: it may be from before a check was introduced.
    validate_policies(spec, errors);
    validate_numbers(spec, errors);
    validate_pods(spec, errors);
    let mut munged = spec.clone();
    for field in UPDATABLE {
        keep(&mut munged, before, field);
    }
    if munged != *before {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(&SPEC, why));
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let status = new.get("status").unwrap_or(&nothing);
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    common::validate_counts(status, &counts, errors);
    let counts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    common::validate_replica_counts(status, &counts, "status.readyReplicas", errors);
    common::validate_collisions(new, old, errors);
}

fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = pod::warnings::for_workload(new, old, |_| Vec::new());
    let limit = new.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64);
    if limit.is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
             recommended"
                .to_owned(),
        );
    }
    warnings
}
