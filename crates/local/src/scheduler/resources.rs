//! What a pod asks for, and what a node has left.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mainstay::diff::quantity_in_billionths;

use super::placed::{Container, Needs, Placed};

/// How much of each resource, in billionths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Amounts(BTreeMap<String, i128>);

/// The resource that each pod needs one of.
pub(super) const PODS: &str = "pods";
const ONE: i128 = 1_000_000_000;

impl Amounts {
    fn read(quantities: Option<&BTreeMap<String, Quantity>>) -> Self {
        let quantities = quantities.into_iter().flatten();
        // What is not a quantity was never let in by the server.
        let read = quantities
            .filter_map(|(name, quantity)| Some((name.clone(), quantity_in_billionths(&quantity.0)?)));
        Self(read.collect())
    }

    pub(super) fn get(&self, resource: &str) -> i128 {
        self.0.get(resource).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, other: &Amounts) {
        for (name, amount) in &other.0 {
            let sum = self.get(name).saturating_add(*amount);
            self.0.insert(name.clone(), sum);
        }
    }

    /// The greater of both, for each resource.
    fn raise(&mut self, other: &Amounts) {
        for (name, amount) in &other.0 {
            let greater = self.get(name).max(*amount);
            self.0.insert(name.clone(), greater);
        }
    }

    /// By name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }
}

/// What a pod asks for, itself included: all that its containers ask for at once, or more if it needs more to start.
///
/// An init container runs beside the sidecars that were started before it. What is asked for the pod as a whole takes the place of what
/// its containers ask for; what it takes to run a pod at all is added in the end.
pub(super) fn requests(spec: &PodSpec) -> Amounts {
    of_needs(&Needs::from(spec))
}

fn of_needs(spec: &Needs) -> Amounts {
    let mut running = Amounts::default();
    for container in &spec.containers {
        running.add(&of_container(container));
    }
    let (mut sidecars, mut starting) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container);
        let mut at_once = sidecars.clone();
        at_once.add(&own);
        if container.restart_policy.as_deref() == Some("Always") {
            running.add(&own);
            sidecars = at_once.clone();
        }
        starting.raise(&at_once);
    }
    running.raise(&starting);
    let whole = Amounts::read(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
    for (name, amount) in whole.0 {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            running.0.insert(name, amount);
        }
    }
    running.add(&Amounts::read(spec.overhead.as_ref()));
    running.0.insert(PODS.to_owned(), ONE);
    running
}

fn of_container(container: &Container) -> Amounts {
    Amounts::read(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

/// What a node can give to pods.
pub(super) fn allocatable(node: &Node) -> Amounts {
    let status = node.status.as_ref();
    let given = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
    Amounts::read(given)
}

/// What the pods of a node ask for. Those that have ended ask for nothing; those that are going still do.
pub(super) fn used<'a>(node: &str, pods: impl IntoIterator<Item = &'a Placed>) -> Amounts {
    let mut used = Amounts::default();
    for pod in pods {
        if pod.node() == Some(node) && !pod.has_ended() {
            used.add(&of_needs(&pod.spec));
        }
    }
    used
}

/// What a pod asks for and a node does not have left, in the words of Kubernetes. A resource that is not asked for is not looked at.
pub(super) fn lacking(wanted: &Amounts, allocatable: &Amounts, used: &Amounts) -> Vec<String> {
    let is_lacking = |(name, amount): &(&str, i128)| {
        *amount > 0 && *amount > allocatable.get(name).saturating_sub(used.get(name))
    };
    let told = |(name, _): (&str, i128)| match name {
        PODS => "Too many pods".to_owned(),
        name => format!("Insufficient {name}"),
    };
    wanted.iter().filter(is_lacking).map(told).collect()
}
