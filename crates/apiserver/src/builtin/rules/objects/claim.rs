//! `PersistentVolumeClaim`: a wish for storage that only grows once it is granted.

use super::{check_meta_again, check_new_meta_again, choice, default_pointer, is_unset};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::json::{
    default_to, ensure_object, flag, keep, list, object_mut, put, same_field, set, take, text,
};
use crate::builtin::rules::names::{
    complain, dns1123_label, dns1123_subdomain, validate_annotations, validate_immutable,
    validate_label_selector, validate_labels,
};
use crate::builtin::rules::printed::Printed;
use crate::builtin::rules::{Env, Rules};
use crate::field::{FieldError, Path};
use crate::status::{ApiError, Subject};
use serde_json::{Value, json};

const SPEC: Path<'static> = Path::of("spec");
const STATUS: Path<'static> = Path::of("status");
pub(super) const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const PROTECTION: &str = "kubernetes.io/pvc-protection";

pub(super) static RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    prepare_status: |new, old, _| keep(new, old, "spec"),
    validate,
    validate_update,
    validate_status,
    warnings,
    name: dns1123_subdomain,
};

fn default(object: &mut Value) {
    if let Some(status) = ensure_object(object, "status") {
        default_to(status, "phase", "Pending");
    }
    if let Some(spec) = ensure_object(object, "spec") {
        default_pointer(spec, "volumeMode", "Filesystem");
    }
}

fn prepare_create(object: &mut Value, _env: &Env<'_>) {
    put(object, "status", json!({"phase": "Pending"}));
    add_finalizer(object, PROTECTION);
    settle_sources(object, None);
}

/// Adds the finalizer that keeps an object while it is in use.
pub(crate) fn add_finalizer(object: &mut Value, name: &str) {
    let Some(meta) = ensure_object(object, "metadata") else { return };
    let mut finalizers = list(meta, "finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == name) {
        finalizers.push(name.into());
        put(meta, "finalizers", finalizers);
    }
}

fn prepare_update(new: &mut Value, old: &Value, _env: &Env<'_>) {
    keep(new, old, "status");
    settle_sources(new, Some(old));
}

/// `dataSource` and `dataSourceRef` say the same; a source that nobody can copy is dropped.
fn settle_sources(object: &mut Value, old: Option<&Value>) {
    let Some(spec) = object_mut(object, "spec") else { return };
    let had = |field: &str| old.is_some_and(|old| set(&old["spec"], field).is_some());
    // Sources in other namespaces are off by default.
    if !is_unset(&spec["dataSourceRef"], "namespace") && !had("dataSourceRef") {
        take(spec, "dataSourceRef");
    }
    if !had("dataSource") && !had("dataSourceRef") && set(spec, "dataSourceRef").is_none() {
        let source = &spec["dataSource"];
        let known = matches!(
            (text(source, "kind"), text(source, "apiGroup")),
            ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
        );
        if !known {
            take(spec, "dataSource");
        }
    }
    match (set(spec, "dataSource").cloned(), set(spec, "dataSourceRef").cloned()) {
        (Some(source), None) => put(spec, "dataSourceRef", source),
        (None, Some(mut reference)) if is_unset(&reference, "namespace") => {
            take(&mut reference, "namespace");
            put(spec, "dataSource", reference);
        }
        _ => {}
    }
}

/// Checks the access modes that are there.
pub(super) fn validate_access_modes(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("accessModes");
    let modes = list(spec, "accessModes");
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(&mode.as_str().unwrap_or(""))) {
        errors.push(FieldError::not_supported(&path, mode, ACCESS_MODES));
    }
    let known = |mode: &&Value| ACCESS_MODES.contains(&mode.as_str().unwrap_or(""));
    let single = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    if single && modes.iter().filter(known).any(|mode| mode != "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    validate_spec(&object["spec"], &SPEC, true, errors);
}

/// Checks the claim template of an ephemeral volume: of its metadata only labels and annotations count.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let meta = &template["metadata"];
    let at = path.field("metadata");
    validate_annotations(&meta["annotations"], &at.field("annotations"), errors);
    validate_labels(&meta["labels"], &at.field("labels"), errors);
    for (field, value) in meta.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "annotations" | "labels") && !value.is_null() {
            errors.push(FieldError::forbidden(&at.field(field), "cannot be set"));
        }
    }
    validate_spec(&template["spec"], &path.field("spec"), true, errors);
}

/// Checks a spec; the groups of sources are not checked again in a claim that has sources.
pub(crate) fn validate_spec(spec: &Value, path: &Path<'_>, check_groups: bool, errors: &mut Vec<FieldError>) {
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&path.field("accessModes"), "at least 1 access mode is required"));
    }
    validate_label_selector(&spec["selector"], &path.field("selector"), errors);
    validate_access_modes(spec, path, errors);
    let resources = path.field("resources");
    let storage = resources.key("storage");
    match set(&spec["resources"]["requests"], "storage") {
        None => errors.push(FieldError::required(&storage, "")),
        Some(size) => {
            if Quantity::read(size).is_some_and(|size| !size.is_positive()) {
                errors.push(FieldError::invalid(&storage, size, "must be greater than zero"));
            }
        }
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        complain(errors, &path.field("storageClassName"), class, dns1123_subdomain(class));
    }
    choice(spec, "volumeMode", VOLUME_MODES, path, errors);
    validate_sources(spec, path, check_groups, errors);
    let class = text(spec, "volumeAttributesClassName");
    if !class.is_empty() {
        complain(errors, &path.field("volumeAttributesClassName"), class, dns1123_subdomain(class));
    }
}

fn validate_sources(spec: &Value, path: &Path<'_>, check_groups: bool, errors: &mut Vec<FieldError>) {
    for field in ["dataSource", "dataSourceRef"] {
        let Some(source) = set(spec, field) else { continue };
        let path = path.field(field);
        for field in ["name", "kind"] {
            if text(source, field).is_empty() {
                errors.push(FieldError::required(&path.field(field), ""));
            }
        }
        let (kind, group) = (text(source, "kind"), text(source, "apiGroup"));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&path, &kind.into(), detail));
        }
        if check_groups && !group.is_empty() {
            complain(errors, &path.field("apiGroup"), group, dns1123_subdomain(group));
        }
        let namespace = text(source, "namespace");
        if !namespace.is_empty() {
            complain(errors, &path.field("namespace"), namespace, dns1123_label(namespace));
        }
    }
    if let (Some(source), Some(reference)) = (set(spec, "dataSource"), set(spec, "dataSourceRef")) {
        let same =
            ["apiGroup", "kind", "name"].iter().all(|field| text(source, field) == text(reference, field));
        // The offending value that the real server prints here is a path, which has no fields to print.
        if !is_unset(reference, "namespace") {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(FieldError::invalid(path, &json!({}), detail));
        } else if !same {
            errors.push(FieldError::invalid(path, &json!({}), "must match dataSourceRef"));
        }
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    check_new_meta_again(new, true, dns1123_subdomain, errors);
    let had_source = ["dataSource", "dataSourceRef"].iter().any(|field| set(&old["spec"], field).is_some());
    validate_spec(&new["spec"], &SPEC, !had_source, errors);
    let annotation = |object: &Value| text(&object["metadata"]["annotations"], CLASS_ANNOTATION).to_owned();
    if annotation(new) != annotation(old) {
        let path = Path::of("metadata");
        let path = path.field("annotations");
        let path = path.key(CLASS_ANNOTATION);
        errors.push(FieldError::invalid(&path, &annotation(new).into(), "field is immutable"));
    }
    let (before, after) = comparable(new, old);
    if before != after {
        let diff = Printed::diff(&internal(&before), &internal(&after));
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
             bound claims\n{diff}"
        );
        errors.push(FieldError::forbidden(&SPEC, detail));
    }
    validate_size(new, old, errors);
    let path = Path::of("volumeMode");
    validate_immutable(&new["spec"]["volumeMode"], &old["spec"]["volumeMode"], &path, errors);
    validate_attributes(new, old, errors);
}

/// The two specs without what may change.
fn comparable(new: &Value, old: &Value) -> (Value, Value) {
    let (mut before, mut after) = (old["spec"].clone(), new["spec"].clone());
    if text(&before, "volumeName").is_empty() {
        keep(&mut before, &new["spec"], "volumeName");
    }
    if set(&before, "storageClassName").is_none() {
        take(&mut after, "storageClassName");
    }
    if text(&new["status"], "phase") == "Bound" {
        let size = before["resources"]["requests"]["storage"].clone();
        if let Some(requests) =
            object_mut(&mut after, "resources").and_then(|resources| object_mut(resources, "requests"))
        {
            put(requests, "storage", size);
        }
        keep(&mut after, &before.clone(), "volumeAttributesClassName");
    }
    (before, after)
}

fn validate_size(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let size = |value: &Value| Quantity::read(value).unwrap_or(Quantity::ZERO);
    let requested = |claim: &Value| size(&claim["spec"]["resources"]["requests"]["storage"]);
    let granted = size(&old["status"]["capacity"]["storage"]);
    if requested(new) < requested(old) && requested(new) <= granted {
        let path = SPEC.field("resources");
        let path = path.field("requests");
        let detail = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(&path.field("storage"), detail));
    }
}

/// Refuses to grow a claim whose class cannot. `class` is the storage class of the claim, if there is one.
pub(crate) fn admit_resize(new: &Value, old: &Value, class: Option<&Value>) -> Result<(), ApiError> {
    let size = |claim: &Value| Quantity::read(&claim["spec"]["resources"]["requests"]["storage"]);
    let grows = matches!((size(old), size(new)), (Some(before), Some(after)) if after > before);
    if !grows || text(&old["status"], "phase") != "Bound" {
        return Ok(());
    }
    if class.is_some_and(|class| flag(class, "allowVolumeExpansion")) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc \
               must support resize";
    let name = text(&new["metadata"], "name");
    Err(ApiError::forbidden(&Subject { group: "", kind: "persistentvolumeclaims" }, name, why))
}

fn validate_attributes(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let field = "volumeAttributesClassName";
    if same_field(&new["spec"], &old["spec"], field)
        || set(&old["status"], "currentVolumeAttributesClassName").is_none()
    {
        return;
    }
    let to = match set(&new["spec"], field) {
        None => "nil",
        Some(name) if name == "" => "empty string",
        Some(_) => return,
    };
    let detail =
        format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.push(FieldError::forbidden(&SPEC.field(field), detail));
}

/// A spec as the real server prints it in a diff.
fn internal(spec: &Value) -> Printed {
    let plain = |field: &str| set(spec, field).map_or_else(Printed::null, Printed::of);
    let amounts = |field: &str| set(&spec["resources"], field).map_or_else(Printed::null, Printed::of);
    let reference = |field: &str, namespaced: bool| match set(spec, field) {
        None => Printed::null(),
        Some(source) => {
            let optional = |field: &str| set(source, field).map_or_else(Printed::null, Printed::of);
            let mut fields = vec![
                ("APIGroup".to_owned(), optional("apiGroup")),
                ("Kind".to_owned(), Printed::of(&Value::from(text(source, "kind")))),
                ("Name".to_owned(), Printed::of(&Value::from(text(source, "name")))),
            ];
            if namespaced {
                fields.push(("Namespace".to_owned(), optional("namespace")));
            }
            Printed::Object(fields)
        }
    };
    let field = |name: &str, tree: Printed| (name.to_owned(), tree);
    Printed::Object(vec![
        field("AccessModes", plain("accessModes")),
        field("Selector", plain("selector")),
        field(
            "Resources",
            Printed::Object(vec![field("Limits", amounts("limits")), field("Requests", amounts("requests"))]),
        ),
        field("VolumeName", Printed::of(&Value::from(text(spec, "volumeName")))),
        field("StorageClassName", plain("storageClassName")),
        field("VolumeMode", plain("volumeMode")),
        field("DataSource", reference("dataSource", false)),
        field("DataSourceRef", reference("dataSourceRef", true)),
        field("VolumeAttributesClassName", plain("volumeAttributesClassName")),
    ])
}

fn validate_status(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    check_meta_again(new, old, errors);
    if list(&new["spec"], "accessModes").is_empty() {
        let path = Path::of("Spec");
        errors.push(FieldError::required(&path.field("accessModes"), ""));
    }
    let path = STATUS.field("capacity");
    for (name, amount) in new["status"]["capacity"].as_object().into_iter().flatten() {
        if Quantity::read(amount).is_some_and(|amount| amount.is_negative()) {
            errors.push(FieldError::invalid(&path.key(name), amount, "must be a valid resource quantity"));
        }
    }
}

fn warnings(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if new["metadata"]["annotations"].get(CLASS_ANNOTATION).is_some() {
        out.push(format!(
            "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    for field in ["requests", "limits"] {
        let amount = &new["spec"]["resources"][field]["storage"];
        if Quantity::read(amount).is_some_and(|quantity| !quantity.is_whole()) {
            out.push(format!(
                "spec.resources.{field}[storage]: fractional byte value {amount} is invalid, must be an integer"
            ));
        }
    }
    out
}
