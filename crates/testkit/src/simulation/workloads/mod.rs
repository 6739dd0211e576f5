//! The workload controllers of a world: what a cluster makes of Deployments, `StatefulSets`, Jobs, Pods and claims.
//!
//! ```text
//! Deployment ─▶ ReplicaSet ─▶ Pod      status, after a second of the world's time
//! StatefulSet ─▶ Pod, claim            claim: Bound, after a second
//! Job ─▶ Pod                           Pod: ended, five seconds after it started
//! ```
//!
//! No container runs anywhere. Everything follows from what is in the cluster and from the world's time, so the same script
//! leads to the same objects under the same names. It is one operator, written with `mainstay`.
//!
//! What a script can steer:
//! - An image whose name contains `broken` cannot be pulled: its pod never becomes ready.
//! - An image whose name contains `failing` ends with an error, where pods end at all.
//! - The status of a running or ended pod is left as it is: a user who writes `Failed` or `Ready: False` is believed.
//!
//! What is absent, and refused where it would be mistaken for something else:
//! - `DaemonSets`, `CronJobs`, autoscalers, Services' endpoints, nodes. Pods run without a `nodeName` and therefore go at once when
//!   they are deleted; a pod that names a node is that node's, and left alone.
//! - Probes, readiness gates, `minReadySeconds`, init containers' statuses, missing `ConfigMaps` and Secrets (a missing or
//!   unbound claim does hold a pod back), restarts: `OnFailure` is as `Never`.
//! - `maxSurge`, `maxUnavailable`, `progressDeadlineSeconds` and revision numbers of Deployments: the new `ReplicaSet` is made in
//!   full beside the old ones, which go when it is available. `Recreate`, `paused` and `revisionHistoryLimit` are honoured.
//! - Partitions, start ordinals and `ControllerRevisions` of `StatefulSets`; their claims are always retained.
//! - Indexed Jobs (refused), deadlines, failure and success policies, and the deletion of finished Jobs.
//! - Adoption: an object that nobody controls is nobody's.
//! - `PersistentVolumes`: a claim is bound to none.

mod claim;
mod deployment;
mod job;
mod pod;
mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use mainstay::readiness::readiness;
use mainstay::{Controller, DeletionBudget, Kind, SyncRequest};
use serde_json::{Map, Value, json};

use super::program::{Program, operator_at};

/// The program's name, and its field manager.
const NAME: &str = "workloads";

/// The workload controllers, to run beside the operator under test: see the [module](self) for what they do and what
/// they do not.
pub fn workloads() -> Program {
    operator_at(NAME, |operator, seat| {
        let client = seat.client();
        let everything = DeletionBudget { burst: u32::MAX, per_minute: u32::MAX };
        let stateful_sets = Controller::of::<StatefulSet>().owns::<Pod>().reads::<PersistentVolumeClaim>();
        operator
            .deletion_budget(everything)
            .controller(Controller::of::<PersistentVolumeClaim>().sync(claim::sync))
            .controller(Controller::of::<Pod>().reads::<PersistentVolumeClaim>().sync(pod::sync))
            .controller(Controller::of::<ReplicaSet>().owns::<Pod>().sync(replica_set::sync))
            .controller(Controller::of::<Deployment>().owns::<ReplicaSet>().sync(deployment::sync))
            .controller(Controller::of::<Job>().owns::<Pod>().sync(job::sync))
            .controller(stateful_sets.sync_async(move |request| stateful_set::sync(request, client.clone())))
    })
}

/// Only what becomes of Pods and claims, for controllers of workloads under test.
pub fn pods() -> Program {
    operator_at("pods", |operator, _| {
        operator
            .controller(Controller::of::<PersistentVolumeClaim>().sync(claim::sync))
            .controller(Controller::of::<Pod>().reads::<PersistentVolumeClaim>().sync(pod::sync))
    })
}

/// A pod that a workload has.
#[derive(Clone, Debug)]
struct LivePod {
    name: String,
    object: Value,
}

impl LivePod {
    /// The pods that the parent controls, by name.
    fn all(request: &SyncRequest) -> Vec<Self> {
        let kind = Kind::of::<Pod>();
        let pods = request.children_of(&kind);
        pods.iter().map(|pod| Self { name: pod.name().to_owned(), object: pod.json() }).collect()
    }

    fn is_going(&self) -> bool {
        self.object.pointer("/metadata/deletionTimestamp").is_some()
    }

    fn is_ready(&self) -> bool {
        readiness(&self.object).is_ready()
    }

    fn has_phase(&self, phase: &str) -> bool {
        text(&self.object["status"]["phase"]) == phase
    }

    fn has_ended(&self) -> bool {
        self.has_phase("Succeeded") || self.has_phase("Failed")
    }

    /// Neither ended nor about to go.
    fn is_active(&self) -> bool {
        !self.has_ended() && !self.is_going()
    }

    fn label(&self, name: &str) -> &str {
        text(&self.object["metadata"]["labels"][name])
    }
}

/// The child that stays as it is.
fn kept(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn kept_pod(name: &str) -> Value {
    kept("v1", "Pod", name)
}

/// A pod made from a template.
fn pod_from(template: &Value, name: &str) -> Value {
    let metadata = json!({
        "name": name,
        "labels": template["metadata"]["labels"],
        "annotations": template["metadata"]["annotations"],
        "finalizers": template["metadata"]["finalizers"],
    });
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

/// `spec.replicas`, which is 1 unless given.
fn replicas(workload: &Value) -> i64 {
    workload["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The items of a list, none if it is absent.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// How many there are, as a status has it.
fn count<T>(items: &[T], are: impl Fn(&T) -> bool) -> i64 {
    i64::try_from(items.iter().filter(|item| are(item)).count()).unwrap_or(i64::MAX)
}

/// A status of numbers. Kubernetes leaves out those that are zero, but for the ones that a status must have.
fn numbers(required: &[&str], counts: &[(&str, i64)]) -> Map<String, Value> {
    let told = counts.iter().filter(|(name, count)| *count != 0 || required.contains(name));
    told.map(|(name, count)| ((*name).to_owned(), json!(count))).collect()
}

/// A time, as objects have it.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// How long it is until `after` has passed since the time that an object names; `None` if it has.
fn still_to_wait(since: &Value, after: Duration, now: Timestamp) -> Option<Duration> {
    let since: Timestamp = text(since).parse().ok()?;
    let due = since.checked_add(SignedDuration::try_from(after).ok()?).ok()?;
    Duration::try_from(due.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}
