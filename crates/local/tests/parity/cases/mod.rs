//! What users do with workloads, a file for each kind.

mod cron_jobs;
mod daemon_sets;
mod deployments;
mod jobs;
mod replica_sets;
mod services;
mod stateful_sets;
mod volumes;

use std::pin::Pin;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use serde_json::{Value, json};

use super::case::Case;

type Played = Pin<Box<dyn Future<Output = Case>>>;
type Play = fn(Case) -> Played;

/// Every case by its name, which is its golden's.
pub(crate) fn all() -> Vec<(&'static str, Play)> {
    vec![
        ("deployment-rolls", |case| Box::pin(deployments::rolls(case))),
        ("deployment-recreates", |case| Box::pin(deployments::recreates(case))),
        ("deployment-stalls", |case| Box::pin(deployments::stalls(case))),
        ("replica-set-adopts", |case| Box::pin(replica_sets::adopts(case))),
        ("stateful-set-ordered", |case| Box::pin(stateful_sets::ordered(case))),
        ("stateful-set-parallel", |case| Box::pin(stateful_sets::parallel(case))),
        ("daemon-set", |case| Box::pin(daemon_sets::on_every_node(case))),
        ("job-succeeds", |case| Box::pin(jobs::succeeds(case))),
        ("job-fails", |case| Box::pin(jobs::fails(case))),
        ("job-indexed", |case| Box::pin(jobs::indexed(case))),
        ("job-suspended", |case| Box::pin(jobs::suspended(case))),
        ("job-deadline", |case| Box::pin(jobs::has_a_deadline(case))),
        ("job-failure-policy", |case| Box::pin(jobs::has_a_failure_policy(case))),
        ("job-ttl", |case| Box::pin(jobs::is_deleted_when_old(case))),
        ("cron-job", |case| Box::pin(cron_jobs::runs(case))),
        ("service", |case| Box::pin(services::has_endpoints(case))),
        ("claim", |case| Box::pin(volumes::are_bound(case))),
        ("claim-ephemeral", |case| Box::pin(volumes::are_made_for_ephemeral_volumes(case))),
    ]
}

fn pods() -> Kind {
    Kind::of::<Pod>()
}

fn deployments() -> Kind {
    Kind::of::<Deployment>()
}

fn replica_sets() -> Kind {
    Kind::of::<ReplicaSet>()
}

fn stateful_sets() -> Kind {
    Kind::of::<StatefulSet>()
}

fn daemon_sets() -> Kind {
    Kind::of::<DaemonSet>()
}

fn revisions() -> Kind {
    Kind::of::<ControllerRevision>()
}

fn jobs() -> Kind {
    Kind::of::<Job>()
}

/// A pod's template: of an image, and what its simulation is to do.
fn template(image: &str, simulated: &Value) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": simulated},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image}]},
    })
}

/// Whether the controller has seen the last change of the spec.
fn is_observed(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}
