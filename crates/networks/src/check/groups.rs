//! Groups of peers.

use std::collections::BTreeMap;

use mainstay::diff::quantity_in_billionths;

use super::{Found, MOST_GROUPS, names};
use crate::config::{NetworkConfig, PeerGroupConfig, Storage};

/// How long a group's name may be: a `StatefulSet` puts eleven characters behind it in a label of its pods.
const NAME_LENGTH: usize = names::LABEL_LENGTH - 11;
/// The most that a group weighs.
const MOST_WEIGHT: i32 = 1_000_000;

pub(super) fn check(config: &NetworkConfig, found: &mut Found) {
    let count = config.peers.len();
    if count == 0 || count > MOST_GROUPS {
        found.add("spec.peers", format!("must have from 1 to {MOST_GROUPS} groups, not {count}"));
    }
    if count > 0 && config.peers.iter().all(|group| group.weight == 0) {
        found.add("spec.peers", "must have a group whose weight is more than 0");
    }
    let mut names = BTreeMap::new();
    for (place, group) in config.peers.iter().enumerate() {
        let path = format!("spec.peers[{place}]");
        let name = config.group_name(place);
        found.add_some(format!("{path}.name"), names::service(&name, NAME_LENGTH));
        if let Some(first) = names.insert(name.clone(), place) {
            found.add(
                format!("{path}.name"),
                format!("must not be {name:?}, which spec.peers[{first}] is called"),
            );
        }
        check_group(group, &path, found);
        check_ports(group, &path, found);
        check_init(group, &path, found);
        let monitor = &config.monitoring.pod_monitor;
        let mut ports = ["rpc", "p2p"].into_iter().chain(group.ports.iter().map(|port| port.name.as_str()));
        if monitor.enabled && !ports.any(|port| port == monitor.port) {
            let message = format!(
                "must be the name of a port of every group; {name} has none called {:?}",
                monitor.port
            );
            found.add("spec.monitoring.podMonitor.port", message);
        }
    }
}

fn check_group(group: &PeerGroupConfig, path: &str, found: &mut Found) {
    found.within(format!("{path}.weight"), group.weight, 0, MOST_WEIGHT);
    found.not_empty(format!("{path}.image"), &group.image);
    found.pull_policy(format!("{path}.imagePullPolicy"), &group.image_pull_policy);
    found.not_empty(format!("{path}.tag"), &group.tag);
    found.within(format!("{path}.rpc.timeoutMilliseconds"), group.rpc.timeout_milliseconds, 10, 60_000);
    if let Storage::Volume(storage) = &group.storage {
        let size = &storage.size.0;
        if quantity_in_billionths(size).is_none_or(|size| size <= 0) {
            found.add(
                format!("{path}.storage.size"),
                format!("must be a quantity above 0 like 10Gi, not {size:?}"),
            );
        }
        if !storage.path.starts_with('/') {
            found.add(
                format!("{path}.storage.path"),
                format!("must begin with '/', not as {:?} does", storage.path),
            );
        }
    }
}

fn check_ports(group: &PeerGroupConfig, path: &str, found: &mut Found) {
    let own = [("rpc.port", group.rpc.port), ("p2pPort", group.p2p_port)];
    let further =
        group.ports.iter().enumerate().map(|(place, port)| (format!("ports[{place}].port"), port.port));
    let all = own.map(|(field, port)| (field.to_owned(), port)).into_iter().chain(further);
    let mut numbers = BTreeMap::new();
    for (field, port) in all {
        found.within(format!("{path}.{field}"), port, 1, 65535);
        if let Some(first) = numbers.get(&port) {
            found.add(
                format!("{path}.{field}"),
                format!("must be another than {port}, which {path}.{first} is"),
            );
        } else {
            numbers.insert(port, field);
        }
    }
    let mut taken =
        BTreeMap::from([("rpc", "the RPC".to_owned()), ("p2p", "the port for other peers".to_owned())]);
    for (place, port) in group.ports.iter().enumerate() {
        let field = format!("{path}.ports[{place}].name");
        found.add_some(field.as_str(), names::port(&port.name));
        if let Some(first) = taken.get(port.name.as_str()) {
            found.add(field, format!("must be another than {:?}, which {first} is called", port.name));
        } else {
            taken.insert(&port.name, format!("{path}.ports[{place}]"));
        }
    }
}

fn check_init(group: &PeerGroupConfig, path: &str, found: &mut Found) {
    let mut taken = BTreeMap::new();
    for (place, step) in group.init.iter().enumerate() {
        let field = format!("{path}.init[{place}].name");
        found.add_some(field.as_str(), names::label(&step.name, names::LABEL_LENGTH));
        if let Some(first) = taken.insert(step.name.as_str(), place) {
            let message =
                format!("must be another than {:?}, which {path}.init[{first}] is called", step.name);
            found.add(field, message);
        }
    }
}
