//! A set's pods and their claims: their names, and what they are made with.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ObjectMeta;
use mainstay::diff::APPLIED;
use serde_json::{Value, json};

use crate::controllers::pods::pod_from;

/// On pods: their own name, so that a Service can select one.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// On pods: their ordinal.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// On pods: the name of the revision that they are made from.
pub(super) const REVISION: &str = "controller-revision-hash";

/// The name of a set's pod.
pub(super) fn pod_name(set: &str, ordinal: i32) -> String {
    format!("{set}-{ordinal}")
}

/// The ordinal of a pod that has a name of this set's.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: i32 = digits.parse().ok()?;
    (ordinal >= 0 && pod_name(set, ordinal) == pod).then_some(ordinal)
}

/// The name of the revision that a pod is made from.
pub(super) fn revision(pod: &Pod) -> &str {
    label(pod, REVISION)
}

/// Whether its labels say which pod it is.
pub(super) fn is_labelled(pod: &Pod) -> bool {
    pod.metadata.name.as_deref() == Some(label(pod, POD_NAME))
}

fn label<'a>(pod: &'a Pod, name: &str) -> &'a str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(name)).map_or("", String::as_str)
}

fn identity(name: &str, ordinal: i32) -> BTreeMap<String, String> {
    let pairs = [(POD_NAME, name.to_owned()), (POD_INDEX, ordinal.to_string())];
    pairs.map(|(label, value)| (label.to_owned(), value)).into()
}

/// A new pod.
pub(super) fn new_pod(
    set: &str,
    spec: &StatefulSetSpec,
    template: &PodTemplateSpec,
    revision: &str,
    ordinal: i32,
) -> Pod {
    let name = pod_name(set, ordinal);
    let mut pod = pod_from(template, &name);
    pod.metadata.generate_name = Some(format!("{set}-"));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.extend(identity(&name, ordinal));
    labels.insert(REVISION.into(), revision.into());
    let pod_spec = pod.spec.get_or_insert_default();
    mount_claims(set, spec, ordinal, pod_spec);
    pod_spec.hostname = Some(name);
    pod_spec.subdomain.clone_from(&spec.service_name);
    pod
}

/// Claims take the place of the template's volumes of the same names.
fn mount_claims(set: &str, spec: &StatefulSetSpec, ordinal: i32, pod: &mut PodSpec) {
    let claims = spec.volume_claim_templates.iter().flatten().map(|template| {
        let name = template.metadata.name.clone().unwrap_or_default();
        let claim_name = claim_name(&name, set, ordinal);
        let source = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
        Volume { name, persistent_volume_claim: Some(source), ..Volume::default() }
    });
    let mut volumes: Vec<Volume> = claims.collect();
    let others = pod.volumes.take().unwrap_or_default();
    let is_claimed = |name: &str| volumes.iter().any(|volume| volume.name == name);
    let others: Vec<Volume> = others.into_iter().filter(|volume| !is_claimed(&volume.name)).collect();
    volumes.extend(others);
    pod.volumes = (!volumes.is_empty()).then_some(volumes);
}

fn claim_name(template: &str, set: &str, ordinal: i32) -> String {
    format!("{template}-{}", pod_name(set, ordinal))
}

/// The claims of a pod. Those that are to go with their set belong to it from the start.
pub(super) fn claims(
    set: &str,
    uid: &str,
    spec: &StatefulSetSpec,
    ordinal: i32,
) -> Vec<PersistentVolumeClaim> {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    let goes = policy.and_then(|policy| policy.when_deleted.as_deref()) == Some("Delete");
    let owner = || OwnerReference {
        api_version: "apps/v1".into(),
        kind: "StatefulSet".into(),
        name: set.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let templates = spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let given = &template.metadata;
            let mut labels = given.labels.clone().unwrap_or_default();
            labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
            let metadata = ObjectMeta {
                name: Some(claim_name(given.name.as_deref().unwrap_or_default(), set, ordinal)),
                labels: (!labels.is_empty()).then_some(labels),
                annotations: given.annotations.clone(),
                finalizers: given.finalizers.clone(),
                owner_references: goes.then(|| vec![owner()]),
                ..ObjectMeta::default()
            };
            PersistentVolumeClaim { metadata, spec: template.spec.clone(), status: None }
        })
        .collect()
}

/// A pod as it is, with the labels that say which one it is. All of it is named: what is not would be taken from it.
pub(super) fn labelled(pod: &Pod, ordinal: i32) -> Value {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let mut labels = pod.metadata.labels.clone().unwrap_or_default();
    labels.extend(identity(name, ordinal));
    let mut annotations = pod.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(APPLIED);
    let annotations = (!annotations.is_empty()).then_some(annotations);
    let generate_name = &pod.metadata.generate_name;
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "generateName": generate_name, "labels": labels, "annotations": annotations},
        "spec": pod.spec,
    })
}
