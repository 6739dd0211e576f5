//! Environment variables, and the fields of a pod they can be taken from.

use crate::builtin::quantity::Quantity;
use crate::builtin::rules::checks::{Errors, form, no_backsteps, required, required_form};
use crate::builtin::rules::json::{list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::Value;

/// Fields of a pod that a variable can hold.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that a file can hold.
pub(super) const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Every field of a pod that can be named here at all.
const FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Checks `env` and `envFrom` of a container.
pub(super) fn validate(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let env = path.field("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = env.index(index);
        required_form(errors, &path.field("name"), text(variable, "name"), variable_name);
        if let Some(source) = set(variable, "valueFrom") {
            validate_value_from(variable, source, &path.field("valueFrom"), errors);
        }
    }
    let from = path.field("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let path = from.index(index);
        if !text(source, "prefix").is_empty() {
            form(errors, &path.field("prefix"), text(source, "prefix"), variable_name);
        }
        let mut found = 0;
        for kind in ["configMapRef", "secretRef"] {
            if let Some(reference) = set(source, kind) {
                found += 1;
                let name = text(reference, "name");
                required_form(errors, &path.field(kind).field("name"), name, masked_subdomain);
            }
        }
        let why = match found {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(&from, &"".into(), why));
    }
}

/// A name that may also be the prefix of one.
fn masked_subdomain(name: &str) -> Vec<String> {
    names::dns1123_subdomain(&names::masked_prefix(name))
}

fn variable_name(name: &str) -> Vec<String> {
    if name.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

fn validate_value_from(variable: &Value, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut found = 0;
    if let Some(reference) = set(source, "fieldRef") {
        found += 1;
        validate_field_ref(reference, &ENV_FIELDS, &path.field("fieldRef"), errors);
    }
    if let Some(reference) = set(source, "resourceFieldRef") {
        found += 1;
        validate_resource_ref(reference, false, &path.field("resourceFieldRef"), errors);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = set(source, kind) {
            found += 1;
            let path = path.field(kind);
            form(errors, &path.field("name"), text(reference, "name"), names::dns1123_subdomain);
            required_form(errors, &path.field("key"), text(reference, "key"), names::config_key);
        }
    }
    if let Some(reference) = set(source, "fileKeyRef") {
        found += 1;
        let path = path.field("fileKeyRef");
        required_form(errors, &path.field("key"), text(reference, "key"), variable_name);
        required_form(errors, &path.field("volumeName"), text(reference, "volumeName"), names::dns1123_label);
        required(errors, &path, reference, "path");
        no_backsteps(errors, &path.field("path"), text(reference, "path"));
    }
    let why = if found == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !text(variable, "value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if found > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, &"".into(), why));
}

/// Checks a reference to a field of the pod; `supported` are those that may stand here.
pub(super) fn validate_field_ref(
    reference: &Value,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for field in ["apiVersion", "fieldPath"] {
        if text(reference, field).is_empty() {
            errors.push(FieldError::required(&path.field(field), ""));
            return;
        }
    }
    let (version, named) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    let at = path.field("fieldPath");
    let mut refuse = |why: String| {
        let why = format!("error converting fieldPath: {why}");
        errors.push(FieldError::invalid(&at, &named.into(), why));
    };
    if version != "v1" {
        return refuse(format!("unsupported pod version: {version}"));
    }
    if let Some((field, key)) = split_subscript(named) {
        match field {
            "metadata.annotations" => form(errors, path, &key.to_lowercase(), names::label_key),
            "metadata.labels" => form(errors, path, key, names::label_key),
            _ => refuse(format!("field label does not support subscript: {named}")),
        }
        return;
    }
    if !FIELDS.contains(&named) {
        return refuse(format!("field label not supported: {named}"));
    }
    let field = if named == "spec.host" { "spec.nodeName" } else { named };
    if !supported.contains(&field) {
        errors.push(FieldError::not_supported(&at, &field.into(), supported));
    }
}

/// `metadata.labels['a']` as field and key.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Checks a reference to a container's resources; in a volume it must name the container.
pub(super) fn validate_resource_ref(reference: &Value, volume: bool, path: &Path<'_>, errors: &mut Errors) {
    let resource = text(reference, "resource");
    let huge = ["requests.hugepages-", "limits.hugepages-"].iter().any(|p| resource.starts_with(p));
    if volume && text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(&path.field("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.field("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !huge {
        errors.push(FieldError::not_supported(&path.field("resource"), &resource.into(), &RESOURCES));
    }
    let divisor = reference.get("divisor").and_then(Quantity::read).unwrap_or(Quantity::ZERO);
    if divisor.is_zero() {
        return;
    }
    let shown = divisor.to_string();
    let of_bytes = !BYTE_DIVISORS.contains(&shown.as_str());
    let what = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => {
            if matches!(shown.as_str(), "1" | "1m") {
                return;
            }
            "1m and 1 are supported with the cpu resource".to_owned()
        }
        Some("memory") if of_bytes => {
            format!("{} are supported with the memory resource", BYTE_DIVISORS.join(", "))
        }
        Some("ephemeral-storage") if of_bytes => {
            format!("{} are supported with the local ephemeral storage resource", BYTE_DIVISORS.join(", "))
        }
        _ if huge && of_bytes => {
            format!("{} are supported with the hugepages resource", BYTE_DIVISORS.join(", "))
        }
        _ => return,
    };
    let why = format!("only divisor's values {what}");
    errors.push(FieldError::invalid(&path.field("divisor"), &resource.into(), why));
}
