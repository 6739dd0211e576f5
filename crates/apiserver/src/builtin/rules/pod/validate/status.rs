//! What a write to a pod's status may say.

use super::update::validate_annotation_updates;
use crate::builtin::rules::checks::{Errors, IMMUTABLE, form};
use crate::builtin::rules::json::{int, list, same_field, set, text};
use crate::builtin::rules::names::{self, address::validate_legacy_ip};
use crate::field::{FieldError, Path};
use serde_json::Value;

const STATUS: Path<'static> = Path::of("status");

/// Checks a write to a Pod's status.
pub(crate) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validate_annotation_updates(new, old, errors);
    let nothing = Value::Null;
    let (status, before) = (new.get("status").unwrap_or(&nothing), old.get("status").unwrap_or(&nothing));
    let spec = old.get("spec").unwrap_or(&nothing);
    validate_conditions(status, errors);
    validate_nomination(status, before, spec, errors);
    if let Some(generation) = int(status, "observedGeneration").filter(|g| *g < 0) {
        let path = STATUS.field("observedGeneration");
        errors.push(FieldError::invalid(&path, &generation.into(), "must be a non-negative integer"));
    }
    if !same_field(status, before, "qosClass") {
        let path = STATUS.field("qosClass");
        errors.push(FieldError::invalid(&path, &text(status, "qosClass").into(), IMMUTABLE));
    }
    for (statuses, containers) in [
        ("containerStatuses", Some("containers")),
        ("initContainerStatuses", Some("initContainers")),
        ("ephemeralContainerStatuses", None),
    ] {
        let may_restart = |name: &str, code: i64| {
            let containers = containers.map_or(&[][..], |field| list(spec, field));
            containers.iter().find(|c| text(c, "name") == name).is_some_and(|c| restarts(spec, c, code))
        };
        validate_transitions(status, before, statuses, may_restart, errors);
    }
    validate_addresses(status, errors);
}

fn validate_conditions(status: &Value, errors: &mut Errors) {
    let path = STATUS.field("conditions");
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let at = path.index(index);
        if let Some(generation) = int(condition, "observedGeneration").filter(|g| *g < 0) {
            let at = at.field("observedGeneration");
            errors.push(FieldError::invalid(&at, &generation.into(), "must be a non-negative integer"));
        }
        form(errors, &at.field("Type"), text(condition, "type"), names::label_key);
    }
}

fn validate_nomination(status: &Value, before: &Value, spec: &Value, errors: &mut Errors) {
    let node = text(status, "nominatedNodeName");
    if node.is_empty() || node == text(before, "nominatedNodeName") {
        return;
    }
    let path = STATUS.field("nominatedNodeName");
    form(errors, &path, node, names::dns1123_subdomain);
    if !text(spec, "nodeName").is_empty() {
        let why = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(&path, why));
    }
}

/// A container that ended stays ended unless it is one that is started again.
fn validate_transitions(
    status: &Value,
    before: &Value,
    field: &str,
    may_restart: impl Fn(&str, i64) -> bool,
    errors: &mut Errors,
) {
    let path = STATUS.field(field);
    for (index, old) in list(before, field).iter().enumerate() {
        let Some(ended) = old.pointer("/state/terminated").filter(|t| !t.is_null()) else { continue };
        let name = text(old, "name");
        let Some(now) = list(status, field).iter().find(|s| text(s, "name") == name) else { continue };
        let running = now.pointer("/state/terminated").is_none_or(Value::is_null);
        if running && !may_restart(name, int(ended, "exitCode").unwrap_or(0)) {
            let at = path.index(index);
            let why = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&at.field("state"), why));
        }
    }
}

/// Whether a container that ended with this code is started again.
fn restarts(spec: &Value, container: &Value, code: i64) -> bool {
    let restarts_all = |c: &Value| {
        list(c, "restartPolicyRules").iter().any(|rule| text(rule, "action") == "RestartAllContainers")
    };
    if list(spec, "containers").iter().chain(list(spec, "initContainers")).any(restarts_all) {
        return true;
    }
    for rule in list(container, "restartPolicyRules") {
        let Some(codes) = set(rule, "exitCodes") else { continue };
        let listed = list(codes, "values").iter().any(|v| v.as_i64() == Some(code));
        if listed == (text(codes, "operator") == "In") {
            return true;
        }
    }
    let policy = match text(container, "restartPolicy") {
        "" => text(spec, "restartPolicy"),
        own => own,
    };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn validate_addresses(status: &Value, errors: &mut Errors) {
    for (field, single) in [("podIPs", "podIP"), ("hostIPs", "hostIP")] {
        let path = STATUS.field(field);
        let addresses = list(status, field);
        let first = addresses.first().map_or("", |a| text(a, "ip"));
        if field == "hostIPs" && !addresses.is_empty() && first != text(status, single) {
            let at = path.index(0);
            errors.push(FieldError::invalid(&at.field("ip"), &first.into(), "must be equal to `hostIP`"));
        }
        for (index, address) in addresses.iter().enumerate() {
            validate_legacy_ip(text(address, "ip"), &path.index(index), false, errors);
        }
        let sixes = addresses.iter().filter(|a| text(a, "ip").contains(':')).count();
        if addresses.len() > 2 || (addresses.len() == 2 && sixes != 1) {
            let why = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(&path, &status[field], why));
        }
    }
}
