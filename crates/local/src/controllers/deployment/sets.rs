//! Which `ReplicaSet` is which: the one with the Deployment's present template, those with former ones, and those that are forgotten.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use mainstay::diff::content_hash;
use serde_json::json;

use super::annotations::{self, Annotations};
use super::sizes::{Set, Sets};
use crate::controllers::pods;

/// On a set, its selector, its template and so its pods: which template they are from.
pub(super) const HASH: &str = "pod-template-hash";
const NAME_BYTES_MAX: usize = 253;

/// A Deployment's sets, told apart.
#[derive(Debug)]
pub(super) struct Revisions {
    /// The one with the present template.
    pub(super) new: Option<ReplicaSet>,
    /// The others, by name.
    pub(super) old: Vec<ReplicaSet>,
}

impl Revisions {
    /// The new set is the oldest that has the template. If none has, it is the one that would be made for it, by its name: somebody
    /// has changed it.
    pub(super) fn of(mut all: Vec<ReplicaSet>, template: &PodTemplateSpec, name: &str) -> Self {
        let same = all.iter().enumerate().filter(|(_, set)| has_template(set, template));
        let oldest = same.min_by_key(|(_, set)| (created(set), set.name_any())).map(|(place, _)| place);
        let place = oldest.or_else(|| all.iter().position(|set| set.name_any() == name));
        let new = place.map(|place| all.remove(place));
        Self { new, old: all }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// As sizes depend on them.
    pub(super) fn sets(&self) -> Sets {
        Sets { new: self.new.as_ref().map(set), old: self.old.iter().map(set).collect() }
    }

    /// The highest revision of the old sets.
    pub(super) fn highest_old(&self) -> i64 {
        self.old.iter().map(annotations::revision).max().unwrap_or(0)
    }

    /// Old sets beyond the limit, those of the lowest revisions. One that has pods, or may have, is never among them.
    pub(super) fn forgotten(&self, limit: Option<i32>) -> Vec<String> {
        let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else { return Vec::new() };
        let mut kept: Vec<&ReplicaSet> = self.old.iter().filter(|set| !pods::is_going(*set)).collect();
        kept.sort_by_key(|set| (annotations::revision(set), created(set), set.name_any()));
        let surplus = kept.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        kept.into_iter().take(surplus).filter(|set| is_idle(set)).map(ReplicaSet::name_any).collect()
    }
}

fn created(set: &ReplicaSet) -> Option<jiff::Timestamp> {
    set.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn set(set: &ReplicaSet) -> Set {
    let status = set.status.as_ref();
    Set {
        name: set.name_any(),
        created: created(set),
        size: size(set),
        actual: status.map_or(0, |status| status.replicas),
        available: status.and_then(|status| status.available_replicas).unwrap_or(0),
        desired: annotations::number(set, annotations::DESIRED),
        most: annotations::number(set, annotations::MOST),
    }
}

/// `spec.replicas`.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Whether it neither has nor wants pods, and says so of what it is now.
fn is_idle(set: &ReplicaSet) -> bool {
    let status = set.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation).unwrap_or(0);
    size(set) == 0
        && status.is_none_or(|status| status.replicas == 0)
        && set.metadata.generation.unwrap_or(0) <= observed
}

/// Whether a set has this template, apart from the label that tells templates apart.
fn has_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    own.is_some_and(|own| bare(own) == bare(template))
}

fn bare(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(labels) = template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut()) {
        labels.remove(HASH);
    }
    template
}

/// By what a template is told from others. Names that turned out to be somebody else's are not tried again.
pub(super) fn hash(template: &PodTemplateSpec, collisions: i32) -> String {
    match collisions {
        0 => pods::template_hash(template),
        _ => content_hash(&json!([template, collisions]))[..10].to_owned(),
    }
}

/// The name of a Deployment's set.
pub(super) fn name(deployment: &str, hash: &str) -> String {
    let room = NAME_BYTES_MAX - 1 - hash.len();
    format!("{}-{hash}", &deployment[..deployment.floor_char_boundary(room)])
}

/// A set for the present template.
pub(super) fn made(
    spec: &DeploymentSpec,
    name: &str,
    hash: &str,
    size: i32,
    annotations: Annotations,
) -> ReplicaSet {
    let template = labelled(&spec.template, hash);
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH.to_owned(), hash.to_owned());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(size),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}

fn labelled(template: &PodTemplateSpec, hash: &str) -> PodTemplateSpec {
    let mut template = template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH.to_owned(), hash.to_owned());
    template
}

/// A set that is there, with all that it was made with: a field that is not named would be taken from it.
pub(super) fn kept(set: &ReplicaSet, size: i32, annotations: Annotations) -> ReplicaSet {
    let mut spec = set.spec.clone().unwrap_or_default();
    spec.replicas = Some(size);
    ReplicaSet {
        metadata: ObjectMeta {
            name: set.metadata.name.clone(),
            labels: set.metadata.labels.clone(),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// The new set that is there, with what of the Deployment's spec it follows. If it is the one that was made for the template, it
/// has that template again.
pub(super) fn renewed(
    set: &ReplicaSet,
    spec: &DeploymentSpec,
    name: &str,
    size: i32,
    annotations: Annotations,
) -> ReplicaSet {
    let mut set = kept(set, size, annotations);
    let hash = set.labels().get(HASH).cloned();
    if let Some(own) = &mut set.spec {
        own.min_ready_seconds = spec.min_ready_seconds;
        if let Some(hash) = hash.filter(|_| set.metadata.name.as_deref() == Some(name)) {
            own.template = Some(labelled(&spec.template, &hash));
        }
    }
    set
}

/// What stands in the way of a new set that would have the name of another that is not the Deployment's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Nothing.
    Clear,
    /// A set that will go or become nobody's by itself: that of a Deployment of the same name that was deleted.
    Blocked,
    /// Somebody else's set, which stays. Another name is needed.
    Taken,
}

pub(super) fn way(deployment: &Deployment, other: Option<&ReplicaSet>) -> Way {
    let Some(other) = other else { return Way::Clear };
    let owner = other.owner_references().iter().find(|owner| owner.controller == Some(true));
    let is_predecessors = owner.is_some_and(|owner| {
        owner.kind == "Deployment"
            && owner.api_version.starts_with("apps/")
            && owner.name == deployment.name_any()
    });
    if pods::is_going(other) || is_predecessors { Way::Blocked } else { Way::Taken }
}

/// The selector of all sets that may be the Deployment's.
pub(super) fn selector(deployment: &serde_json::Value) -> String {
    let selector: LabelSelector =
        serde_json::from_value(deployment["spec"]["selector"].clone()).unwrap_or_default();
    pods::selector_text(&selector)
}
