//! Absent fields of pods and pod templates.

use super::super::json::{
    default_nonzero, default_to, ensure_object, flag, inside, int, list_mut, object_mut, put, set, text,
};
use super::{image, resources};
use crate::builtin::quantity::Quantity;
use serde_json::{Value, json};

/// The lists of containers in a pod spec.
pub(super) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Fills in a Pod. Some defaults are for pods only and do not appear in templates.
pub(crate) fn default_pod(pod: &mut Value) {
    let Some(spec) = ensure_object(pod, "spec") else { return };
    for containers in ["containers", "initContainers"] {
        for container in list_mut(spec, containers) {
            default_requests_to_limits(container);
        }
    }
    resources::default_pod_level(spec);
    default_to(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        for containers in ["containers", "initContainers"] {
            for container in list_mut(spec, containers) {
                default_host_ports(container);
            }
        }
    }
    default_spec(spec);
    // Negative periods were allowed once; they mean the shortest one. Templates keep them as they are.
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        put(spec, "terminationGracePeriodSeconds", 1);
    }
    if let Some(status) = object_mut(pod, "status") {
        for statuses in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
            for status in list_mut(status, statuses) {
                round_up(status, "allocatedResources");
                round_up_resources(status);
            }
        }
        round_up(status, "allocatedResources");
        round_up_resources(status);
        mirror_addresses(status);
    }
}

/// `podIP` is the first of `podIPs`; a client may know of only one of the two fields.
fn mirror_addresses(status: &mut Value) {
    let first = inside(status, "/podIPs/0").map_or("", |address| text(address, "ip"));
    let only = text(status, "podIP");
    if only.is_empty() && !first.is_empty() {
        let first = first.to_owned();
        put(status, "podIP", first);
    } else if only != first {
        let addresses = json!([{"ip": only}]);
        put(status, "podIPs", addresses);
    }
}

/// Fills in the pod template in `holder.template`.
pub(crate) fn default_template(holder: &mut Value) {
    if let Some(spec) = ensure_object(holder, "template").and_then(|t| ensure_object(t, "spec")) {
        default_spec(spec);
    }
}

/// Fills in a claim spec: of a claim, a claim template or an ephemeral volume.
pub(crate) fn default_claim_spec(spec: &mut Value) {
    default_to(spec, "volumeMode", "Filesystem");
    round_up_resources(spec);
}

fn default_spec(spec: &mut Value) {
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "restartPolicy", "Always");
    ensure_object(spec, "securityContext");
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_to(spec, "schedulerName", "default-scheduler");
    mirror_service_account(spec);
    for volume in list_mut(spec, "volumes") {
        default_volume(volume);
    }
    for containers in CONTAINERS {
        for container in list_mut(spec, containers) {
            default_container(container);
        }
    }
    round_up(spec, "overhead");
    round_up_resources(spec);
}

/// `serviceAccount` is the old name of `serviceAccountName`; both always say the same.
pub(super) fn mirror_service_account(spec: &mut Value) {
    let name = match (text(spec, "serviceAccountName"), text(spec, "serviceAccount")) {
        ("", "") => return,
        ("", old) => old.to_owned(),
        (new, _) => new.to_owned(),
    };
    put(spec, "serviceAccountName", name.clone());
    put(spec, "serviceAccount", name);
}

fn default_container(container: &mut Value) {
    let policy = pull_policy(text(container, "image"));
    default_to(container, "imagePullPolicy", policy);
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    for port in list_mut(container, "ports") {
        default_to(port, "protocol", "TCP");
    }
    for variable in list_mut(container, "env") {
        if let Some(source) = object_mut(variable, "valueFrom") {
            default_field_ref(source);
            if let Some(file) = object_mut(source, "fileKeyRef") {
                default_to(file, "optional", false);
            }
        }
    }
    round_up_resources(container);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = object_mut(container, probe) {
            default_probe(probe);
        }
    }
    if let Some(lifecycle) = object_mut(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = object_mut(lifecycle, hook) {
                default_http_get(hook);
            }
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image::tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

fn default_probe(probe: &mut Value) {
    default_nonzero(probe, "timeoutSeconds", 1);
    default_nonzero(probe, "periodSeconds", 10);
    default_nonzero(probe, "successThreshold", 1);
    default_nonzero(probe, "failureThreshold", 3);
    default_http_get(probe);
    if let Some(grpc) = object_mut(probe, "grpc") {
        default_to(grpc, "service", "");
    }
}

fn default_http_get(handler: &mut Value) {
    if let Some(get) = object_mut(handler, "httpGet") {
        default_to(get, "path", "/");
        default_to(get, "scheme", "HTTP");
    }
}

fn default_field_ref(holder: &mut Value) {
    if let Some(reference) = object_mut(holder, "fieldRef") {
        default_to(reference, "apiVersion", "v1");
    }
}

fn default_volume(volume: &mut Value) {
    let sources =
        volume.as_object().map_or(0, |map| map.iter().filter(|(k, v)| *k != "name" && !v.is_null()).count());
    if sources == 0 {
        put(volume, "emptyDir", json!({}));
    }
    let Some(map) = volume.as_object_mut() else { return };
    for (kind, source) in map.iter_mut() {
        match kind.as_str() {
            "hostPath" => default_to(source, "type", ""),
            "secret" | "configMap" => default_to(source, "defaultMode", 0o644),
            "downwardAPI" => {
                default_to(source, "defaultMode", 0o644);
                list_mut(source, "items").iter_mut().for_each(default_field_ref);
            }
            "projected" => default_projected(source),
            "image" => {
                let policy = pull_policy(text(source, "reference"));
                default_to(source, "pullPolicy", policy);
            }
            "iscsi" => default_to(source, "iscsiInterface", "default"),
            "rbd" => {
                default_to(source, "pool", "rbd");
                default_to(source, "user", "admin");
                default_to(source, "keyring", "/etc/ceph/keyring");
            }
            "azureDisk" => default_azure_disk(source),
            "scaleIO" => {
                default_to(source, "storageMode", "ThinProvisioned");
                default_to(source, "fsType", "xfs");
            }
            "ephemeral" => {
                if let Some(template) = object_mut(source, "volumeClaimTemplate")
                    && let Some(spec) = ensure_object(template, "spec")
                {
                    default_claim_spec(spec);
                }
            }
            _ => {}
        }
    }
}

fn default_azure_disk(source: &mut Value) {
    default_to(source, "cachingMode", "ReadWrite");
    // A set but empty fsType stays, because the field is a pointer.
    if set(source, "fsType").is_none() {
        put(source, "fsType", "ext4");
    }
    default_to(source, "readOnly", false);
    default_to(source, "kind", "Shared");
}

fn default_projected(source: &mut Value) {
    default_to(source, "defaultMode", 0o644);
    for part in list_mut(source, "sources") {
        if let Some(downward) = object_mut(part, "downwardAPI") {
            list_mut(downward, "items").iter_mut().for_each(default_field_ref);
        }
        if let Some(token) = object_mut(part, "serviceAccountToken") {
            default_to(token, "expirationSeconds", 3600);
        }
    }
}

fn default_requests_to_limits(container: &mut Value) {
    let Some(resources) = object_mut(container, "resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    if limits.is_empty() {
        return;
    }
    let limits = limits.clone();
    if let Some(Value::Object(requests)) = ensure_object(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

fn default_host_ports(container: &mut Value) {
    for port in list_mut(container, "ports") {
        if let Some(number) = int(port, "containerPort") {
            default_nonzero(port, "hostPort", number);
        }
    }
}

/// Resources are kept to thousandths; finer ones round up.
fn round_up(holder: &mut Value, field: &str) {
    let Some(Value::Object(quantities)) = holder.get_mut(field) else { return };
    for value in quantities.values_mut() {
        if let Some(quantity) = Quantity::read(value).filter(|q| !q.is_milli()) {
            *value = quantity.round_up_to_milli().to_string().into();
        }
    }
}

fn round_up_resources(holder: &mut Value) {
    if let Some(resources) = object_mut(holder, "resources") {
        round_up(resources, "limits");
        round_up(resources, "requests");
    }
}
