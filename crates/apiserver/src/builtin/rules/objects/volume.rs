//! `PersistentVolume`: where storage is, which does not change.

use super::claim::{VOLUME_MODES, add_finalizer, validate_access_modes};
use super::volume_source::{SOURCES, internal, validate_source};
use super::{check_meta_again, check_new_meta_again, choice, default_pointer, is_unset};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::json::{
    default_to, ensure_object, keep, list, object_mut, put, same_field, set, take, text,
};
use crate::builtin::rules::names::{
    complain, dns1123_subdomain, validate_immutable, validate_selector_requirement,
};
use crate::builtin::rules::printed::Printed;
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};

const SPEC: Path<'static> = Path::of("spec");
const PROTECTION: &str = "kubernetes.io/pv-protection";
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update: |new, old, _| keep(new, old, "status"),
    prepare_status,
    validate,
    validate_update,
    validate_status: check_meta_again,
    warnings,
    name: dns1123_subdomain,
};

fn default(object: &mut Value) {
    if let Some(status) = ensure_object(object, "status") {
        default_to(status, "phase", "Pending");
    }
    let Some(spec) = ensure_object(object, "spec") else { return };
    default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
    default_pointer(spec, "volumeMode", "Filesystem");
    if let Some(host) = object_mut(spec, "hostPath")
        && set(host, "type").is_none()
    {
        put(host, "type", "");
    }
}

fn prepare_create(object: &mut Value, env: &Env<'_>) {
    put(object, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now(env)}));
    add_finalizer(object, PROTECTION);
}

fn now(env: &Env<'_>) -> String {
    env.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn prepare_status(new: &mut Value, old: &Value, env: &Env<'_>) {
    keep(new, old, "spec");
    let same_phase = same_field(&new["status"], &old["status"], "phase");
    let field = "lastPhaseTransitionTime";
    let same_time = same_field(&new["status"], &old["status"], field);
    let unset = set(&new["status"], field).is_none();
    let Some(status) = ensure_object(new, "status") else { return };
    if same_phase && unset {
        keep(status, &old["status"], field);
    } else if !same_phase && (unset || same_time) {
        put(status, field, now(env));
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&SPEC.field("accessModes"), ""));
    }
    validate_access_modes(spec, &SPEC, errors);
    validate_capacity(spec, errors);
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    let policies = &["Delete", "Recycle", "Retain"];
    if !policy.is_empty() && !policies.contains(&policy) {
        let path = SPEC.field("persistentVolumeReclaimPolicy");
        errors.push(FieldError::not_supported(&path, &policy.into(), policies));
    }
    validate_affinity(spec, errors);
    validate_source(spec, errors);
    if policy == "Recycle"
        && text(&spec["hostPath"], "path").trim_matches('/').is_empty()
        && set(spec, "hostPath").is_some()
    {
        let path = SPEC.field("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'"));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        complain(errors, &SPEC.field("storageClassName"), class, dns1123_subdomain(class));
    }
    choice(spec, "volumeMode", VOLUME_MODES, &SPEC, errors);
    if let Some(class) = set(spec, "volumeAttributesClassName").and_then(Value::as_str) {
        let path = SPEC.field("volumeAttributesClassName");
        if class.is_empty() {
            errors.push(FieldError::required(&path, "an empty string is disallowed"));
        } else {
            complain(errors, &path, class, dns1123_subdomain(class));
        }
        if set(spec, "csi").is_none() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(&SPEC.field("csi"), detail));
        }
    }
    validate_mount_options(object, errors);
}

fn validate_capacity(spec: &Value, errors: &mut Vec<FieldError>) {
    let path = SPEC.field("capacity");
    let capacity = spec["capacity"].as_object();
    if capacity.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(&path, ""));
    }
    if capacity.is_none_or(|capacity| capacity.len() > 1 || !capacity.contains_key("storage")) {
        let value = set(spec, "capacity").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::not_supported(&path, &value, &["storage"]));
    }
    for (name, amount) in capacity.into_iter().flatten() {
        let Some(quantity) = Quantity::read(amount) else { continue };
        if quantity.is_negative() {
            errors.push(FieldError::invalid(&path.key(name), amount, "must be a valid resource quantity"));
        }
        if !quantity.is_positive() {
            errors.push(FieldError::invalid(&path.key(name), amount, "must be greater than zero"));
        }
    }
}

fn validate_affinity(spec: &Value, errors: &mut Vec<FieldError>) {
    let Some(affinity) = set(spec, "nodeAffinity") else { return };
    let path = SPEC.field("nodeAffinity");
    let path = path.field("required");
    let Some(required) = set(affinity, "required") else {
        errors.push(FieldError::required(&path, "must specify required node constraints"));
        return;
    };
    let path = path.field("nodeSelectorTerms");
    let terms = list(required, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let path = path.field("matchExpressions");
        for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
            let path = path.index(index);
            // Node selectors know two operators more than label selectors.
            if matches!(text(requirement, "operator"), "Gt" | "Lt") {
                if list(requirement, "values").len() != 1 {
                    let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                    errors.push(FieldError::required(&path.field("values"), detail));
                }
            } else {
                validate_selector_requirement(requirement, &path, errors);
            }
        }
    }
}

fn validate_mount_options(object: &Value, errors: &mut Vec<FieldError>) {
    let mountable = SOURCES.iter().filter(|source| {
        !matches!(
            **source,
            "hostPath"
                | "flocker"
                | "fc"
                | "flexVolume"
                | "portworxVolume"
                | "scaleIO"
                | "local"
                | "storageos"
                | "csi"
        )
    });
    let fine = mountable.into_iter().any(|source| set(&object["spec"], source).is_some());
    if !fine && object["metadata"]["annotations"].get(MOUNT_OPTIONS).is_some() {
        let path = Path::of("metadata");
        let path = path.field("annotations");
        let detail = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(&path.field(MOUNT_OPTIONS), detail));
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_new_meta_again(new, false, dns1123_subdomain, errors);
    validate(new, errors);
    let mut after = new["spec"].clone();
    // A secret for expansion may be added to a volume that has none.
    if set(&old["spec"]["csi"], "controllerExpandSecretRef").is_none()
        && let Some(csi) = object_mut(&mut after, "csi")
    {
        take(csi, "controllerExpandSecretRef");
    }
    if SOURCES.iter().any(|source| !same_field(&after, &old["spec"], source)) {
        let diff = Printed::diff(&internal(&old["spec"]), &internal(&after));
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        errors.push(FieldError::forbidden(&SPEC.field("persistentvolumesource"), detail));
    }
    let path = Path::of("volumeMode");
    validate_immutable(&new["spec"]["volumeMode"], &old["spec"]["volumeMode"], &path, errors);
    let field = "volumeAttributesClassName";
    if set(&old["spec"], field).is_some() && set(&new["spec"], field).is_none() {
        let detail = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(&SPEC.field(field), detail));
    }
}

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = &new["spec"];
    let mut out = Vec::new();
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        out.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the \
             recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    for (field, shown, since, gone) in [
        ("cephfs", "cephfs", "v1.28", "v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "v1.11", "v1.16+"),
        ("scaleIO", "scaleIO", "v1.16", "v1.22+"),
        ("storageos", "storageOS", "v1.22", "v1.25+"),
        ("glusterfs", "glusterfs", "v1.25", "v1.26+"),
        ("rbd", "rbd", "v1.28", "v1.31+"),
    ] {
        if !is_unset(spec, field) {
            out.push(format!("spec.{shown}: deprecated in {since}, non-functional in {gone}"));
        }
    }
    out
}
