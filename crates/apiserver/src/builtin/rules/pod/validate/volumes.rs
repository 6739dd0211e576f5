//! Volumes of a pod spec.

use super::env;
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::checks::{
    Errors, file_mode, local_unreserved_path, no_backsteps, one_of, required, required_form,
};
use crate::builtin::rules::json::{int, list, set, text};
use crate::builtin::rules::names;
use crate::builtin::rules::objects::claim;
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The volumes that a container can mount: those without errors, by name.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// Every kind of volume in the order they are looked at, with what it cannot be without.
const SOURCES: [(&str, &[&str]); 30] = [
    ("emptyDir", &[]),
    ("hostPath", &[]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &[]),
    ("quobyte", &["registry", "volume"]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &[]),
    ("projected", &[]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &["driver"]),
    ("ephemeral", &[]),
    ("image", &["reference"]),
];

/// Checks the volumes; `pod_name` is none inside a template.
pub(super) fn validate<'a>(
    spec: &'a Value,
    pod_name: Option<&str>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Volumes<'a> {
    let list_path = path.field("volumes");
    let mut volumes = Volumes::new();
    let created: HashSet<String> = match pod_name {
        Some(pod) => list(spec, "volumes")
            .iter()
            .filter(|v| set(v, "ephemeral").is_some())
            .map(|v| format!("{pod}-{}", text(v, "name")))
            .collect(),
        None => HashSet::new(),
    };
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = list_path.index(index);
        let name = text(volume, "name");
        let before = errors.len();
        validate_source(volume, name, pod_name, &path, errors);
        required_form(errors, &path.field("name"), name, names::dns1123_label);
        if volumes.contains_key(name) {
            errors.push(FieldError::duplicate(&path.field("name"), &name.into()));
        }
        if errors.len() == before {
            volumes.insert(name, volume);
        }
        if let Some(claim) = set(volume, "persistentVolumeClaim")
            && created.contains(text(claim, "claimName"))
        {
            errors.push(FieldError::invalid(
                &path.field("persistentVolumeClaim").field("claimName"),
                &text(claim, "claimName").into(),
                "must not reference a PVC that gets created for an ephemeral volume",
            ));
        }
    }
    volumes
}

fn validate_source(volume: &Value, name: &str, pod_name: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    let mut found = false;
    for (kind, needs) in SOURCES {
        let Some(source) = set(volume, kind) else { continue };
        let at = path.field(kind);
        if found {
            // Two kinds have other names in this sentence, one of them misspelt since ever.
            let shown = match kind {
                "downwardAPI" => "downwarAPI",
                "cephfs" => "cephFS",
                _ => kind,
            };
            let why = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&path.field(shown), why));
            continue;
        }
        found = true;
        for need in needs {
            required(errors, &at, source, need);
        }
        validate_details(kind, source, &at, errors);
        if let (Some(pod), "ephemeral", false) = (pod_name, kind, name.is_empty()) {
            let claim = format!("{pod}-{name}");
            for why in names::dns1123_subdomain(&claim) {
                let why = format!("PVC name {claim:?}: {why}");
                errors.push(FieldError::invalid(&path.field("name"), &name.into(), why));
            }
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn validate_details(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    match kind {
        "emptyDir" => {
            let negative = source.get("sizeLimit").and_then(Quantity::read).is_some_and(|q| q.is_negative());
            if negative {
                let why = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.field("sizeLimit"), why));
            }
        }
        "hostPath" => validate_host_path(source, path, errors),
        "secret" | "configMap" => {
            file_mode(errors, path, source, "defaultMode");
            validate_items(source, path, errors);
        }
        "nfs" => {
            let target = text(source, "path");
            if !target.starts_with('/') {
                let why = "must be an absolute path";
                errors.push(FieldError::invalid(&path.field("path"), &target.into(), why));
            }
        }
        "rbd" | "cephfs" if list(source, "monitors").is_empty() => {
            errors.push(FieldError::required(&path.field("monitors"), ""));
        }
        "downwardAPI" => {
            file_mode(errors, path, source, "defaultMode");
            for file in list(source, "items") {
                validate_downward_file(file, path, errors);
            }
        }
        "projected" => {
            file_mode(errors, path, source, "defaultMode");
            validate_projections(source, path, errors);
        }
        "ephemeral" => match set(source, "volumeClaimTemplate") {
            None => errors.push(FieldError::required(&path.field("volumeClaimTemplate"), "")),
            Some(template) => {
                let path = path.field("volumeClaimTemplate");
                claim::validate_template(template, &path, errors);
            }
        },
        "image" => one_of(errors, path, source, "pullPolicy", &["Always", "IfNotPresent", "Never"]),
        _ => {}
    }
}

fn validate_host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    required(errors, path, source, "path");
    if text(source, "path").is_empty() {
        return;
    }
    no_backsteps(errors, &path.field("path"), text(source, "path"));
    one_of(errors, path, source, "type", &TYPES);
}

fn validate_items(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let items = path.field("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        let path = items.index(index);
        required(errors, &path, item, "key");
        required(errors, &path, item, "path");
        local_unreserved_path(errors, &path.field("path"), text(item, "path"));
        file_mode(errors, &path, item, "mode");
    }
}

/// The path of a file's errors is that of the list, without the file's index.
fn validate_downward_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(errors, path, file, "path");
    local_unreserved_path(errors, &path.field("path"), text(file, "path"));
    match (set(file, "fieldRef"), set(file, "resourceFieldRef")) {
        (Some(field), resource) => {
            env::validate_field_ref(field, &env::VOLUME_FIELDS, &path.field("fieldRef"), errors);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, &"resource".into(), why));
            }
        }
        (None, Some(resource)) => {
            env::validate_resource_ref(resource, true, &path.field("resourceFieldRef"), errors);
        }
        (None, None) => {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    file_mode(errors, path, file, "mode");
}

fn validate_projections(projected: &Value, path: &Path<'_>, errors: &mut Errors) {
    let sources = path.field("sources");
    let mut taken = HashSet::new();
    let mut take = |target: &str, shown: &str, errors: &mut Errors| {
        if !target.is_empty() && !taken.insert(target.to_owned()) {
            errors.push(FieldError::invalid(path, &shown.into(), "conflicting duplicate paths"));
        }
    };
    for (index, source) in list(projected, "sources").iter().enumerate() {
        let at = sources.index(index);
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle"];
        let found = kinds.iter().filter(|kind| set(source, kind).is_some()).count();
        for kind in ["secret", "configMap"] {
            let Some(part) = set(source, kind) else { continue };
            let at = at.field(kind);
            required(errors, &at, part, "name");
            validate_items(part, &at, errors);
            for item in list(part, "items") {
                take(text(item, "path"), text(part, "name"), errors);
            }
        }
        if let Some(part) = set(source, "downwardAPI") {
            let at = at.field("downwardAPI");
            for file in list(part, "items") {
                validate_downward_file(file, &at, errors);
                take(text(file, "path"), text(file, "path"), errors);
            }
        }
        if let Some(token) = set(source, "serviceAccountToken") {
            validate_token(token, &at.field("serviceAccountToken"), path, errors);
        }
        if found > 1 {
            let why = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(&at, why));
        }
    }
}

fn validate_token(token: &Value, path: &Path<'_>, projected: &Path<'_>, errors: &mut Errors) {
    let seconds = int(token, "expirationSeconds").unwrap_or(0);
    let at = path.field("expirationSeconds");
    if seconds < 600 {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&at, &seconds.into(), why));
    }
    if seconds > 1 << 32 {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&at, &seconds.into(), why));
    }
    required(errors, projected, token, "path");
    local_unreserved_path(errors, &projected.field("path"), text(token, "path"));
}
