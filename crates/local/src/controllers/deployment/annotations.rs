//! What a Deployment writes on its `ReplicaSets` beside their spec: which revision each is, and what was last decided on it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt as _;

use super::limits::Wish;

/// Which revision of the Deployment a set is; on the Deployment, which revision it has.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Which revisions a set was before, if its template was come back to.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many replicas the Deployment wanted when it last decided on the set.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// How many pods there might be at most then.
pub(super) const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that are about itself only.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MOST,
];
/// What the framework notes on any object is about that object.
const FRAMEWORK: &str = "mainstay.dev/";

const HISTORY_BYTES_MAX: usize = 2000;

pub(super) type Annotations = BTreeMap<String, String>;

/// A set's annotations as they are, without those of the framework.
pub(super) fn own(set: &ReplicaSet) -> Annotations {
    let annotations = set.annotations().iter().filter(|(name, _)| !name.starts_with(FRAMEWORK));
    annotations.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The revision of a set, 0 if it says none.
pub(super) fn revision(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// Whether a set was an earlier revision too: its template was come back to.
pub(super) fn was_revision_before(set: &ReplicaSet) -> bool {
    set.annotations().contains_key(REVISION_HISTORY)
}

/// A number that is not negative.
pub(super) fn number(set: &ReplicaSet, name: &str) -> Option<i32> {
    set.annotations().get(name)?.parse().ok().filter(|number| *number >= 0)
}

/// The annotations of the set with the present template: the Deployment's, and a revision above all `others`. Revisions never go
/// down, and those that a set had before are kept.
pub(super) fn of_new(known: Annotations, deployment: &Annotations, others: i64) -> Annotations {
    let mut annotations = known;
    let copied = deployment
        .iter()
        .filter(|(name, _)| !NOT_COPIED.contains(&name.as_str()) && !name.starts_with(FRAMEWORK));
    annotations.extend(copied.map(|(name, value)| (name.clone(), value.clone())));
    let before = annotations.get(REVISION).filter(|before| !before.is_empty()).cloned();
    // Something that is no number was put there by somebody; it is left to them.
    let Ok(number) = before.as_deref().unwrap_or("0").parse::<i64>() else { return annotations };
    if number <= others {
        annotations.insert(REVISION.to_owned(), others.saturating_add(1).to_string());
        if let Some(before) = before {
            let history = longer(annotations.get(REVISION_HISTORY).map_or("", String::as_str), &before);
            annotations.insert(REVISION_HISTORY.to_owned(), history);
        }
    }
    annotations
}

/// A history with one more revision. When it gets too long, the oldest are forgotten.
fn longer(history: &str, revision: &str) -> String {
    let mut revisions: Vec<&str> = history.split(',').filter(|revision| !revision.is_empty()).collect();
    revisions.push(revision);
    while revisions.len() > 1 && revisions.join(",").len() > HISTORY_BYTES_MAX {
        revisions.remove(0);
    }
    revisions.join(",")
}

/// Notes what was decided on.
pub(super) fn tell(annotations: &mut Annotations, wish: &Wish) {
    annotations.insert(DESIRED.to_owned(), wish.replicas.to_string());
    annotations.insert(MOST.to_owned(), wish.most().to_string());
}
