//! A group of peers: a `StatefulSet`, and the headless Service that gives its pods their names.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};
use serde_json::{Value, json};

use super::{CONFIG_KEY, CONFIG_MAP, FILES, SECRET, config_hash, metadata, with_role};
use crate::config::{NetworkConfig, PeerGroupConfig, Storage};
use crate::kinds::labels;
use crate::share::split;

/// On pods: what they were to know when they started.
const CONFIG_HASH: &str = "mainstay.dev/network-config";
/// The container of a peer.
const CONTAINER: &str = "peer";
/// The volume of a peer, and the claim for it.
const DATA: &str = "data";
/// The volume with [`FILES`].
const FILES_VOLUME: &str = "network";

/// How many peers each group has.
pub fn replicas(config: &NetworkConfig) -> Vec<i32> {
    let weights: Vec<i32> = config.peers.iter().map(|group| group.weight).collect();
    split(config.replicas, &weights)
}

/// The labels of the pods of a group, and of what belongs to it.
fn group_labels(network: &str, group: &str) -> BTreeMap<String, String> {
    let mut all = with_role(network, labels::role::PEER);
    all.insert(labels::GROUP.to_owned(), group.to_owned());
    all
}

fn group_metadata(network: &str, group: &str) -> Value {
    let mut all = metadata(network, group);
    all["labels"] = json!(group_labels(network, group));
    all
}

/// The Service of a group: names for its pods, whether they are ready or not.
pub fn service(network: &str, config: &NetworkConfig, place: usize) -> Value {
    let name = config.group_name(place);
    let ports = config.peers.get(place).map(ports).unwrap_or_default();
    let port =
        |(port, number)| json!({"name": port, "port": number, "targetPort": number, "protocol": "TCP"});
    let ports: Vec<Value> = ports.into_iter().map(port).collect();
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": group_metadata(network, &name),
        "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": true,
            "selector": group_labels(network, &name), "ports": ports,
        },
    })
}

/// The peers of a group.
pub fn stateful_set(network: &str, config: &NetworkConfig, place: usize) -> Value {
    let name = config.group_name(place);
    let all = group_labels(network, &name);
    let group = config.peers.get(place).cloned().unwrap_or_default();
    let mut spec = json!({
        "replicas": replicas(config).get(place).copied().unwrap_or_default(),
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": all},
        "template": {
            "metadata": {"labels": all, "annotations": {CONFIG_HASH: config_hash(config)}},
            "spec": pod_spec(network, config, &group),
        },
    });
    if let Storage::Volume(storage) = &group.storage {
        let mut claim = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage.size}},
        });
        if !storage.class.is_empty() {
            claim["storageClassName"] = json!(storage.class);
        }
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": DATA}, "spec": claim}]);
        // A claim cannot be changed: with another size or class peers get new ones, and what is not used does not stay.
        spec["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    }
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": group_metadata(network, &name),
        "spec": spec,
    })
}

fn pod_spec(network: &str, config: &NetworkConfig, group: &PeerGroupConfig) -> Value {
    let given = environment(network, config, group);
    let mut mounts = vec![json!({"name": FILES_VOLUME, "mountPath": FILES, "readOnly": true})];
    if let Storage::Volume(storage) = &group.storage {
        mounts.push(json!({"name": DATA, "mountPath": storage.path}));
    }
    let ports: Vec<Value> = ports(group)
        .into_iter()
        .map(|(name, number)| json!({"name": name, "containerPort": number, "protocol": "TCP"}))
        .collect();
    let mut peer = json!({
        "name": CONTAINER, "image": group.image, "imagePullPolicy": group.image_pull_policy,
        "env": with_overrides(&given, &group.env), "ports": ports, "volumeMounts": mounts,
        "readinessProbe": {"tcpSocket": {"port": "rpc"}, "periodSeconds": 5},
    });
    if !group.command.is_empty() {
        peer["command"] = json!(group.command);
    }
    let arguments = group.arguments();
    if !arguments.is_empty() {
        peer["args"] = json!(arguments);
    }
    let resources = json!(group.resources);
    if resources != json!({}) {
        peer["resources"] = resources;
    }
    let mut spec = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "containers": [peer],
        "volumes": [{"name": FILES_VOLUME, "configMap": {"name": CONFIG_MAP}}],
    });
    let steps: Vec<Value> = group
        .init
        .iter()
        .map(|step| {
            let image = if step.image.is_empty() { &group.image } else { &step.image };
            let mut container = json!({
                "name": step.name, "image": image, "imagePullPolicy": group.image_pull_policy,
                "env": with_overrides(&given, &step.env), "volumeMounts": mounts,
            });
            if !step.command.is_empty() {
                container["command"] = json!(step.command);
            }
            if !step.args.is_empty() {
                container["args"] = json!(step.args);
            }
            container
        })
        .collect();
    if !steps.is_empty() {
        spec["initContainers"] = json!(steps);
    }
    if !config.node_selector_terms.is_empty() {
        let terms = json!({"nodeSelectorTerms": config.node_selector_terms});
        spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    }
    spec
}

/// The ports of a peer, by name.
fn ports(group: &PeerGroupConfig) -> Vec<(String, i32)> {
    let own = [("rpc".to_owned(), group.rpc.port), ("p2p".to_owned(), group.p2p_port)];
    own.into_iter().chain(group.ports.iter().map(|port| (port.name.clone(), port.port))).collect()
}

/// What peers learn about themselves and the network.
fn environment(network: &str, config: &NetworkConfig, group: &PeerGroupConfig) -> Vec<EnvVar> {
    let value =
        |name: &str, value: String| EnvVar { name: name.to_owned(), value: Some(value), ..EnvVar::default() };
    let field = |name: &str, path: &str| {
        let field_path = path.to_owned();
        let field_ref = Some(ObjectFieldSelector { field_path, api_version: Some("v1".into()) });
        from(name, EnvVarSource { field_ref, ..EnvVarSource::default() })
    };
    let (secret, key) = SECRET;
    let secret = SecretKeySelector { name: secret.to_owned(), key: key.to_owned(), optional: None };
    vec![
        value("NETWORK_NAME", network.to_owned()),
        value("NETWORK_TYPE", config.network_type.clone()),
        value("NETWORK_CONFIG", format!("{FILES}/{CONFIG_KEY}")),
        from("NETWORK_SECRET", EnvVarSource { secret_key_ref: Some(secret), ..EnvVarSource::default() }),
        field("POD_NAME", "metadata.name"),
        field("POD_IP", "status.podIP"),
        value("RPC_PORT", group.rpc.port.to_string()),
        value("P2P_PORT", group.p2p_port.to_string()),
    ]
}

fn from(name: &str, source: EnvVarSource) -> EnvVar {
    EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() }
}

/// What the user says goes before what the operator says, and can refer to it.
fn with_overrides(own: &[EnvVar], users: &[EnvVar]) -> Vec<EnvVar> {
    let overridden: BTreeSet<&str> = users.iter().map(|variable| variable.name.as_str()).collect();
    let kept = own.iter().filter(|variable| !overridden.contains(variable.name.as_str()));
    kept.chain(users).cloned().collect()
}
