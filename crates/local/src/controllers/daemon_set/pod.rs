//! A set's pods: which node each is for, and what they are made with.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec,
    Toleration,
};

use crate::controllers::pods::pod_from;
use crate::fit::{evicting_taint, fits_selector, untolerated_taint};

/// On pods and revisions: the hash of the template.
pub(super) const HASH: &str = "controller-revision-hash";
/// On pods: how many templates the set had had before theirs.
const GENERATION: &str = "pod-template-generation";
/// On sets: the same of the present one. The API server counts.
const SET_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The field that a pod names its node by before it is bound.
const NODE_NAME: &str = "metadata.name";

/// Which template pods are to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edition {
    pub(super) hash: String,
    /// None: the set does not say.
    pub(super) generation: Option<String>,
}

impl Edition {
    /// The present one of a set with these annotations.
    pub(super) fn new(hash: &str, annotations: Option<&BTreeMap<String, String>>) -> Self {
        let generation = annotations.and_then(|annotations| annotations.get(SET_GENERATION));
        let generation = generation.filter(|number| number.parse::<i64>().is_ok());
        Self { hash: hash.to_owned(), generation: generation.cloned() }
    }

    /// Whether a pod is of it.
    pub(super) fn includes(&self, pod: &Pod) -> bool {
        let label = |name: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(name));
        label(HASH) == Some(&self.hash)
            || self.generation.is_some() && label(GENERATION) == self.generation.as_ref()
    }
}

/// Whether a set's pod belongs on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// One shall run there.
    Wanted,
    /// One that runs there may stay.
    Tolerated,
    /// None may be there.
    Unwanted,
}

/// Whether pods of this template belong on a node.
pub(super) fn place(template: &PodTemplateSpec, node: &Node) -> Place {
    let mut spec = template.spec.clone().unwrap_or_default();
    tolerate(&mut spec);
    let is_elsewhere = spec.node_name.is_some() && spec.node_name != node.metadata.name;
    if is_elsewhere || !fits_selector(&spec, node) {
        return Place::Unwanted;
    }
    let tolerations = spec.tolerations.unwrap_or_default();
    match (untolerated_taint(&tolerations, node), evicting_taint(&tolerations, node)) {
        (None, _) => Place::Wanted,
        (Some(_), None) => Place::Tolerated,
        (Some(_), Some(_)) => Place::Unwanted,
    }
}

/// The node that a pod is bound to, or else made for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(bound) = spec.node_name.as_deref() {
        return Some(bound);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let mut fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let named = fields.find(|field| field.key == NODE_NAME && field.operator == "In")?;
    match named.values.as_deref() {
        Some([name]) => Some(name),
        _ => None,
    }
}

/// A new pod for a node.
pub(super) fn new_pod(
    set: &str,
    template: &PodTemplateSpec,
    edition: &Edition,
    name: &str,
    node: &str,
) -> Pod {
    let mut pod = pod_from(template, name);
    pod.metadata.generate_name = Some(format!("{set}-"));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(HASH.into(), edition.hash.clone());
    if let Some(generation) = &edition.generation {
        labels.insert(GENERATION.into(), generation.clone());
    }
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    aim(spec.affinity.get_or_insert_default(), node);
    pod
}

/// Whatever nodes the template asks for, this is one of them.
fn aim(affinity: &mut Affinity, node: &str) {
    let name = NodeSelectorRequirement {
        key: NODE_NAME.into(),
        operator: "In".into(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![name]), match_expressions: None };
    let required = NodeSelector { node_selector_terms: vec![term] };
    affinity.node_affinity.get_or_insert_default().required_during_scheduling_ignored_during_execution =
        Some(required);
}

/// Daemons stay on nodes that are in trouble, and come to nodes that take nobody else.
fn tolerate(spec: &mut PodSpec) {
    let network = spec.host_network == Some(true);
    let always = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    let on_the_network = network.then_some(("network-unavailable", "NoSchedule"));
    let tolerations = spec.tolerations.get_or_insert_default();
    for (trouble, effect) in always.into_iter().chain(on_the_network) {
        let toleration = Toleration {
            key: Some(format!("node.kubernetes.io/{trouble}")),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            value: None,
            toleration_seconds: None,
        };
        // One that is given for a time only becomes one without an end.
        let given = tolerations
            .iter_mut()
            .find(|given| Toleration { toleration_seconds: None, ..Toleration::clone(given) } == toleration);
        match given {
            Some(given) => *given = toleration,
            None => tolerations.push(toleration),
        }
    }
}
