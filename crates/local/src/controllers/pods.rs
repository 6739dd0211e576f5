//! What controllers that make pods share: which pods are a parent's, how they stand, and how new ones are named.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::core::Resource;
use kube::{ResourceExt as _, core::ObjectMeta};
use mainstay::diff::content_hash;
use mainstay::{Error, Key, Kind, ObjectRef, SyncRequest};
use serde_json::{Value, json};

/// The pods that matter to a parent.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// Its own, by name.
    pub(super) own: Vec<Pod>,
    /// Those that fit its selector and are nobody's: naming them among the children adopts them.
    pub(super) free: Vec<Pod>,
    /// Its own that no longer fit its selector.
    pub(super) strayed: Vec<ObjectRef>,
    /// The names that are taken by pods that fit its selector, whoever's they are.
    pub(super) taken: BTreeSet<String>,
}

/// Sorts the pods that a parent controls, and those that its selector fits.
pub(super) fn claim(request: &SyncRequest, selector: &LabelSelector) -> Result<Claimed, Error> {
    let mut claimed = Claimed::default();
    let fitting: Vec<Pod> = request.select(&selector_text(selector))?;
    claimed.taken = fitting.iter().map(Pod::name_any).collect();
    let fits = |pod: &Pod| claimed.taken.contains(&pod.name_any());
    for pod in request.children::<Pod>().iter() {
        let pod = pod?;
        if fits(&pod) || is_going(&pod) {
            claimed.own.push(pod);
        } else {
            claimed.strayed.push(reference(&pod));
        }
    }
    claimed.taken.extend(claimed.own.iter().map(Pod::name_any));
    claimed.free =
        fitting.into_iter().filter(|pod| controller_uid(pod).is_none() && !is_going(pod)).collect();
    Ok(claimed)
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

/// A pod, as answers name it.
pub(super) fn reference(pod: &Pod) -> ObjectRef {
    let key = Key::new(pod.metadata.namespace.as_deref(), &pod.name_any());
    ObjectRef { kind: Kind::of::<Pod>(), key }
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
pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
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
    let least = SignedDuration::from_secs(min_ready_seconds.unwrap_or(0).into());
    // Where no time has to pass, no clock is asked.
    if least.is_zero() {
        return Availability::Available;
    }
    let since = ready.last_transition_time.as_ref().map_or(now, |time| time.0);
    let left = least - now.duration_since(since);
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

/// Names that begin with `prefix` and are not taken, the same each time: Kubernetes' are random.
pub(super) fn free_names<'a>(
    prefix: &'a str,
    taken: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    let names =
        (0_u64..).map(move |number| format!("{prefix}{}", suffix(&content_hash(&json!([prefix, number])))));
    names.filter(|name| !taken.contains(name))
}

/// [`free_names`] that differ for different salts, as for parents of the same name that follow each other.
pub(super) fn free_names_of<'a>(
    salt: &'a str,
    prefix: &'a str,
    taken: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    let hashes = (0_u64..).map(move |number| content_hash(&json!([salt, prefix, number])));
    hashes.map(move |hash| format!("{prefix}{}", suffix(&hash))).filter(|name| !taken.contains(name))
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

/// A time as objects have it: in whole seconds.
pub(super) fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// How many, as statuses have it.
pub(super) fn count<T>(items: &[T], are: impl Fn(&T) -> bool) -> i32 {
    i32::try_from(items.iter().filter(|item| are(item)).count()).unwrap_or(i32::MAX)
}

/// A number of a status from which Kubernetes leaves out zero.
pub(super) fn unless_zero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}
