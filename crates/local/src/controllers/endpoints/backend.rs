//! A pod behind a Service: its addresses, and what it resolves the Service's ports to.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

use super::Place;
use crate::controllers::pods::{has_ended, is_going, is_ready};

/// A pod that a Service leads to.
#[derive(Debug, Clone)]
pub(super) struct Backend {
    pub(super) reference: ObjectReference,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) ports: Vec<Port>,
    /// Its containers say that they are ready.
    pub(super) is_serving: bool,
    pub(super) is_terminating: bool,
    pub(super) hostname: Option<String>,
    pub(super) place: Place,
}

/// A port of the Service, as one pod has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: i32,
    pub(super) app_protocol: Option<String>,
}

impl Backend {
    /// `None` for a pod that nothing can be sent to.
    pub(super) fn new(service: &Service, pod: &Pod, place: Place) -> Option<Self> {
        let addresses = addresses(pod);
        if addresses.is_empty() || has_ended(pod) {
            return None;
        }
        let reference = ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
        let mut ports: Vec<_> = ports.iter().filter_map(|port| resolve(port, pod)).collect();
        ports.sort();
        Some(Self {
            reference,
            addresses,
            ports,
            is_serving: is_ready(pod),
            is_terminating: is_going(pod),
            hostname: hostname(service, pod),
            place,
        })
    }

    /// The pod's uid, by which it is told from others.
    pub(super) fn uid(&self) -> &str {
        self.reference.uid.as_deref().unwrap_or_default()
    }
}

fn addresses(pod: &Pod) -> Vec<IpAddr> {
    let Some(status) = &pod.status else { return Vec::new() };
    let several = status.pod_ips.iter().flatten().map(|address| address.ip.as_str());
    let mut addresses: Vec<_> = several.filter_map(|address| address.parse().ok()).collect();
    if addresses.is_empty() {
        addresses.extend(status.pod_ip.iter().filter_map(|address| address.parse::<IpAddr>().ok()));
    }
    addresses
}

/// The name under which a pod is found below a Service's.
fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.clone().filter(|name| !name.is_empty())?;
    (spec.subdomain.as_deref() == Some(service.name_any().as_str())).then_some(hostname)
}

/// A port that names another is looked up among those of the pod's containers; a pod that lacks it does not have the port.
fn resolve(port: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let number = match &port.target_port {
        None => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => containers(pod).find_map(|container| {
            let mut ports = container.ports.iter().flatten();
            let is_meant = |protocol_of: Option<&str>| protocol_of.unwrap_or("TCP") == protocol;
            let found =
                ports.find(|own| own.name.as_ref() == Some(name) && is_meant(own.protocol.as_deref()));
            found.map(|port| port.container_port)
        })?,
    };
    Some(Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: protocol.to_owned(),
        number,
        app_protocol: port.app_protocol.clone(),
    })
}

/// The containers that run as long as the pod does.
fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let starting = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    containers.chain(starting.filter(|container| container.restart_policy.as_deref() == Some("Always")))
}
