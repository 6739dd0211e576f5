//! What the admission plugins that are on by default do to pods: service account, priority, runtime
//! class, tolerations, topology labels.

use super::super::Env;
use super::super::json::{ensure_object, inside, int, list, list_mut, object_mut, put, set, text};
use super::super::names::generate::generate_name;
use super::defaults::mirror_service_account;
use crate::field::go_quote;
use crate::status::{ApiError, Subject};
use serde_json::{Value, json};

/// The objects around a pod that admission looks at.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The `ServiceAccount` of this name in the pod's namespace.
    pub service_account: &'a dyn Fn(&str) -> Option<Value>,
    /// The `PriorityClass` of this name.
    pub priority_class: &'a dyn Fn(&str) -> Option<Value>,
    /// The `PriorityClass` marked as global default; the lowest if there are several.
    pub default_priority_class: &'a dyn Fn() -> Option<Value>,
    /// The `Node` of this name.
    pub node: &'a dyn Fn(&str) -> Option<Value>,
}

const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";
const TOKEN_MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and the seven seconds by which real servers tell such tokens apart.
const TOKEN_EXPIRATION_SECONDS: i64 = 3607;
/// Pods of the node itself, which only mirror what a kubelet runs.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Admits a new pod of this namespace.
pub(crate) fn admit_pod(
    pod: &mut Value,
    namespace: &str,
    env: &Env<'_>,
    around: &Surroundings<'_>,
) -> Result<(), ApiError> {
    let subject_name = subject_name(pod);
    let refuse = |why: &str| ApiError::forbidden(&Subject { group: "", kind: "pods" }, &subject_name, why);
    admit_service_account(pod, namespace, env, around, &refuse)?;
    admit_priority(pod, around, &refuse)?;
    check_runtime_class(pod, &refuse)?;
    admit_tolerations(pod);
    admit_topology(pod, around);
    Ok(())
}

/// Refuses a pod of a `RuntimeClass`: the kind is not served, so there is none of any name.
fn check_runtime_class(pod: &Value, refuse: &dyn Fn(&str) -> ApiError) -> Result<(), ApiError> {
    let Some(spec) = pod.get("spec") else { return Ok(()) };
    let class = text(spec, "runtimeClassName");
    if !class.is_empty() {
        return Err(refuse(&format!("pod rejected: RuntimeClass {} not found", go_quote(class))));
    }
    if set(spec, "overhead").is_some() {
        return Err(refuse(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ));
    }
    Ok(())
}

/// Admits an update of a pod: what admission once filled in stays when a client leaves it out.
pub(crate) fn admit_pod_update(new: &mut Value, old: &Value, around: &Surroundings<'_>) {
    if let (Some(spec), Some(before)) = (object_mut(new, "spec"), old.get("spec")) {
        for field in ["priority", "preemptionPolicy"] {
            if let (None, Some(value)) = (set(spec, field), set(before, field)) {
                put(spec, field, value.clone());
            }
        }
    }
    admit_tolerations(new);
    admit_topology(new, around);
}

/// Admits a binding: the node's topology labels go along.
pub(crate) fn admit_binding(binding: &mut Value, around: &Surroundings<'_>) {
    let node = match binding.get("target") {
        Some(target) if text(target, "kind") == "Node" => text(target, "name").to_owned(),
        _ => return,
    };
    copy_topology_labels(binding, &node, around);
}

fn subject_name(pod: &Value) -> String {
    let meta = pod.get("metadata").unwrap_or(&Value::Null);
    match (text(meta, "name"), text(meta, "generateName")) {
        ("", "") => "Unknown".to_owned(),
        ("", prefix) => prefix.to_owned(),
        (name, _) => name.to_owned(),
    }
}

fn admit_service_account(
    pod: &mut Value,
    namespace: &str,
    env: &Env<'_>,
    around: &Surroundings<'_>,
    refuse: &dyn Fn(&str) -> ApiError,
) -> Result<(), ApiError> {
    let mirror = inside(pod, "/metadata/annotations").is_some_and(|a| a.get(MIRROR_ANNOTATION).is_some());
    let Some(spec) = ensure_object(pod, "spec") else { return Ok(()) };
    if mirror {
        return match text(spec, "serviceAccountName") {
            "" => Ok(()),
            _ => Err(refuse("a mirror pod may not reference service accounts")),
        };
    }
    mirror_service_account(spec);
    if text(spec, "serviceAccountName").is_empty() {
        put(spec, "serviceAccountName", "default");
        mirror_service_account(spec);
    }
    let name = text(spec, "serviceAccountName");
    let Some(account) = (around.service_account)(name) else {
        let why =
            format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        return Err(refuse(&why));
    };
    let mounts = [&*spec, &account]
        .iter()
        .find_map(|o| o.get("automountServiceAccountToken").and_then(Value::as_bool))
        .unwrap_or(true);
    if mounts {
        mount_token(spec, env);
    }
    if list(spec, "imagePullSecrets").is_empty() && !list(&account, "imagePullSecrets").is_empty() {
        let secrets: Vec<Value> =
            list(&account, "imagePullSecrets").iter().map(|s| json!({"name": text(s, "name")})).collect();
        put(spec, "imagePullSecrets", secrets);
    }
    Ok(())
}

/// Mounts a projected volume with token, certificate and namespace into every container that mounts
/// nothing at its place.
fn mount_token(spec: &mut Value, env: &Env<'_>) {
    let present =
        list(spec, "volumes").iter().map(|v| text(v, "name")).find(|n| n.starts_with(TOKEN_VOLUME_PREFIX));
    let has_volume = present.is_some();
    let volume = present.map_or_else(|| generate_name(TOKEN_VOLUME_PREFIX, || random(env)), str::to_owned);
    let mut needed = false;
    for containers in ["initContainers", "containers"] {
        for container in list_mut(spec, containers) {
            if list(container, "volumeMounts").iter().any(|m| text(m, "mountPath") == TOKEN_MOUNT_PATH) {
                continue;
            }
            needed = true;
            let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_MOUNT_PATH});
            push(container, "volumeMounts", mount);
        }
    }
    if needed && !has_volume {
        push(spec, "volumes", token_volume(&volume));
    }
}

fn token_volume(name: &str) -> Value {
    let namespace =
        json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_EXPIRATION_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ],
        },
    })
}

/// Random bits from the one source of randomness there is: the hexadecimal digits of a fresh uid.
fn random(env: &Env<'_>) -> u64 {
    // FNV-1a mixes all digits into all bits.
    (env.uid)()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn admit_priority(
    pod: &mut Value,
    around: &Surroundings<'_>,
    refuse: &dyn Fn(&str) -> ApiError,
) -> Result<(), ApiError> {
    let Some(spec) = ensure_object(pod, "spec") else { return Ok(()) };
    let given = text(spec, "priorityClassName");
    let class = if given.is_empty() {
        (around.default_priority_class)()
    } else {
        match (around.priority_class)(given).or_else(|| system_class(given)) {
            None => return Err(refuse(&format!("no PriorityClass with name {given} was found"))),
            class => class,
        }
    };
    let (priority, policy) = match &class {
        None => (0, Some("PreemptLowerPriority")),
        Some(class) => {
            (int(class, "value").unwrap_or(0), class.get("preemptionPolicy").and_then(Value::as_str))
        }
    };
    if let Some(wrong) = int(spec, "priority").filter(|p| *p != priority) {
        return Err(refuse(&format!(
            "the integer value of priority ({wrong}) must not be provided in pod spec; priority admission \
             controller computed {priority} from the given PriorityClass name"
        )));
    }
    put(spec, "priority", priority);
    if let Some(policy) = policy {
        let given = text(spec, "preemptionPolicy");
        if !given.is_empty() && given != policy {
            return Err(refuse(&format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
                 admission controller computed {policy} from the given PriorityClass name"
            )));
        }
        put(spec, "preemptionPolicy", policy);
    }
    if let Some(name) = class.as_ref().and_then(|c| c.get("metadata")).map(|m| text(m, "name"))
        && !name.is_empty()
    {
        put(spec, "priorityClassName", name);
    }
    Ok(())
}

/// The two classes every cluster has, should they not be stored as objects.
fn system_class(name: &str) -> Option<Value> {
    let value = match name {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => return None,
    };
    Some(json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "PreemptLowerPriority"}))
}

/// Pods stay five minutes on a node that fails, unless they say otherwise.
fn admit_tolerations(pod: &mut Value) {
    let Some(spec) = ensure_object(pod, "spec") else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list(spec, "tolerations").iter().any(|t| {
            matches!(text(t, "key"), k if k == key || k.is_empty())
                && matches!(text(t, "effect"), "NoExecute" | "")
        });
        if !tolerated {
            let toleration =
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            push(spec, "tolerations", toleration);
        }
    }
}

fn admit_topology(pod: &mut Value, around: &Surroundings<'_>) {
    let node = pod.get("spec").map(|s| text(s, "nodeName").to_owned()).unwrap_or_default();
    if !node.is_empty() {
        copy_topology_labels(pod, &node, around);
    }
}

fn copy_topology_labels(object: &mut Value, node: &str, around: &Surroundings<'_>) {
    let Some(node) = (around.node)(node) else { return };
    for key in TOPOLOGY_LABELS {
        let Some(value) = inside(&node, "/metadata/labels").and_then(|l| l.get(key)) else { continue };
        if let Some(labels) = ensure_object(object, "metadata").and_then(|m| ensure_object(m, "labels")) {
            put(labels, key, value.clone());
        }
    }
}

fn push(holder: &mut Value, field: &str, item: Value) {
    let Some(map) = holder.as_object_mut() else { return };
    match map.entry(field).or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(mut spec: Value, account: &Value, class: Option<&Value>) -> Result<Value, String> {
        spec["containers"] = json!([{"name": "c"}]);
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let around = Surroundings {
            service_account: &|name| (name == "default").then(|| account.clone()),
            priority_class: &|_| class.cloned(),
            default_priority_class: &|| class.cloned(),
            node: &|_| {
                Some(json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "z", "other": "o"}}}))
            },
        };
        let env = Env { now: jiff::Timestamp::UNIX_EPOCH, uid: &|| "uid".to_owned(), dry_run: false };
        admit_pod(&mut pod, "ns", &env, &around).map_err(|error| error.message)?;
        Ok(pod)
    }

    #[test]
    fn pull_secrets_come_from_the_service_account() {
        let account = json!({"imagePullSecrets": [{"name": "s"}], "automountServiceAccountToken": false});
        let pod = admit(json!({}), &account, None).unwrap();
        assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "s"}]));
        assert_eq!(pod["spec"].get("volumes"), None);
        let pod = admit(json!({"automountServiceAccountToken": true}), &account, None).unwrap();
        assert_eq!(pod["spec"]["volumes"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn priority_comes_from_the_class() {
        let class = json!({"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"});
        let pod = admit(json!({}), &json!({}), Some(&class)).unwrap();
        assert_eq!(pod["spec"]["priority"], 7);
        assert_eq!(pod["spec"]["priorityClassName"], "high");
        assert_eq!(pod["spec"]["preemptionPolicy"], "Never");
        let refused = admit(json!({"priority": 3}), &json!({}), Some(&class)).unwrap_err();
        assert!(refused.starts_with("pods \"p\" is forbidden: the integer value of priority (3) must not"));
        let refused = admit(json!({"priorityClassName": "none"}), &json!({}), None).unwrap_err();
        assert_eq!(refused, "pods \"p\" is forbidden: no PriorityClass with name none was found");
    }

    #[test]
    fn a_pod_with_a_node_is_labelled_with_its_zone() {
        let pod = admit(json!({"nodeName": "n"}), &json!({}), None).unwrap();
        assert_eq!(pod["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z"}));
    }
}
