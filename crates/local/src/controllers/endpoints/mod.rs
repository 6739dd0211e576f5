//! What is behind a Service: `EndpointSlices`, and the older Endpoints.
//!
//! ```text
//! Service ─▶ its pods ─▶ backends ─▶ slices    one set for each set of ports that pods resolve the Service's to
//!                                └─▶ subsets   the same, turned round: ports that the same addresses have
//! ```
//!
//! A Service without a selector is somebody else's to fill: what it has is left alone, also what was made here before its selector
//! was taken away. Pods without an address, and those that have ended, are behind nothing. Pods that are going are in the slices as
//! `terminating`, and in Endpoints only if the Service publishes what is not ready.

mod backend;
mod slices;
mod subsets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};
use serde_json::json;

use super::pods::selector_text;
use backend::Backend;

/// The label of what belongs to a Service without an address of its own.
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Where nodes say in which zone they are.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The controller of Services.
pub(super) fn controller() -> Controller {
    // The Endpoints of a Service's name are the Service's, whoever made them: nobody can have them for something else. Every object
    // lacks this label.
    let endpoints = ChildKind::of::<Endpoints>().adopt(|_| "!mainstay.dev/not-the-services".to_owned());
    Controller::of::<Service>()
        .owns::<EndpointSlice>()
        .child(endpoints)
        .reads::<Pod>()
        .reads::<Node>()
        .sync(sync)
}

fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let service: Service = request.parent()?;
    let Some(selector) = selector(&service) else { return keep_all(request) };
    let pods: Vec<Pod> = request.select(&selector)?;
    let nodes = nodes(request, &pods)?;
    let backends: Vec<_> =
        pods.iter().filter_map(|pod| Backend::new(&service, pod, node_of(pod, &nodes))).collect();
    let existing = request.children::<EndpointSlice>().iter().collect::<Result<Vec<_>, _>>()?;
    let mut response = SyncResponse::new();
    for slice in slices::plan_slices(&service, &backends, &existing) {
        response.add_child(slice)?;
    }
    response.add_child(subsets::plan_endpoints(&service, &backends))?;
    Ok(response)
}

/// The selector of the pods behind a Service, if it has one.
fn selector(service: &Service) -> Option<String> {
    let spec = service.spec.as_ref()?;
    let labels = spec.selector.clone().filter(|labels| !labels.is_empty())?;
    let is_elsewhere = spec.type_.as_deref() == Some("ExternalName");
    let selector = LabelSelector { match_labels: Some(labels), match_expressions: None };
    (!is_elsewhere).then(|| selector_text(&selector))
}

fn keep_all(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let mut response = SyncResponse::new();
    for child in request.all_children().iter() {
        let kind = child.kind();
        response.add_child(json!({
            "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": child.name()},
        }))?;
    }
    Ok(response)
}

/// The nodes of pods, by name; `None` for those that there are not.
type Nodes = BTreeMap<String, Option<Node>>;

fn nodes(request: &SyncRequest, pods: &[Pod]) -> Result<Nodes, Error> {
    let mut nodes = Nodes::new();
    for name in pods.iter().filter_map(node_name) {
        if !nodes.contains_key(name) {
            nodes.insert(name.to_owned(), request.get::<Node>(name)?);
        }
    }
    Ok(nodes)
}

/// Where a pod runs, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// It has not been told where.
    Nowhere,
    /// On a node that is not there.
    Lost { node: String },
    /// On a node, in a zone if the node says so.
    On { node: String, zone: Option<String> },
}

impl Place {
    fn node(&self) -> Option<&str> {
        match self {
            Place::Nowhere => None,
            Place::Lost { node } | Place::On { node, .. } => Some(node),
        }
    }

    fn zone(&self) -> Option<&str> {
        match self {
            Place::On { zone, .. } => zone.as_deref(),
            Place::Nowhere | Place::Lost { .. } => None,
        }
    }
}

fn node_of(pod: &Pod, nodes: &Nodes) -> Place {
    let Some(name) = node_name(pod) else { return Place::Nowhere };
    match nodes.get(name) {
        Some(Some(node)) => {
            let labels = node.metadata.labels.as_ref();
            let zone = labels.and_then(|labels| labels.get(ZONE)).filter(|zone| !zone.is_empty());
            Place::On { node: name.to_owned(), zone: zone.cloned() }
        }
        _ => Place::Lost { node: name.to_owned() },
    }
}

fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether a Service has no address of its own.
fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(spec.cluster_ip.as_deref(), None | Some("" | "None"))
}

/// The labels of what is made for a Service: its own, with these instead.
fn labels(service: &Service, reserved: &[&str], own: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.retain(|name, _| name != HEADLESS && !reserved.contains(&name.as_str()));
    if service.spec.as_ref().is_some_and(is_headless) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.extend(own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    labels
}
