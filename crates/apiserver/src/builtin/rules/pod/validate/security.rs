//! Security contexts of pods and containers.

use super::super::internal;
use crate::builtin::rules::checks::{Errors, in_range, local_descending_path, one_of};
use crate::builtin::rules::json::{flag, int, list, set, text};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::HashSet;

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL_LENGTH_MAX: usize = 253;
/// Kernel parameters that each IPC namespace has its own of.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shm",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
];
const ID_MAX: i64 = i32::MAX as i64;

/// Checks the security context of a container.
pub(super) fn validate_container(context: &Value, host_users: bool, path: &Path<'_>, errors: &mut Errors) {
    validate_ids(context, &["runAsUser", "runAsGroup"], path, errors);
    one_of(errors, path, context, "procMount", &["Default", "Unmasked"]);
    if host_users && text(context, "procMount") == "Unmasked" {
        let why = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(&path.field("procMount"), &"Unmasked".into(), why));
    }
    validate_seccomp(context, path, errors);
    if context.get("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false) {
        let mut refuse = |what: &str| {
            let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            let mut error = FieldError::invalid(path, context, why);
            error.value = Some(internal::render("SecurityContext", context));
            errors.push(error);
        };
        if flag(context, "privileged") {
            refuse("`privileged` to true");
        }
        let added = set(context, "capabilities").map_or(&[][..], |c| list(c, "add"));
        for _ in added.iter().filter(|c| *c == "CAP_SYS_ADMIN") {
            refuse("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    validate_app_armor(context, path, errors);
}

/// Checks the security context of a pod.
pub(super) fn validate_pod(spec: &Value, spec_path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = set(spec, "securityContext") else { return };
    let path = spec_path.field("securityContext");
    validate_ids(context, &["fsGroup", "runAsUser", "runAsGroup"], &path, errors);
    let groups = path.field("supplementalGroups");
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        in_range(errors, &groups.index(index), group.as_i64().unwrap_or(0), 0, ID_MAX);
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.field("shareProcessNamespace"), &true.into(), why));
    }
    validate_sysctls(spec, context, &path.field("sysctls"), errors);
    one_of(errors, &path, context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    validate_seccomp(context, &path, errors);
    validate_app_armor(context, &path, errors);
    one_of(errors, &path, context, "supplementalGroupsPolicy", &["Merge", "Strict"]);
    one_of(errors, &path, context, "seLinuxChangePolicy", &["Recursive"]);
}

fn validate_ids(context: &Value, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for field in fields {
        if let Some(id) = int(context, field) {
            in_range(errors, &path.field(field), id, 0, ID_MAX);
        }
    }
}

fn validate_seccomp(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = set(context, "seccompProfile") else { return };
    let path = path.field("seccompProfile");
    if text(profile, "type").is_empty() {
        let why = "type is required when seccompProfile is set";
        errors.push(FieldError::required(&path.field("type"), why));
    }
    one_of(errors, &path, profile, "type", &PROFILES);
    let local = path.field("localhostProfile");
    match (text(profile, "type") == "Localhost", set(profile, "localhostProfile")) {
        (true, None) => {
            errors.push(FieldError::required(&local, "must be set when seccomp type is Localhost"));
        }
        (true, Some(file)) => local_descending_path(errors, &local, file.as_str().unwrap_or_default()),
        (false, Some(_)) => {
            let why = "can only be set when seccomp type is Localhost";
            let mut error = FieldError::invalid(&local, profile, why);
            error.value = Some(internal::render("SeccompProfile", profile));
            errors.push(error);
        }
        (false, None) => {}
    }
}

fn validate_app_armor(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    let Some(profile) = set(context, "appArmorProfile") else { return };
    let path = path.field("appArmorProfile");
    let local = path.field("localhostProfile");
    let given = set(profile, "localhostProfile");
    match text(profile, "type") {
        "Localhost" => match given.and_then(Value::as_str) {
            Some(name) if name.trim() != name => {
                errors.push(FieldError::invalid(&local, &name.into(), "must not be padded with whitespace"));
            }
            Some(name) if !name.is_empty() => {
                if name.len() > 4095 {
                    errors.push(FieldError::too_long(&local, 4095));
                }
            }
            _ => errors.push(FieldError::required(&local, NEEDED)),
        },
        "RuntimeDefault" | "Unconfined" => {
            if let Some(name) = given {
                let why = "can only be set when AppArmor type is Localhost";
                errors.push(FieldError::invalid(&local, name, why));
            }
        }
        "" => {
            let why = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(&path.field("type"), why));
        }
        _ => one_of(errors, &path, profile, "type", &PROFILES),
    }
}

fn validate_sysctls(spec: &Value, context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, sysctl) in list(context, "sysctls").iter().enumerate() {
        let item = path.index(index);
        let (at, name) = (item.field("name"), text(sysctl, "name"));
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !is_sysctl(name) {
            let why = format!(
                "must have at most {SYSCTL_LENGTH_MAX} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.push(FieldError::invalid(&at, &name.into(), why));
        } else if seen.contains(name) {
            errors.push(FieldError::duplicate(&at, &name.into()));
        }
        seen.insert(name);
        let shared = if flag(spec, "hostNetwork") && name.starts_with("net.") {
            Some("hostNetwork")
        } else {
            let ipc = IPC_SYSCTLS.contains(&name) || name.starts_with("fs.mqueue.");
            (flag(spec, "hostIPC") && ipc).then_some("hostIPC")
        };
        if let Some(shared) = shared {
            let why = format!("may not be specified when '{shared}' is true");
            errors.push(FieldError::invalid(&at, &name.into(), why));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= SYSCTL_LENGTH_MAX
        && name.split(['.', '/']).all(|part| {
            let part = part.as_bytes();
            edge(part.first())
                && edge(part.last())
                && part.iter().all(|b| edge(Some(b)) || *b == b'-' || *b == b'_')
        })
}
