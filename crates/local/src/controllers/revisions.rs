//! The templates that a parent has had, each kept as a `ControllerRevision`.
//!
//! A revision's data is the patch that gives the parent its template back. A template that was there before has its revision
//! again, under a new number: the newest number is always that of the present template. Names come from the data, so that the
//! same template is found again whatever happened in between. Old ones that no pod is made from go, oldest first.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use mainstay::diff::{APPLIED, content_hash};
use mainstay::{ChildKind, Error, SyncRequest};
use serde_json::{Value, json};

use super::pods::{controller_uid, is_going, kept, selector_text};

/// How many revisions are kept if the parent does not say.
const HISTORY_LIMIT: i32 = 10;

/// Revisions as a child kind: those that are nobody's and fit the parent's selector are taken over.
pub(super) fn child_kind() -> ChildKind {
    ChildKind::of::<ControllerRevision>().adopt(parent_selector)
}

/// The selector of a parent, as [`ChildKind::adopt`] wants it.
pub(super) fn parent_selector(parent: &Value) -> String {
    let selector: Option<LabelSelector> = serde_json::from_value(parent["spec"]["selector"].clone()).ok();
    selector.map(|selector| selector_text(&selector)).unwrap_or_default()
}

/// A parent's revisions, as they should be.
#[derive(Debug, Clone)]
pub(super) struct Revisions {
    /// All that are there, the oldest first.
    known: Vec<ControllerRevision>,
    /// That of the present template. It may not be there yet, or have another number.
    update: ControllerRevision,
    /// How often a name was found to be taken by something else.
    collisions: i32,
}

/// What revisions are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// The parent's name.
    pub(super) name: &'a str,
    /// The parent, as JSON.
    pub(super) parent: &'a Value,
    /// The label that a revision has its hash in.
    pub(super) hash_label: &'a str,
}

/// Finds or makes the revision of the present template.
pub(super) fn observe(
    request: &SyncRequest,
    selector: &LabelSelector,
    hash_label: &str,
    collisions: Option<i32>,
) -> Result<Revisions, Error> {
    let mut known = request.children::<ControllerRevision>().iter().collect::<Result<Vec<_>, _>>()?;
    let fitting: Vec<ControllerRevision> = request.select(&selector_text(selector))?;
    known.extend(fitting.into_iter().filter(|free| controller_uid(free).is_none() && !is_going(free)));
    let source = Source { name: request.name(), parent: request.parent_json(), hash_label };
    // A revision of that name that is not ours and says the same is the remains of a parent of this name, and will go.
    choose(source, known, collisions.unwrap_or(0), |name| request.get(name))
}

/// The pure part: `other` is what has a name, if it is taken.
fn choose(
    source: Source<'_>,
    mut known: Vec<ControllerRevision>,
    mut collisions: i32,
    other: impl Fn(&str) -> Result<Option<ControllerRevision>, Error>,
) -> Result<Revisions, Error> {
    known.sort_by_cached_key(|revision| {
        (revision.revision, revision.creation_timestamp().map(|time| time.0), revision.name_any())
    });
    let data = patch(source.parent);
    let says_the_same = |revision: &ControllerRevision| hash_of(revision) == content_hash(&data);
    let newest = known.last().map_or(0, |revision| revision.revision);
    let update = match known.iter().rposition(says_the_same) {
        Some(place) if place + 1 == known.len() => known[place].clone(),
        Some(place) => ControllerRevision { revision: newest.saturating_add(1), ..known[place].clone() },
        None => loop {
            let fresh = fresh(source, &data, newest.saturating_add(1), collisions);
            if other(&fresh.name_any())?.is_none_or(|taken| says_the_same(&taken)) {
                break fresh;
            }
            collisions = collisions.saturating_add(1);
        },
    };
    Ok(Revisions { known, update, collisions })
}

/// What gives a parent its template back.
fn patch(parent: &Value) -> Value {
    let mut template = parent["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

fn hash_of(revision: &ControllerRevision) -> String {
    revision.data.as_ref().map(|data| content_hash(&data.0)).unwrap_or_default()
}

fn fresh(source: Source<'_>, data: &Value, number: i64, collisions: i32) -> ControllerRevision {
    let hash = content_hash(&json!([data, collisions]))[..10].to_owned();
    let text_map = |value: &Value| -> BTreeMap<String, String> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    };
    let mut labels = text_map(&source.parent["spec"]["template"]["metadata"]["labels"]);
    labels.insert(source.hash_label.to_owned(), hash.clone());
    let mut annotations = text_map(&source.parent["metadata"]["annotations"]);
    annotations.remove(APPLIED);
    let prefix: String = source.name.chars().take(223).collect();
    let metadata = ObjectMeta {
        name: Some(format!("{prefix}-{hash}")),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    };
    ControllerRevision { metadata, data: Some(RawExtension(data.clone())), revision: number }
}

impl Revisions {
    /// The revision of the present template.
    pub(super) fn update(&self) -> &ControllerRevision {
        &self.update
    }

    /// The revision of this name, if it is there.
    pub(super) fn named(&self, name: &str) -> Option<&ControllerRevision> {
        self.known.iter().find(|revision| revision.metadata.name.as_deref() == Some(name))
    }

    /// How often a name was found to be taken.
    pub(super) fn collisions(&self) -> i32 {
        self.collisions
    }

    /// The revisions that should be there, but for `surplus` ones.
    pub(super) fn children(&self, surplus: &[&str]) -> Vec<Value> {
        let update = self.update.name_any();
        let mut children: Vec<Value> = self
            .known
            .iter()
            .map(kube::ResourceExt::name_any)
            .filter(|name| *name != update && !surplus.contains(&name.as_str()))
            .map(|name| kept::<ControllerRevision>(&name))
            .collect();
        children.push(match self.named(&update) {
            Some(live) if live.revision == self.update.revision => kept::<ControllerRevision>(&update),
            _ => as_named(&self.update),
        });
        children
    }

    /// Old revisions beyond the limit that are not `live`, the oldest first. Whether live ones count for the limit differs
    /// between kinds.
    pub(super) fn surplus(
        &self,
        limit: Option<i32>,
        live_ones_count: bool,
        is_live: impl Fn(&ControllerRevision) -> bool,
    ) -> Vec<&str> {
        let update = self.update.metadata.name.as_deref();
        let old = || self.known.iter().filter(|revision| revision.metadata.name.as_deref() != update);
        let idle: Vec<&str> = old()
            .filter(|revision| !is_live(revision) && controller_uid(*revision).is_some())
            .filter_map(|revision| revision.metadata.name.as_deref())
            .collect();
        let counted = if live_ones_count { old().count() } else { idle.len() };
        let Ok(limit) = usize::try_from(limit.unwrap_or(HISTORY_LIMIT)) else { return Vec::new() };
        let surplus = counted.saturating_sub(limit).min(idle.len());
        idle[..surplus].to_vec()
    }
}

/// All that a revision was made with, so that nothing but its number changes.
fn as_named(revision: &ControllerRevision) -> Value {
    let mut annotations = revision.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(APPLIED);
    let annotations = (!annotations.is_empty()).then_some(annotations);
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision.metadata.name,
            "labels": revision.metadata.labels,
            "annotations": annotations,
        },
        "data": revision.data,
        "revision": revision.revision,
    })
}

/// The template that a revision gives back.
pub(super) fn template(revision: &ControllerRevision) -> Result<PodTemplateSpec, Error> {
    let data = revision.data.as_ref().map_or(&Value::Null, |data| &data.0);
    let mut template = data["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    serde_json::from_value(template).map_err(Error::terminal)
}

#[cfg(test)]
mod tests;
