//! What an update of a pod may change: very little.

use super::super::internal;
use super::{METADATA, SPEC, scheduling, validate_pod};
use crate::builtin::rules::checks::{Errors, in_range};
use crate::builtin::rules::json::{int, is_empty, keep, list, put, same, set, take, text};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::HashSet;

const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const MIRROR: &str = "kubernetes.io/config.mirror";
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks an update of a Pod.
pub(crate) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validate_pod(new, errors);
    validate_annotation_updates(new, old, errors);
    let nothing = Value::Null;
    let (spec, before) = (new.get("spec").unwrap_or(&nothing), old.get("spec").unwrap_or(&nothing));
    for field in ["containers", "initContainers"] {
        if !validate_same_containers(spec, before, field, errors) {
            return;
        }
    }
    if !validate_deadline(spec, before, errors) {
        return;
    }
    validate_tolerations(spec, before, errors);
    validate_gates(spec, before, errors);
    if spec == before {
        return;
    }
    let munged = without_allowed_changes(spec, before, errors);
    if munged != *before {
        let diff = internal::diff("PodSpec", before, &munged);
        let why = format!("pod updates may not change fields other than {UPDATABLE}\n{diff}");
        errors.push(FieldError::forbidden(&SPEC, why));
    }
}

/// Checks an update of the ephemeral containers of a Pod: they can be added, nothing else.
pub(crate) fn validate_ephemeral_containers(new: &Value, old: &Value, errors: &mut Errors) {
    validate_pod(new, errors);
    validate_annotation_updates(new, old, errors);
    if old.pointer("/metadata/annotations").is_some_and(|a| a.get(MIRROR).is_some()) {
        errors.clear();
        let why = "static pods do not support ephemeral containers";
        errors.push(FieldError::forbidden(&Path::of(""), why));
        return;
    }
    let nothing = Value::Null;
    let (spec, before) = (new.get("spec").unwrap_or(&nothing), old.get("spec").unwrap_or(&nothing));
    let path = SPEC.field("ephemeralContainers");
    let containers = list(spec, "ephemeralContainers");
    for container in list(before, "ephemeralContainers") {
        let name = text(container, "name");
        match containers.iter().rfind(|c| text(c, "name") == name) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(&path, why));
            }
            Some(now) if now != container => {
                let diff = internal::diff("EphemeralContainer", container, now);
                let why = format!("existing ephemeral containers {name:?} may not be changed\n{diff}");
                errors.push(FieldError::forbidden(&path, why));
            }
            Some(_) => {}
        }
    }
}

/// Some annotations are there for good, or never.
pub(super) fn validate_annotation_updates(new: &Value, old: &Value, errors: &mut Errors) {
    let path = METADATA.field("annotations");
    let of = |pod: &'_ Value| pod.pointer("/metadata/annotations").and_then(Value::as_object).cloned();
    let (now, before) = (of(new).unwrap_or_default(), of(old).unwrap_or_default());
    for (key, _) in before.iter().filter(|(key, value)| now.get(*key) != Some(*value)) {
        if key.starts_with(APP_ARMOR_PREFIX) {
            let why = "may not remove or update AppArmor annotations";
            errors.push(FieldError::forbidden(&path.key(key), why));
        }
        if key == MIRROR {
            let why = "may not remove or update mirror pod annotation";
            errors.push(FieldError::forbidden(&path.key(key), why));
        }
    }
    for key in now.keys().filter(|key| !before.contains_key(*key)) {
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors.push(FieldError::forbidden(&path.key(key), "may not add AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(FieldError::forbidden(&path.key(key), "may not add mirror pod annotation"));
        }
    }
    let nothing = Value::Null;
    let (meta, spec) = (new.get("metadata").unwrap_or(&nothing), new.get("spec").unwrap_or(&nothing));
    super::validate_annotations(meta, spec, &path, errors);
}

/// Whether the containers can be compared at all: there must be as many as before.
fn validate_same_containers(spec: &Value, before: &Value, field: &str, errors: &mut Errors) -> bool {
    let path = SPEC.field(field);
    let containers = list(spec, field);
    if containers.len() != list(before, field).len() {
        errors.push(FieldError::forbidden(&path, "pod updates may not add or remove containers"));
        return false;
    }
    for (index, container) in containers.iter().enumerate() {
        let at = path.index(index);
        if text(container, "image").is_empty() {
            errors.push(FieldError::required(&at.field("image"), ""));
        }
        super::containers::validate_image_spacing(container, &at, errors);
    }
    true
}

fn validate_deadline(spec: &Value, before: &Value, errors: &mut Errors) -> bool {
    let path = SPEC.field("activeDeadlineSeconds");
    let found = errors.len();
    match (int(spec, "activeDeadlineSeconds"), int(before, "activeDeadlineSeconds")) {
        (Some(now), before) => {
            in_range(errors, &path, now, 0, i64::from(i32::MAX));
            if errors.len() == found && before.is_some_and(|before| before < now) {
                let why = "must be less than or equal to previous value";
                errors.push(FieldError::invalid(&path, &now.into(), why));
            }
            errors.len() == found
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&path, &Value::Null, why));
            true
        }
        (None, None) => true,
    }
}

fn validate_tolerations(spec: &Value, before: &Value, errors: &mut Errors) {
    let path = SPEC.field("tolerations");
    let tolerations = list(spec, "tolerations");
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        take(&mut toleration, "tolerationSeconds");
        toleration
    };
    let now: Vec<Value> = tolerations.iter().map(without_seconds).collect();
    if list(before, "tolerations").iter().any(|old| !now.contains(&without_seconds(old))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path, why));
        return;
    }
    scheduling::validate_tolerations(tolerations, &path, errors);
}

fn validate_gates(spec: &Value, before: &Value, errors: &mut Errors) {
    let path = SPEC.field("schedulingGates");
    let known: HashSet<&str> = list(before, "schedulingGates").iter().map(|g| text(g, "name")).collect();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !known.contains(name) {
            let at = path.index(index);
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&at.field("name"), why));
        }
    }
}

/// The new spec with everything put back that an update may change.
fn without_allowed_changes(spec: &Value, before: &Value, errors: &mut Errors) -> Value {
    let mut munged = spec.clone();
    for field in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = munged.get_mut(field) else { continue };
        for (container, before) in containers.iter_mut().zip(list(before, field)) {
            keep(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut munged, before, field);
    }
    let grace = "terminationGracePeriodSeconds";
    if int(before, grace).is_some_and(|s| s < 0) && int(&munged, grace) == Some(1) {
        keep(&mut munged, before, grace);
    }
    if !list(before, "schedulingGates").is_empty() {
        narrow_node_choice(&mut munged, before, errors);
    }
    munged
}

/// A gated pod is not yet scheduled, so where it may run can still be narrowed.
fn narrow_node_choice(munged: &mut Value, before: &Value, errors: &mut Errors) {
    if !same(munged.get("nodeSelector"), before.get("nodeSelector")) {
        let empty = json!({});
        let now = munged.get("nodeSelector").unwrap_or(&empty);
        let old = before.get("nodeSelector").and_then(Value::as_object);
        if old.into_iter().flatten().any(|(key, value)| now.get(key) != Some(value)) {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&SPEC.field("nodeSelector"), now, why));
        }
        keep(munged, before, "nodeSelector");
    }
    let old = before.pointer("/affinity/nodeAffinity");
    let now = munged.pointer("/affinity/nodeAffinity");
    if now == old {
        return;
    }
    validate_node_affinity(now, old, errors);
    match (set(munged, "affinity").is_some(), old) {
        (false, None) => {}
        (false, Some(old)) => put(munged, "affinity", json!({"nodeAffinity": old})),
        (true, old) => {
            let Some(affinity) = munged.get_mut("affinity") else { return };
            match old {
                Some(old) => put(affinity, "nodeAffinity", old.clone()),
                None => drop(take(affinity, "nodeAffinity")),
            }
            if set(before, "affinity").is_none() && is_empty(munged.get("affinity")) {
                take(munged, "affinity");
            }
        }
    }
}

fn validate_node_affinity(now: Option<&Value>, old: Option<&Value>, errors: &mut Errors) {
    let affinity = SPEC.field("affinity");
    let nodes = affinity.field("nodeAffinity");
    let required = nodes.field("requiredDuringSchedulingIgnoredDuringExecution");
    let path = required.field("nodeSelectorTerms");
    let terms = |affinity: Option<&Value>| {
        affinity
            .and_then(|a| a.pointer("/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"))
            .cloned()
            .unwrap_or(Value::Null)
    };
    let (now, old) = (terms(now), terms(old));
    let empty = Vec::new();
    let old = old.as_array().unwrap_or(&empty);
    let now_terms = now.as_array().unwrap_or(&empty);
    if !old.is_empty() && old.len() != now_terms.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&path, &now, why));
        return;
    }
    for (index, (now, old)) in now_terms.iter().zip(old).enumerate() {
        if !only_adds(now, old) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&path.index(index), now, why));
        }
    }
}

fn only_adds(now: &Value, old: &Value) -> bool {
    let fields = ["matchExpressions", "matchFields"];
    if fields.iter().all(|f| list(old, f).is_empty()) {
        return fields.iter().all(|f| list(now, f).is_empty());
    }
    fields.iter().all(|f| list(now, f).starts_with(list(old, f)))
}
