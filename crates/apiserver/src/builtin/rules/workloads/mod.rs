//! The kinds that run pods.
//!
//! One file per kind or close family. What they share (templates, counts, selectors) is in `common`.

mod autoscaler;
mod common;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption_budget;
mod job;
mod pod_template;
mod replica_set;
mod revision;
pub(crate) mod scale;
mod stateful_set;

pub(crate) use common::selects;

use super::{Rules, pod};

#[cfg(test)]
mod tests;

/// The rules of one of these kinds.
pub(crate) fn rules(group: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (group, kind) {
        ("", "Pod") => &pod::RULES,
        ("", "PodTemplate") => &pod_template::RULES,
        ("apps", "Deployment") => &deployment::RULES,
        ("apps", "ReplicaSet") => &replica_set::RULES,
        ("apps", "StatefulSet") => &stateful_set::RULES,
        ("apps", "DaemonSet") => &daemon_set::RULES,
        ("apps", "ControllerRevision") => &revision::RULES,
        ("batch", "Job") => &job::RULES,
        ("batch", "CronJob") => &cron_job::RULES,
        ("policy", "PodDisruptionBudget") => &disruption_budget::RULES,
        ("autoscaling", "HorizontalPodAutoscaler") => &autoscaler::RULES,
        _ => return None,
    })
}
