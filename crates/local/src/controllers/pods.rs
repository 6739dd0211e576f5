//! What controllers that make pods share: which pods are a parent's, how they stand, and how new ones are named.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Resource;
use kube::{ResourceExt as _, core::ObjectMeta};
use mainstay::diff::content_hash;
use mainstay::{Error, Key, Kind, ObjectRef, SyncRequest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long a generated name's prefix may be, so that the name is one that a host can have.
const PREFIX_BYTES_MAX: usize = 58;

/// The pods, or other objects, that matter to a parent.
#[derive(Debug)]
pub(super) struct Claimed<K = Pod> {
    /// Its own, by name.
    pub(super) own: Vec<K>,
    /// Those that fit its selector and are nobody's: naming them among the children adopts them.
    pub(super) free: Vec<K>,
    /// Its own that no longer fit its selector.
    pub(super) strayed: Vec<ObjectRef>,
    /// The names that are taken by those that fit its selector, whoever's they are.
    pub(super) taken: BTreeSet<String>,
}

/// Sorts the pods that a parent controls, and those that its selector fits.
pub(super) fn claim(request: &SyncRequest, selector: &LabelSelector) -> Result<Claimed, Error> {
    claim_kind(request, selector)
}

/// [`claim`], for children of any kind.
pub(super) fn claim_kind<K>(request: &SyncRequest, selector: &LabelSelector) -> Result<Claimed<K>, Error>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
    K::Scope: 'static,
{
    let fitting: Vec<K> = request.select(&selector_text(selector))?;
    let mut taken: BTreeSet<String> = fitting.iter().map(K::name_any).collect();
    let (mut own, mut free, mut strayed) = (Vec::new(), Vec::new(), Vec::new());
    // Most of its own fit its selector. To read them a second time as children would double the work.
    for child in request.children_of(&Kind::of::<K>()).iter().filter(|child| !taken.contains(child.name())) {
        let object: K = child.parse()?;
        if is_going(&object) {
            own.push(object);
        } else {
            strayed.push(reference(&object));
        }
    }
    for object in fitting {
        if controller_uid(&object) == Some(request.uid()) {
            own.push(object);
        } else if controller_uid(&object).is_none() && !is_going(&object) {
            free.push(object);
        }
    }
    own.sort_by_cached_key(K::name_any);
    taken.extend(own.iter().map(K::name_any));
    Ok(Claimed { own, free, strayed, taken })
}

/// A selector as `kubectl` takes it.
pub(super) fn selector_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten().map(|(name, value)| format!("{name}={value}"));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let (key, values) = (&expression.key, expression.values.clone().unwrap_or_default().join(","));
        match expression.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

/// The uid of an object's controller.
pub(super) fn controller_uid(object: &impl Resource) -> Option<&str> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

/// A pod or another object, as answers name it.
pub(super) fn reference<K>(object: &K) -> ObjectRef
where
    K: Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let key = Key::new(object.meta().namespace.as_deref(), &object.name_any());
    ObjectRef { kind: Kind::of::<K>(), key }
}

/// The child that stays as it is.
pub(super) fn kept<K>(name: &str) -> Value
where
    K: Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let kind = Kind::of::<K>();
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": name}})
}

/// Whether it is being deleted.
pub(super) fn is_going(object: &impl Resource) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// `status.phase`.
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether all of its containers have ended for good.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    is_end(phase(pod))
}

/// Whether a pod in this phase stays in it.
pub(crate) fn is_end(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// Neither ended nor about to go.
pub(super) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && !is_going(pod)
}

/// A condition of a pod.
pub(super) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether its condition `Ready` is true.
pub(super) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Whether a pod has been ready for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Availability {
    /// It has.
    Available,
    /// It will have been after this time, if it stays ready.
    After(Duration),
    /// It is not ready.
    Unready,
}

/// Whether a pod has been ready for `min_ready_seconds`.
pub(super) fn availability(pod: &Pod, min_ready_seconds: Option<i32>, now: Timestamp) -> Availability {
    let Some(ready) = condition(pod, "Ready").filter(|ready| ready.status == "True") else {
        return Availability::Unready;
    };
    // Then it does not matter since when, and a clock that is wrong does no harm.
    let Some(least) = min_ready_seconds.filter(|seconds| *seconds > 0) else {
        return Availability::Available;
    };
    let least = SignedDuration::from_secs(least.into());
    let since = ready.last_transition_time.as_ref().map_or(now, |time| time.0);
    let left = least.saturating_sub(now.duration_since(since));
    match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => Availability::After(left),
        _ => Availability::Available,
    }
}

/// A pod made from a template. Its labels and annotations are the template's.
pub(super) fn pod_from(template: &PodTemplateSpec, name: &str) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: given.labels,
        annotations: given.annotations,
        finalizers: given.finalizers,
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}

/// Names that begin with `prefix` and are not taken, the same each time: Kubernetes' are random. Of a long prefix only the beginning
/// is used, as Kubernetes does for generated names.
pub(super) fn free_names<'a>(
    prefix: &'a str,
    taken: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    let prefix = &prefix[..prefix.floor_char_boundary(PREFIX_BYTES_MAX)];
    let names =
        (0_u64..).map(move |number| format!("{prefix}{}", suffix(&content_hash(&json!([prefix, number])))));
    names.filter(|name| !taken.contains(name))
}

/// Five letters and digits that make no words, from a hash in hexadecimal.
fn suffix(hash: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = u64::from_str_radix(&hash[..hash.len().min(16)], 16).unwrap_or_default();
    let mut letters = String::new();
    for _ in 0..5 {
        let count = LETTERS.len() as u64;
        letters.push(LETTERS[usize::try_from(rest % count).unwrap_or_default()].into());
        rest /= count;
    }
    letters
}

/// The hash by which a template is told from others; ten digits at most, as in names of replica sets and revisions.
pub(super) fn template_hash(template: &PodTemplateSpec) -> String {
    // A template is plain data; it always serialises.
    let hash = content_hash(&serde_json::to_value(template).unwrap_or_default());
    hash[..10].to_owned()
}

/// How many, as statuses have it.
pub(super) fn count<T>(items: &[T], are: impl Fn(&T) -> bool) -> i32 {
    i32::try_from(items.iter().filter(|item| are(item)).count()).unwrap_or(i32::MAX)
}

/// A number of a status from which Kubernetes leaves out zero.
pub(super) fn unless_zero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_each_time_and_never_taken_ones() {
        let none = BTreeSet::new();
        let first: Vec<String> = free_names("web-", &none).take(3).collect();
        assert_eq!(first, free_names("web-", &none).take(3).collect::<Vec<_>>());
        let taken = BTreeSet::from([first[0].clone(), first[2].clone()]);
        let next: Vec<String> = free_names("web-", &taken).take(2).collect();
        assert_eq!(next[0], first[1]);
        assert!(!first.contains(&next[1]));
    }

    #[test]
    fn a_long_prefix_leaves_room_for_what_tells_names_apart() {
        let (prefix, taken) = ("a".repeat(200), BTreeSet::new());
        let names: BTreeSet<String> = free_names(&prefix, &taken).take(20).collect();
        assert_eq!(names.len(), 20);
        assert!(names.iter().all(|name| name.len() == 63));
    }
}
