//! Volumes, claims and classes.

use super::{AGE, Builtin, NAME, Row, text, wide};
use serde_json::Value;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn access_modes(row: &Row<'_>, path: &str) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = row.list(path);
    let has = |mode: &str| modes.iter().any(|found| found == mode);
    let modes: Vec<&str> = short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    modes.join(",")
}

fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_deleted() { "Terminating" } else { row.text("status.phase") }
}

fn or_unset(row: &Row<'_>, path: &str) -> Value {
    row.at(path).and_then(Value::as_str).unwrap_or("<unset>").into()
}

fn class<'a>(row: &Row<'a>) -> &'a str {
    row.annotation(BETA_CLASS).unwrap_or_else(|| row.text("spec.storageClassName"))
}

pub(super) static VOLUME: Builtin = Builtin::new(
    &[
        NAME,
        text("Capacity"),
        text("Access Modes"),
        text("Reclaim Policy"),
        text("Status"),
        text("Claim"),
        text("StorageClass"),
        text("VolumeAttributesClass"),
        text("Reason"),
        AGE,
        wide("VolumeMode"),
    ],
    |row| {
        let claim = row.map("spec.claimRef").map_or_else(String::new, |_| {
            format!("{}/{}", row.text("spec.claimRef.namespace"), row.text("spec.claimRef.name"))
        });
        vec![
            row.name().into(),
            row.scalar("spec.capacity.storage").unwrap_or_else(|| "0".to_owned()).into(),
            access_modes(row, "spec.accessModes").into(),
            row.text("spec.persistentVolumeReclaimPolicy").into(),
            phase(row).into(),
            claim.into(),
            class(row).into(),
            or_unset(row, "spec.volumeAttributesClassName"),
            row.text("status.reason").into(),
            row.age(),
            or_unset(row, "spec.volumeMode"),
        ]
    },
);

pub(super) static CLAIM: Builtin = Builtin::new(
    &[
        NAME,
        text("Status"),
        text("Volume"),
        text("Capacity"),
        text("Access Modes"),
        text("StorageClass"),
        text("VolumeAttributesClass"),
        AGE,
        wide("VolumeMode"),
    ],
    |row| {
        let volume = row.text("spec.volumeName");
        let (mut capacity, mut modes) = (String::new(), String::new());
        if !volume.is_empty() {
            capacity = row.scalar("status.capacity.storage").unwrap_or_else(|| "0".to_owned());
            modes = access_modes(row, "status.accessModes");
        }
        vec![
            row.name().into(),
            phase(row).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            class(row).into(),
            or_unset(row, "spec.volumeAttributesClassName"),
            row.age(),
            or_unset(row, "spec.volumeMode"),
        ]
    },
);

pub(super) static CLASS: Builtin = Builtin::new(
    &[
        NAME,
        text("Provisioner"),
        text("ReclaimPolicy"),
        text("VolumeBindingMode"),
        text("AllowVolumeExpansion"),
        AGE,
    ],
    |row| {
        let marks = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        let is_default = marks.iter().any(|mark| row.annotation(mark) == Some("true"));
        let suffix = if is_default { " (default)" } else { "" };
        vec![
            format!("{}{suffix}", row.name()).into(),
            row.text("provisioner").into(),
            row.text_or("reclaimPolicy", "Delete").into(),
            row.text_or("volumeBindingMode", "Immediate").into(),
            row.flag("allowVolumeExpansion").into(),
            row.age(),
        ]
    },
);
