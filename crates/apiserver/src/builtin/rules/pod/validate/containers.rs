//! Containers of all three kinds: those that run, those that run first, and those added for debugging.

use super::{Scope, env, probes, resources, security};
use crate::builtin::rules::checks::{
    Errors, form, local_descending_path, one_of, required, required_form, required_one_of,
};
use crate::builtin::rules::json::{flag, int, is_empty, list, set, text};
use crate::builtin::rules::names;
use crate::field::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];

const RULES_NEED_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// Checks `containers`.
pub(super) fn validate(scope: &Scope<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("containers");
    let containers = list(scope.spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    let mut taken = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = path.index(index);
        validate_common(scope, container, &at, errors);
        if !taken.insert(text(container, "name")) {
            errors.push(FieldError::duplicate(&at.field("name"), &text(container, "name").into()));
        }
        probes::validate(container, scope.grace, &at, errors);
        validate_restart(container, &at, errors);
    }
    validate_host_ports(containers.iter().enumerate(), &path, errors);
}

/// Checks `initContainers`.
pub(super) fn validate_init(scope: &Scope<'_>, path: &Path<'_>, errors: &mut Errors) {
    const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
    let path = path.field("initContainers");
    let mut taken: HashSet<&str> = list(scope.spec, "containers").iter().map(|c| text(c, "name")).collect();
    for (index, container) in list(scope.spec, "initContainers").iter().enumerate() {
        let at = path.index(index);
        validate_common(scope, container, &at, errors);
        let sidecar = text(container, "restartPolicy") == "Always";
        if set(container, "restartPolicy").is_some() || list(container, "restartPolicyRules").is_empty() {
            validate_restart(container, &at, errors);
        } else {
            errors.push(FieldError::required(&at.field("restartPolicy"), RULES_NEED_POLICY));
        }
        let name = text(container, "name");
        if taken.contains(name) {
            errors.push(FieldError::duplicate(&at.field("name"), &name.into()));
        } else if !name.is_empty() {
            taken.insert(name);
        }
        // They run one by one, so each has the ports for itself; and its errors are those of a list of one.
        validate_host_ports(std::iter::once((0, container)), &path, errors);
        if sidecar {
            probes::validate(container, scope.grace, &at, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if set(container, field).is_some() {
                errors.push(FieldError::forbidden(&at.field(field), ONLY_SIDECARS));
            }
        }
        for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                let resize = at.field("resizePolicy");
                let at = resize.index(index);
                errors.push(FieldError::invalid(&at.field("restartPolicy"), &"RestartContainer".into(), why));
            }
        }
    }
}

/// Checks `ephemeralContainers`, which have no part in what the pod does and so may set little.
pub(super) fn validate_ephemeral(scope: &Scope<'_>, path: &Path<'_>, errors: &mut Errors) {
    const REFUSED: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    const WHY: &str = "cannot be set for an Ephemeral Container";
    let path = path.field("ephemeralContainers");
    let regular = list(scope.spec, "containers").iter().chain(list(scope.spec, "initContainers"));
    let others: HashSet<&str> = regular.map(|c| text(c, "name")).collect();
    let mut taken = others.clone();
    for (index, container) in list(scope.spec, "ephemeralContainers").iter().enumerate() {
        let at = path.index(index);
        validate_common(scope, container, &at, errors);
        validate_image_spacing(container, &at, errors);
        if !taken.insert(text(container, "name")) {
            errors.push(FieldError::duplicate(&at.field("name"), &text(container, "name").into()));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(&at.field("targetContainerName"), &target.into()));
        }
        for field in REFUSED {
            if !is_empty(container.get(field)) {
                errors.push(FieldError::forbidden(&at.field(field), WHY));
            }
        }
        let mounts = at.field("volumeMounts");
        for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
            let at = mounts.index(index);
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    errors.push(FieldError::forbidden(&at.field(field), WHY));
                }
            }
        }
    }
}

/// Images of pods, unlike those of templates, have no space around them.
pub(super) fn validate_image_spacing(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim().len() != image.len() {
        let why = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&path.field("image"), &image.into(), why));
    }
}

fn validate_common(scope: &Scope<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    required_form(errors, &path.field("name"), text(container, "name"), names::dns1123_label);
    required(errors, path, container, "image");
    let policies = ["File", "FallbackToLogsOnError"];
    required_one_of(errors, path, container, "terminationMessagePolicy", &policies);
    validate_ports(container, &path.field("ports"), errors);
    env::validate(container, path, errors);
    validate_mounts(scope, container, &path.field("volumeMounts"), errors);
    validate_devices(scope, container, &path.field("volumeDevices"), errors);
    let policies = ["Always", "IfNotPresent", "Never"];
    required_one_of(errors, path, container, "imagePullPolicy", &policies);
    let nothing = Value::Null;
    let wanted = container.get("resources").unwrap_or(&nothing);
    resources::validate(wanted, &scope.claims, &path.field("resources"), errors);
    validate_resize(scope, container, &path.field("resizePolicy"), errors);
    if let Some(context) = set(container, "securityContext") {
        security::validate_container(context, scope.host_users, &path.field("securityContext"), errors);
    }
}

fn validate_ports(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut taken = HashSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let at = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let before = errors.len();
            form(errors, &at.field("name"), name, names::port_name);
            if errors.len() == before && !taken.insert(name) {
                errors.push(FieldError::duplicate(&at.field("name"), &name.into()));
            }
        }
        match int(port, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(&at.field("containerPort"), "")),
            number => validate_port_number(number, &at.field("containerPort"), errors),
        }
        if let Some(number) = int(port, "hostPort").filter(|n| *n != 0) {
            validate_port_number(number, &at.field("hostPort"), errors);
        }
        required_one_of(errors, &at, port, "protocol", &PROTOCOLS);
    }
}

fn validate_port_number(number: i64, path: &Path<'_>, errors: &mut Errors) {
    for why in names::port_number(number) {
        errors.push(FieldError::invalid(path, &number.into(), why));
    }
}

fn validate_host_ports<'a>(
    containers: impl Iterator<Item = (usize, &'a Value)>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut taken = HashSet::new();
    for (index, container) in containers {
        let at = path.index(index);
        let ports = at.field("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let Some(number) = int(port, "hostPort").filter(|n| *n != 0) else { continue };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&key) {
                let at = ports.index(index);
                errors.push(FieldError::duplicate(&at.field("hostPort"), &key.into()));
            } else {
                taken.insert(key);
            }
        }
    }
}

fn validate_mounts(scope: &Scope<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let devices: HashMap<&str, &str> =
        list(container, "volumeDevices").iter().map(|d| (text(d, "name"), text(d, "devicePath"))).collect();
    let mut taken = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        required(errors, &at, mount, "name");
        if !scope.volumes.contains_key(name) {
            errors.push(FieldError::not_found(&at.field("name"), &name.into()));
        }
        required(errors, &at, mount, "mountPath");
        if !taken.insert(target) {
            errors.push(FieldError::invalid(&at.field("mountPath"), &target.into(), "must be unique"));
        }
        if devices.contains_key(name) {
            let why = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&at.field("name"), &name.into(), why));
        }
        if devices.values().any(|device| *device == target) {
            let why = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&at.field("mountPath"), &target.into(), why));
        }
        // From here on the errors' paths lack the mount's index, as the real server's do.
        let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        local_descending_path(errors, &path.field("subPath"), sub);
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.push(FieldError::invalid(&at.field("subPathExpr"), &expression.into(), why));
            }
            local_descending_path(errors, &path.field("subPathExpr"), expression);
        }
        validate_propagation(container, mount, path, errors);
    }
}

fn validate_propagation(container: &Value, mount: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(errors, path, mount, "mountPropagation", &["Bidirectional", "HostToContainer", "None"]);
    let propagation = text(mount, "mountPropagation");
    let privileged = set(container, "securityContext").is_some_and(|c| flag(c, "privileged"));
    if propagation == "Bidirectional" && !privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(&path.field("mountPropagation"), why));
    }
    one_of(errors, path, mount, "recursiveReadOnly", &["Disabled", "Enabled", "IfPossible"]);
    if matches!(text(mount, "recursiveReadOnly"), "Enabled" | "IfPossible") {
        let at = path.field("recursiveReadOnly");
        if !flag(mount, "readOnly") {
            errors.push(FieldError::forbidden(&at, "may only be specified when readOnly is true"));
        }
        if !matches!(propagation, "" | "None") {
            let why = "may only be specified when mountPropagation is None or not specified";
            errors.push(FieldError::forbidden(&at, why));
        }
    }
}

fn validate_devices(scope: &Scope<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    const BLOCK_ONLY: &str =
        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
    let mounts: HashMap<&str, &str> =
        list(container, "volumeMounts").iter().map(|m| (text(m, "name"), text(m, "mountPath"))).collect();
    let (mut names_taken, mut paths_taken) = (HashSet::new(), HashSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let at = path.index(index);
        let (name, target) = (text(device, "name"), text(device, "devicePath"));
        let name_wrong = |why: &str| FieldError::invalid(&at.field("name"), &name.into(), why);
        let path_wrong = |why: &str| FieldError::invalid(&at.field("devicePath"), &target.into(), why);
        required(errors, &at, device, "name");
        if names_taken.contains(name) {
            errors.push(name_wrong("must be unique"));
        }
        match scope.volumes.get(name) {
            None => errors.push(FieldError::not_found(&at.field("name"), &name.into())),
            Some(volume) => {
                if set(volume, "persistentVolumeClaim").is_none() && set(volume, "ephemeral").is_none() {
                    errors.push(name_wrong(BLOCK_ONLY));
                }
            }
        }
        required(errors, &at, device, "devicePath");
        if paths_taken.contains(target) {
            errors.push(path_wrong("must be unique"));
        }
        if target.split('/').any(|part| part == "..") {
            errors.push(path_wrong("can not contain backsteps ('..')"));
        } else {
            paths_taken.insert(target);
        }
        if mounts.contains_key(name) {
            errors.push(name_wrong("must not already exist in volumeMounts"));
        }
        if mounts.values().any(|mounted| *mounted == target) {
            errors.push(path_wrong("must not already exist as a path in volumeMounts"));
        }
        if !name.is_empty() {
            names_taken.insert(name);
        }
    }
}

fn validate_resize(scope: &Scope<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut taken = HashSet::new();
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !taken.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(index), &resource.into()));
        }
        let supported: [(&str, [&str; 2]); 2] =
            [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])];
        for (value, supported) in supported {
            if value.is_empty() {
                errors.push(FieldError::required(path, ""));
            } else if !supported.contains(&value) {
                errors.push(FieldError::not_supported(path, &value.into(), &supported));
            }
        }
        if text(scope.spec, "restartPolicy") == "Never" && restart != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, &restart.into(), why));
        }
    }
}

fn validate_restart(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = list(container, "restartPolicyRules");
    if set(container, "restartPolicy").is_none() && !rules.is_empty() {
        errors.push(FieldError::required(&path.field("restartPolicy"), RULES_NEED_POLICY));
    }
    one_of(errors, path, container, "restartPolicy", &RESTART_POLICIES);
    let rules_path = path.field("restartPolicyRules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&rules_path, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = rules_path.index(index);
        let actions = ["Restart", "RestartAllContainers"];
        let action = text(rule, "action");
        if !actions.contains(&action) {
            errors.push(FieldError::not_supported(&at.field("action"), &action.into(), &actions));
        }
        let Some(codes) = set(rule, "exitCodes") else {
            errors.push(FieldError::required(&at.field("exitCodes"), "must be specified"));
            continue;
        };
        let at = at.field("exitCodes");
        let operator = text(codes, "operator");
        if !["In", "NotIn"].contains(&operator) {
            errors.push(FieldError::not_supported(&at.field("operator"), &json!(operator), &["In", "NotIn"]));
        }
        let values = list(codes, "values").len();
        if values > 255 {
            errors.push(FieldError::too_many(&at.field("values"), values, 255));
        }
    }
}
