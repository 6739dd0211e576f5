//! What is wrong with a pod, or with the template of one.
//!
//! Every check reports all it finds, in the order in which the real server reports it.

mod containers;
mod env;
mod probes;
mod resources;
mod scheduling;
mod security;
pub(crate) mod status;
pub(crate) mod update;
mod volumes;

use super::super::checks::{Errors, form, in_range, one_of, required_one_of};
use super::super::json::{flag, inside, int, list, set, text};
use super::super::names::{self, address::validate_legacy_ip};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

const SPEC: Path<'static> = Path::of("spec");
const METADATA: Path<'static> = Path::of("metadata");

/// What checks of a container need to know of the pod around it.
struct Scope<'a> {
    spec: &'a Value,
    volumes: volumes::Volumes<'a>,
    /// Names in `resourceClaims`.
    claims: BTreeSet<&'a str>,
    grace: Option<i64>,
    host_users: bool,
}

/// Whether a spec is that of a pod, which has a name, or stands in a template.
#[derive(Clone, Copy)]
enum Place<'a> {
    Pod { name: &'a str },
    Template,
}

/// Checks a new Pod.
pub(crate) fn validate_create(pod: &Value, errors: &mut Errors) {
    validate_pod(pod, errors);
    let Some(spec) = pod.get("spec") else { return };
    if !list(spec, "ephemeralContainers").is_empty() {
        let why = "cannot be set on create";
        errors.push(FieldError::forbidden(&SPEC.field("ephemeralContainers"), why));
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&SPEC.field("nodeName"), why));
    }
}

/// Checks everything in a Pod that does not depend on what it was before.
pub(crate) fn validate_pod(pod: &Value, errors: &mut Errors) {
    let nothing = Value::Null;
    let meta = pod.get("metadata").unwrap_or(&nothing);
    let spec = pod.get("spec").unwrap_or(&nothing);
    validate_annotations(meta, spec, &METADATA.field("annotations"), errors);
    validate_spec(spec, Place::Pod { name: text(meta, "name") }, &SPEC, errors);
    if text(spec, "serviceAccountName").is_empty() {
        validate_no_tokens(spec, errors);
    }
    for field in ["containers", "initContainers"] {
        let path = SPEC.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            containers::validate_image_spacing(container, &path.index(index), errors);
        }
    }
}

/// Checks the pod template at this path.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_template_metadata(template, path, errors);
    let nothing = Value::Null;
    let spec = template.get("spec").unwrap_or(&nothing);
    let path = path.field("spec");
    validate_spec(spec, Place::Template, &path, errors);
    if !list(spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&path.field("ephemeralContainers"), why));
    }
}

/// Checks the metadata of the pod template at this path.
pub(crate) fn validate_template_metadata(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let nothing = Value::Null;
    let meta = template.get("metadata").unwrap_or(&nothing);
    let annotations = path.field("annotations");
    names::validate_labels(&meta["labels"], &path.field("labels"), errors);
    names::validate_annotations(&meta["annotations"], &annotations, errors);
    validate_annotations(meta, template.get("spec").unwrap_or(&nothing), &annotations, errors);
}

/// Annotations that mean something to the server itself.
pub(super) fn validate_annotations(meta: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let Some(annotations) = meta.get("annotations") else { return };
    if let Some(value) = annotations.get(MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, why));
    }
    if let Some(cost) = annotations.get(DELETION_COST) {
        let number = cost.as_str().unwrap_or_default();
        // No leading zeros and no plus sign, so that there is one way to write a number.
        let canonical = number.parse::<i32>().is_ok_and(|n| n.to_string() == number);
        if !canonical {
            errors.push(FieldError::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
        }
    }
}

fn validate_no_tokens(spec: &Value, errors: &mut Errors) {
    let volumes = SPEC.field("volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let Some(projected) = set(volume, "projected") else { continue };
        let at = volumes.index(index);
        let at = at.field("projected");
        let sources = at.field("sources");
        for (index, source) in list(projected, "sources").iter().enumerate() {
            if set(source, "serviceAccountToken").is_some() {
                let at = sources.index(index);
                let why = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&at.field("serviceAccountToken"), why));
            }
        }
    }
}

fn validate_spec(spec: &Value, place: Place<'_>, path: &Path<'_>, errors: &mut Errors) {
    let grace = int(spec, "terminationGracePeriodSeconds");
    if grace.is_none() {
        errors.push(FieldError::required(&path.field("terminationGracePeriodSeconds"), ""));
    }
    let pod_name = match place {
        Place::Pod { name } if !name.is_empty() => Some(name),
        _ => None,
    };
    let scope = Scope {
        spec,
        volumes: volumes::validate(spec, pod_name, path, errors),
        claims: list(spec, "resourceClaims")
            .iter()
            .map(|c| text(c, "name"))
            .filter(|n| !n.is_empty())
            .collect(),
        grace,
        host_users: spec.get("hostUsers").and_then(Value::as_bool).unwrap_or(true),
    };
    validate_resource_claims(spec, path, errors);
    containers::validate(&scope, path, errors);
    containers::validate_init(&scope, path, errors);
    containers::validate_ephemeral(&scope, path, errors);
    resources::validate_pod_level(spec, path, errors);
    validate_host_network(spec, place, path, errors);
    required_one_of(errors, path, spec, "restartPolicy", &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    required_one_of(errors, path, spec, "dnsPolicy", &policies);
    names::validate_labels(
        spec.get("nodeSelector").unwrap_or(&Value::Null),
        &path.field("nodeSelector"),
        errors,
    );
    security::validate_pod(spec, path, errors);
    if let Some(affinity) = set(spec, "affinity") {
        scheduling::validate_affinity(affinity, &path.field("affinity"), errors);
    }
    validate_dns(spec, path, errors);
    scheduling::validate_gates(spec, path, errors);
    scheduling::validate_spread(spec, path, errors);
    validate_host_users(&scope, path, errors);
    validate_names(spec, path, errors);
    scheduling::validate_tolerations(list(spec, "tolerations"), &path.field("tolerations"), errors);
    validate_rest(spec, path, errors);
}

fn validate_resource_claims(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("resourceClaims");
    let mut seen = HashSet::new();
    for (index, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let (at, name) = (path.index(index), text(claim, "name"));
        if name.is_empty() {
            errors.push(FieldError::required(&at.field("name"), ""));
        } else if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at.field("name"), &name.into()));
        } else {
            form(errors, &at.field("name"), name, names::dns1123_label);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let why = match sources.iter().filter(|s| set(claim, s).is_some()).count() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        };
        if !why.is_empty() {
            let mut error = FieldError::invalid(&at, claim, why);
            error.value = Some(super::internal::render("PodResourceClaim", claim));
            errors.push(error);
        }
        for source in sources {
            if let Some(name) = set(claim, source).and_then(Value::as_str) {
                form(errors, &at.field(source), name, names::dns1123_subdomain);
            }
        }
    }
}

fn validate_host_network(spec: &Value, place: Place<'_>, path: &Path<'_>, errors: &mut Errors) {
    if !flag(spec, "hostNetwork") {
        return;
    }
    let is_pod = matches!(place, Place::Pod { .. });
    let containers = path.field("containers");
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let at = containers.index(index);
        let ports = at.field("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let host = int(port, "hostPort").unwrap_or(0);
            if (is_pod || host != 0) && host != int(port, "containerPort").unwrap_or(0) {
                let at = ports.index(index);
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&at.field("hostPort"), &host.into(), why));
            }
        }
    }
}

fn validate_dns(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("dnsConfig");
    let config = set(spec, "dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        let Some(config) = config else {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(FieldError::required(&path, why));
            return;
        };
        if list(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&path.field("nameservers"), why));
            return;
        }
    }
    let Some(config) = config else { return };
    let servers = path.field("nameservers");
    if list(config, "nameservers").len() > 3 {
        let why = "must not have more than 3 nameservers";
        errors.push(FieldError::invalid(&servers, &config["nameservers"], why));
    }
    for (index, server) in list(config, "nameservers").iter().enumerate() {
        validate_legacy_ip(server.as_str().unwrap_or_default(), &servers.index(index), true, errors);
    }
    let searches = path.field("searches");
    if list(config, "searches").len() > 32 {
        let why = "must not have more than 32 search paths";
        errors.push(FieldError::invalid(&searches, &config["searches"], why));
    }
    for (index, search) in list(config, "searches").iter().enumerate() {
        let name = search.as_str().unwrap_or_default();
        if name != "." {
            let name = name.strip_suffix('.').unwrap_or(name);
            form(errors, &searches.index(index), name, search_domain);
        }
    }
    let options = path.field("options");
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(&options.index(index), "must not be empty"));
        }
    }
}

/// A subdomain with underscores, as names of services have them.
fn search_domain(name: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(label.first())
            && edge(label.last())
            && label.iter().all(|b| edge(Some(b)) || *b == b'-' || *b == b'_')
    };
    let mut wrong = Vec::new();
    if name.len() > names::SUBDOMAIN_MAX {
        wrong.push(names::length_error(names::SUBDOMAIN_MAX));
    }
    if !name.split('.').all(is_label) {
        wrong.push(names::form_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or \
             '.', and must start and end with an alphanumeric character",
            "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    wrong
}

fn validate_host_users(scope: &Scope<'_>, path: &Path<'_>, errors: &mut Errors) {
    if scope.host_users {
        return;
    }
    let fields = [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")];
    for (field, shown) in fields {
        if flag(scope.spec, field) {
            errors.push(FieldError::forbidden(&path.field(shown), "when `hostUsers` is false"));
        }
    }
    for field in super::defaults::CONTAINERS {
        let containers = path.field(field);
        for (index, container) in list(scope.spec, field).iter().enumerate() {
            if !list(container, "volumeDevices").is_empty() {
                let at = containers.index(index);
                errors.push(FieldError::forbidden(&at.field("volumeDevices"), "when `hostUsers` is false"));
            }
        }
    }
}

fn validate_names(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(name) = set(spec, "hostnameOverride").and_then(Value::as_str) {
        let at = path.field("hostnameOverride");
        if flag(spec, "setHostnameAsFQDN") {
            errors.push(FieldError::forbidden(&at, "may not be specified when setHostnameAsFQDN is true"));
        }
        if flag(spec, "hostNetwork") {
            errors.push(FieldError::forbidden(&at, "may not be specified when hostNetwork is true"));
        }
        if name.len() > 64 {
            errors.push(FieldError::too_long(&at, 64));
        }
        form(errors, &at, name, names::dns1123_subdomain);
    }
    for field in ["serviceAccountName", "nodeName"] {
        if !text(spec, field).is_empty() {
            form(errors, &path.field(field), text(spec, field), names::dns1123_subdomain);
        }
    }
    if let Some(seconds) = int(spec, "activeDeadlineSeconds") {
        in_range(errors, &path.field("activeDeadlineSeconds"), seconds, 1, i64::from(i32::MAX));
    }
    for field in ["hostname", "subdomain"] {
        if !text(spec, field).is_empty() {
            form(errors, &path.field(field), text(spec, field), names::dns1123_label);
        }
    }
}

fn validate_rest(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let aliases = path.field("hostAliases");
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = aliases.index(index);
        validate_legacy_ip(text(alias, "ip"), &at.field("ip"), true, errors);
        let hosts = at.field("hostnames");
        for (index, host) in list(alias, "hostnames").iter().enumerate() {
            form(errors, &hosts.index(index), host.as_str().unwrap_or_default(), names::dns1123_subdomain);
        }
    }
    for field in ["priorityClassName", "runtimeClassName"] {
        if !text(spec, field).is_empty() {
            form(errors, &path.field(field), text(spec, field), names::dns1123_subdomain);
        }
    }
    one_of(errors, path, spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
    if let Some(overhead) = set(spec, "overhead") {
        resources::validate_limits(overhead, &path.field("overhead"), errors);
    }
    if let Some(os) = set(spec, "os") {
        let at = path.field("os");
        match text(os, "name") {
            "" => errors.push(FieldError::required(&at.field("name"), "")),
            "linux" | "windows" => {}
            other => errors.push(FieldError::not_supported(&at, &other.into(), &["linux", "windows"])),
        }
    }
    validate_file_variables(spec, path, errors);
}

/// Variables taken from files need a volume that lives as long as the pod.
fn validate_file_variables(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let volume = |name: &str| list(spec, "volumes").iter().find(|v| text(v, "name") == name);
    for field in super::defaults::CONTAINERS {
        let containers = path.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            let at = containers.index(index);
            let env = at.field("env");
            for (index, variable) in list(container, "env").iter().enumerate() {
                let Some(name) = inside(variable, "/valueFrom/fileKeyRef/volumeName") else { continue };
                let at = env.index(index);
                let at = at.field("valueFrom");
                let at = at.field("fileKeyRef");
                let at = at.field("volumeName");
                match volume(name.as_str().unwrap_or_default()) {
                    None => errors.push(FieldError::not_found(&at, name)),
                    Some(volume) if set(volume, "emptyDir").is_none() => {
                        let why = "referenced volume must be of type emptyDir";
                        errors.push(FieldError::invalid(&at, name, why));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
