//! The Endpoints of a Service: sets of addresses with the ports that all of them have.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service};
use kube::core::ObjectMeta;

use super::backend::{Backend, Port};
use super::labels;

/// How many addresses there are at most. Slices have all of them.
const ADDRESSES_MAX: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";

/// The Endpoints that a Service should have.
pub(super) fn plan_endpoints(service: &Service, backends: &[Backend]) -> Endpoints {
    let mut subsets = plan_subsets(service, backends);
    let annotations = truncate(&mut subsets, ADDRESSES_MAX)
        .then(|| BTreeMap::from([(OVER_CAPACITY.to_owned(), "truncated".to_owned())]));
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            labels: Some(labels(service, &[MANAGED_BY], &[(MANAGED_BY, MANAGER)])),
            annotations,
            ..ObjectMeta::default()
        },
        subsets: (!subsets.is_empty()).then_some(subsets),
    }
}

/// By address and pod: the address, and whether it is ready.
type Addresses = BTreeMap<(IpAddr, String), (EndpointAddress, bool)>;

/// Ports that the same addresses have, ready and not, are together.
fn plan_subsets(service: &Service, backends: &[Backend]) -> Vec<EndpointSubset> {
    let spec = service.spec.clone().unwrap_or_default();
    let publishes_unready = spec.publish_not_ready_addresses == Some(true);
    let has_ports = spec.ports.is_some_and(|ports| !ports.is_empty());
    let wants_six =
        spec.ip_families.as_deref().unwrap_or_default().first().is_some_and(|first| first == "IPv6");
    let mut by_port: BTreeMap<Option<&Port>, Addresses> = BTreeMap::new();
    for backend in backends.iter().filter(|backend| publishes_unready || !backend.is_terminating) {
        let Some(address) = backend.addresses.iter().find(|address| address.is_ipv6() == wants_six) else {
            continue;
        };
        let ready = publishes_unready || backend.is_serving;
        // A Service without an address of its own may have no ports either.
        let alone = (!has_ports).then_some(None);
        for port in backend.ports.iter().map(Some).chain(alone) {
            let key = (*address, backend.uid().to_owned());
            by_port.entry(port).or_default().insert(key, (endpoint_address(backend, *address), ready));
        }
    }
    let mut together: Vec<(Addresses, Vec<&Port>)> = Vec::new();
    for (port, addresses) in by_port {
        match together.iter_mut().find(|(known, _)| *known == addresses) {
            Some((_, ports)) => ports.extend(port),
            None => together.push((addresses, port.into_iter().collect())),
        }
    }
    together.into_iter().map(|(addresses, ports)| subset(addresses, &ports)).collect()
}

fn subset(addresses: Addresses, ports: &[&Port]) -> EndpointSubset {
    let (ready, unready): (Vec<_>, Vec<_>) = addresses.into_values().partition(|(_, ready)| *ready);
    let listed = |addresses: Vec<(EndpointAddress, bool)>| {
        let addresses: Vec<_> = addresses.into_iter().map(|(address, _)| address).collect();
        (!addresses.is_empty()).then_some(addresses)
    };
    let ports: Vec<_> = ports.iter().map(|port| endpoint_port(port)).collect();
    EndpointSubset {
        addresses: listed(ready),
        not_ready_addresses: listed(unready),
        ports: (!ports.is_empty()).then_some(ports),
    }
}

fn endpoint_address(backend: &Backend, address: IpAddr) -> EndpointAddress {
    EndpointAddress {
        hostname: backend.hostname.clone(),
        ip: address.to_string(),
        node_name: backend.place.node().map(str::to_owned),
        target_ref: Some(backend.reference.clone()),
    }
}

fn endpoint_port(port: &Port) -> EndpointPort {
    EndpointPort {
        app_protocol: port.app_protocol.clone(),
        name: (!port.name.is_empty()).then(|| port.name.clone()),
        port: port.number,
        protocol: Some(port.protocol.clone()),
    }
}

/// Leaves out what is too much, those that are not ready first. Tells whether something was.
pub(super) fn truncate(subsets: &mut [EndpointSubset], max: usize) -> bool {
    let mut room = max;
    let mut is_truncated = false;
    let mut shorten = |addresses: &mut Option<Vec<EndpointAddress>>| {
        let Some(listed) = addresses else { return };
        is_truncated |= listed.len() > room;
        listed.truncate(room);
        room -= listed.len();
        if listed.is_empty() {
            *addresses = None;
        }
    };
    for subset in &mut *subsets {
        shorten(&mut subset.addresses);
    }
    for subset in subsets {
        shorten(&mut subset.not_ready_addresses);
    }
    is_truncated
}
