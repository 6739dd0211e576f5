//! The `EndpointSlices` of a Service. Whatever pods come and go, an endpoint stays in the slice that it is in: nobody who
//! reads slices one after the other sees it disappear.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use kube::ResourceExt;
use kube::core::ObjectMeta;

use super::backend::{Backend, Port};
use super::{Place, labels};
use crate::controllers::pods::{free_names, is_going};

/// How many endpoints a slice has at most.
const ENDPOINTS_MAX: usize = 100;
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// All slices that a Service should have.
pub(super) fn plan_slices(
    service: &Service,
    backends: &[Backend],
    existing: &[EndpointSlice],
) -> Vec<EndpointSlice> {
    let prefix = format!("{}-", service.name_any());
    let mut taken: BTreeSet<String> = existing.iter().map(ResourceExt::name_any).collect();
    let mut slices = Vec::new();
    for family in families(service) {
        let drafts = plan_family(service, family, backends, existing);
        let named: BTreeSet<_> = drafts.iter().filter_map(|draft| draft.name.clone()).collect();
        // A slice that is no longer needed is made into one that is, which is one write instead of two.
        let mut spare = existing
            .iter()
            .filter(|slice| is_of(slice, family))
            .map(ResourceExt::name_any)
            .filter(|name| !named.contains(name));
        for draft in drafts {
            let name = draft.name.or_else(|| spare.next()).or_else(|| free_names(&prefix, &taken).next());
            let name = name.unwrap_or_default();
            taken.insert(name.clone());
            slices.push(slice(service, family, &name, &draft.ports, draft.endpoints));
        }
    }
    slices
}

/// A slice that may have no name yet.
struct Draft {
    name: Option<String>,
    ports: Vec<Port>,
    endpoints: Vec<Endpoint>,
}

fn plan_family(
    service: &Service,
    family: Family,
    backends: &[Backend],
    existing: &[EndpointSlice],
) -> Vec<Draft> {
    let publishes = publishes_unready(service);
    let mut groups: BTreeMap<&[Port], BTreeMap<&str, Endpoint>> = BTreeMap::new();
    for backend in backends {
        // A pod whose node is gone will go too, and cannot be told from one that answers no more.
        let is_lost = matches!(backend.place, Place::Lost { .. }) && !publishes;
        if let Some(endpoint) = endpoint(backend, family, publishes).filter(|_| !is_lost) {
            groups.entry(&backend.ports).or_default().insert(backend.uid(), endpoint);
        }
    }
    if groups.is_empty() {
        // Without pods there is one slice that says so.
        let first = existing.iter().find(|slice| is_of(slice, family)).map(ResourceExt::name_any);
        return vec![Draft { name: first, ports: Vec::new(), endpoints: Vec::new() }];
    }
    let mut drafts = Vec::new();
    for (ports, endpoints) in groups {
        let of_ports = |slice: &&EndpointSlice| is_of(slice, family) && ports_of(slice) == ports;
        let known: Vec<_> = existing.iter().filter(of_ports).map(contents).collect();
        for (name, uids) in allot(&known, &endpoints.keys().copied().collect(), ENDPOINTS_MAX) {
            let mut chosen: Vec<_> = uids.iter().filter_map(|uid| endpoints.get(uid).cloned()).collect();
            chosen.sort_by(|a, b| target(a).cmp(&target(b)));
            drafts.push(Draft { name, ports: ports.to_vec(), endpoints: chosen });
        }
    }
    drafts
}

/// Which endpoints each slice has. Those that are in one stay there; others go where the least room is left, and into new slices
/// when there is none anywhere. A slice that would be empty is none.
pub(super) fn allot<'a>(
    existing: &[(String, Vec<String>)],
    wanted: &BTreeSet<&'a str>,
    max: usize,
) -> Vec<(Option<String>, Vec<&'a str>)> {
    let mut left = wanted.clone();
    let mut slices = Vec::new();
    for (name, members) in existing {
        let mut stay = Vec::new();
        for member in members {
            if stay.len() < max
                && let Some(member) = left.take(member.as_str())
            {
                stay.push(member);
            }
        }
        if !stay.is_empty() {
            slices.push((Some(name.clone()), stay));
        }
    }
    for new in left {
        let with_room = slices.iter_mut().filter(|(_, members)| members.len() < max);
        match with_room.max_by_key(|(_, members)| members.len()) {
            Some((_, members)) => members.push(new),
            None => slices.push((None, vec![new])),
        }
    }
    slices
}

/// The name of a slice, and whose endpoints are in it.
fn contents(slice: &EndpointSlice) -> (String, Vec<String>) {
    let uids =
        slice.endpoints.iter().flatten().filter_map(|endpoint| endpoint.target_ref.as_ref()?.uid.clone());
    (slice.name_any(), uids.collect())
}

fn target(endpoint: &Endpoint) -> Option<(&str, &str)> {
    let target = endpoint.target_ref.as_ref()?;
    Some((target.name.as_deref()?, target.uid.as_deref()?))
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    IPv4,
    IPv6,
}

impl Family {
    fn as_str(self) -> &'static str {
        match self {
            Family::IPv4 => "IPv4",
            Family::IPv6 => "IPv6",
        }
    }

    fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == (self == Family::IPv6)
    }
}

fn families(service: &Service) -> Vec<Family> {
    let given = service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()).unwrap_or_default();
    let is_six = |family: &String| if family == "IPv6" { Family::IPv6 } else { Family::IPv4 };
    if given.is_empty() { vec![Family::IPv4] } else { given.iter().map(is_six).collect() }
}

fn is_of(slice: &EndpointSlice, family: Family) -> bool {
    slice.address_type == family.as_str() && !is_going(slice)
}

fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

fn endpoint(backend: &Backend, family: Family, publishes_unready: bool) -> Option<Endpoint> {
    let addresses: Vec<_> =
        backend.addresses.iter().filter(|address| family.has(**address)).map(ToString::to_string).collect();
    if addresses.is_empty() {
        return None;
    }
    let ready = publishes_unready || backend.is_serving && !backend.is_terminating;
    Some(Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(backend.is_serving),
            terminating: Some(backend.is_terminating),
        }),
        hostname: backend.hostname.clone(),
        node_name: backend.place.node().map(str::to_owned),
        target_ref: Some(backend.reference.clone()),
        zone: backend.place.zone().map(str::to_owned),
        ..Endpoint::default()
    })
}

/// The ports of a slice as they were put in.
fn ports_of(slice: &EndpointSlice) -> Vec<Port> {
    let ports = slice.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_default(),
        number: port.port.unwrap_or_default(),
        app_protocol: port.app_protocol.clone(),
    });
    let mut ports: Vec<_> = ports.collect();
    ports.sort();
    ports
}

fn slice(
    service: &Service,
    family: Family,
    name: &str,
    ports: &[Port],
    endpoints: Vec<Endpoint>,
) -> EndpointSlice {
    let own = [(SERVICE_NAME, service.name_any()), (MANAGED_BY, MANAGER.to_owned())];
    let own = own.each_ref().map(|(name, value)| (*name, value.as_str()));
    let ports = ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.number),
        app_protocol: port.app_protocol.clone(),
    });
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            generate_name: Some(format!("{}-", service.name_any())),
            labels: Some(labels(service, &[SERVICE_NAME, MANAGED_BY], &own)),
            ..ObjectMeta::default()
        },
        address_type: family.as_str().to_owned(),
        endpoints: Some(endpoints),
        ports: Some(ports.collect()),
    }
}
