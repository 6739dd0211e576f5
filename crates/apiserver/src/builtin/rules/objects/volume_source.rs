//! Where a persistent volume is: one field of many.

use crate::builtin::rules::json::{set, text};
use crate::builtin::rules::names::{complain, dns1123_label, dns1123_subdomain};
use crate::builtin::rules::printed::Printed;
use crate::field::{FieldError, Path};
use serde_json::Value;

const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const SPEC: Path<'static> = Path::of("spec");
/// Fields that say where a volume is, in the order they are checked.
pub(super) const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];
/// The same fields in the order of their Go type, with their Go names.
const GO_SOURCES: &[(&str, &str)] = &[
    ("GCEPersistentDisk", "gcePersistentDisk"),
    ("AWSElasticBlockStore", "awsElasticBlockStore"),
    ("HostPath", "hostPath"),
    ("Glusterfs", "glusterfs"),
    ("NFS", "nfs"),
    ("RBD", "rbd"),
    ("Quobyte", "quobyte"),
    ("ISCSI", "iscsi"),
    ("FlexVolume", "flexVolume"),
    ("Cinder", "cinder"),
    ("CephFS", "cephfs"),
    ("FC", "fc"),
    ("Flocker", "flocker"),
    ("AzureFile", "azureFile"),
    ("VsphereVolume", "vsphereVolume"),
    ("AzureDisk", "azureDisk"),
    ("PhotonPersistentDisk", "photonPersistentDisk"),
    ("PortworxVolume", "portworxVolume"),
    ("ScaleIO", "scaleIO"),
    ("Local", "local"),
    ("StorageOS", "storageos"),
    ("CSI", "csi"),
];

/// Checks that there is one source, and that it is whole.
pub(super) fn validate_source(spec: &Value, errors: &mut Vec<FieldError>) {
    let mut found = false;
    for source in SOURCES.iter().filter(|source| set(spec, source).is_some()) {
        let path = SPEC.field(source);
        if found {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        validate_known_source(source, &spec[*source], &path, errors);
        if *source == "local" && set(&spec["nodeAffinity"], "required").is_none() {
            let detail = "Local volume requires node affinity";
            errors.push(FieldError::required(&SPEC.field("nodeAffinity"), detail));
        }
    }
    if !found {
        errors.push(FieldError::required(&SPEC, "must specify a volume type"));
    }
}

fn validate_known_source(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match kind {
        "hostPath" | "local" => {
            let value = text(source, "path");
            if value.is_empty() {
                errors.push(FieldError::required(&path.field("path"), ""));
                return;
            }
            if value.split('/').any(|step| step == "..") {
                errors.push(FieldError::invalid(&path.field("path"), &value.into(), "must not contain '..'"));
            }
            if kind == "hostPath" {
                super::choice(source, "type", HOST_PATH_TYPES, path, errors);
            }
        }
        "nfs" => {
            for field in ["server", "path"] {
                if text(source, field).is_empty() {
                    errors.push(FieldError::required(&path.field(field), ""));
                }
            }
            let value = text(source, "path");
            if !value.starts_with('/') {
                errors.push(FieldError::invalid(
                    &path.field("path"),
                    &value.into(),
                    "must be an absolute path",
                ));
            }
        }
        "csi" => validate_csi(source, path, errors),
        _ => {}
    }
}

fn validate_csi(source: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match text(source, "driver") {
        "" => errors.push(FieldError::required(&path.field("driver"), "")),
        driver => {
            if driver.len() > 63 {
                errors.push(FieldError::too_long(&path.field("driver"), 63));
            }
            complain(errors, &path.field("driver"), driver, dns1123_subdomain(&driver.to_lowercase()));
        }
    }
    if text(source, "volumeHandle").is_empty() {
        errors.push(FieldError::required(&path.field("volumeHandle"), ""));
    }
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let Some(secret) = set(source, field) else { continue };
        let path = path.field(field);
        let checks = [("name", dns1123_subdomain as fn(&str) -> Vec<String>), ("namespace", dns1123_label)];
        for (field, check) in checks {
            match text(secret, field) {
                "" => errors.push(FieldError::required(&path.field(field), "")),
                value => complain(errors, &path.field(field), value, check(value)),
            }
        }
    }
}

/// Where a volume is, as the real server prints it in a diff. Kinds of volumes that no longer work are
/// printed with their JSON names.
pub(super) fn internal(spec: &Value) -> Printed {
    let fields = GO_SOURCES.iter().map(|(go, json)| {
        let tree = match (set(spec, json), *json) {
            (None, _) => Printed::null(),
            (Some(source), "hostPath") => {
                go_object(source, &[("Path", "path", "\"\""), ("Type", "type", "null")])
            }
            (Some(source), "nfs") => go_object(
                source,
                &[("Server", "server", "\"\""), ("Path", "path", "\"\""), ("ReadOnly", "readOnly", "false")],
            ),
            (Some(source), "local") => {
                go_object(source, &[("Path", "path", "\"\""), ("FSType", "fsType", "null")])
            }
            (Some(source), "csi") => go_object(
                source,
                &[
                    ("Driver", "driver", "\"\""),
                    ("VolumeHandle", "volumeHandle", "\"\""),
                    ("ReadOnly", "readOnly", "false"),
                    ("FSType", "fsType", "\"\""),
                    ("VolumeAttributes", "volumeAttributes", "null"),
                    ("ControllerPublishSecretRef", "controllerPublishSecretRef", "null"),
                    ("NodeStageSecretRef", "nodeStageSecretRef", "null"),
                    ("NodePublishSecretRef", "nodePublishSecretRef", "null"),
                    ("ControllerExpandSecretRef", "controllerExpandSecretRef", "null"),
                    ("NodeExpandSecretRef", "nodeExpandSecretRef", "null"),
                ],
            ),
            (Some(source), _) => Printed::of(source),
        };
        ((*go).to_owned(), tree)
    });
    Printed::Object(fields.collect())
}

fn go_object(source: &Value, fields: &[(&str, &str, &str)]) -> Printed {
    let field = |(go, json, absent): &(&str, &str, &str)| {
        let tree = match set(source, json) {
            None => Printed::Text((*absent).to_owned()),
            Some(secret) if json.ends_with("SecretRef") => {
                go_object(secret, &[("Name", "name", "\"\""), ("Namespace", "namespace", "\"\"")])
            }
            Some(value) => Printed::of(value),
        };
        ((*go).to_owned(), tree)
    };
    Printed::Object(fields.iter().map(field).collect())
}
