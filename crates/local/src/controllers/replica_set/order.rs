//! Which pods a set that has too many parts with first: those that would be missed least.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::super::pods;

/// By this users say which of several pods should go first: the one with the lowest number.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// So many of the pods. `on_node` says how many pods of the same kind share each node.
pub(super) fn first_to_go<'a>(
    all: &'a [Pod],
    count: usize,
    on_node: &BTreeMap<String, usize>,
    now: Timestamp,
) -> Vec<&'a Pod> {
    let mut ordered: Vec<&Pod> = all.iter().collect();
    ordered.sort_by_cached_key(|pod| preference(pod, on_node, now));
    ordered.truncate(count);
    ordered
}

/// What decides, in this order; the smallest goes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    deletion_cost: i32,
    on_same_node: Reverse<usize>,
    ready_for: i64,
    restarts: Reverse<(i32, i32)>,
    age: i64,
    /// Kubernetes wants an order here that means nothing.
    uid: String,
}

fn preference(pod: &Pod, on_node: &BTreeMap<String, usize>, now: Timestamp) -> Preference {
    let ready_since = pods::condition(pod, "Ready").filter(|_| pods::is_ready(pod));
    Preference {
        is_assigned: !node_of(pod).is_empty(),
        phase: match pods::phase(pod) {
            "Running" => 2,
            "Unknown" => 1,
            _ => 0,
        },
        is_ready: pods::is_ready(pod),
        deletion_cost: deletion_cost(pod),
        on_same_node: Reverse(on_node.get(node_of(pod)).copied().unwrap_or_default()),
        ready_for: ready_since.map_or(0, |ready| magnitude(ready.last_transition_time.as_ref(), now)),
        restarts: Reverse(restarts(pod)),
        age: magnitude(pod.metadata.creation_timestamp.as_ref(), now),
        uid: pod.uid().unwrap_or_default(),
    }
}

/// The node that a pod is bound to, empty if it is to none.
pub(super) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// What the annotation says, if it says it the way numbers are written.
fn deletion_cost(pod: &Pod) -> i32 {
    let given = pod.annotations().get(DELETION_COST);
    given.and_then(|text| text.parse().ok().filter(|cost: &i32| cost.to_string() == *text)).unwrap_or(0)
}

/// How long ago a time is, coarsely: twice as long is one more. Of two pods that are about as old either may go.
fn magnitude(time: Option<&Time>, now: Timestamp) -> i64 {
    let Some(time) = time else { return -2 };
    match u128::try_from(now.duration_since(time.0).as_nanos()) {
        Ok(nanos) if nanos > 0 => nanos.ilog2().into(),
        _ => -1,
    }
}

/// The most restarts that one of its containers had, and one of its sidecars.
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else { return (0, 0) };
    let most = |statuses: &Option<Vec<ContainerStatus>>, counts: &dyn Fn(&str) -> bool| {
        let counted = statuses.iter().flatten().filter(|container| counts(&container.name));
        counted.map(|container| container.restart_count).max().unwrap_or(0)
    };
    let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let is_sidecar = |name: &str| {
        init.iter().any(|known| known.name == name && known.restart_policy.as_deref() == Some("Always"))
    };
    (most(&status.container_statuses, &|_| true), most(&status.init_container_statuses, &is_sidecar))
}
