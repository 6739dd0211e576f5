//! A Job's pods as decisions look at them, and what the Job asks of them.

use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicy, SuccessPolicy};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::policy::{self, Verdict};
use super::{COMPLETION_INDEX, FAILURE_COUNT, IGNORED_FAILURE_COUNT, TRACKING};
use crate::controllers::pods;

/// What a Job asks for, with the server's defaults for what it does not say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Terms<'a> {
    pub(super) parallelism: i32,
    /// None: its pods share a queue, and it is over when one of them has succeeded and none is left.
    pub(super) completions: Option<i32>,
    pub(super) is_indexed: bool,
    pub(super) backoff_limit: i32,
    pub(super) backoff_limit_per_index: Option<i32>,
    pub(super) max_failed_indexes: Option<i32>,
    pub(super) is_suspended: bool,
    pub(super) deadline_seconds: Option<i64>,
    /// A pod that is being deleted has not failed before it has ended, and is not replaced before.
    pub(super) awaits_ends: bool,
    /// How often its containers may be started again in their pods, if they are at all.
    pub(super) restart_limit: Option<i32>,
    pub(super) failure_policy: Option<&'a PodFailurePolicy>,
    pub(super) success_policy: Option<&'a SuccessPolicy>,
}

impl<'a> From<&'a JobSpec> for Terms<'a> {
    fn from(spec: &'a JobSpec) -> Self {
        let failure_policy = spec.pod_failure_policy.as_ref();
        let backoff_limit = spec.backoff_limit.unwrap_or(6);
        let restart_policy = spec.template.spec.as_ref().and_then(|pods| pods.restart_policy.as_deref());
        Self {
            parallelism: spec.parallelism.unwrap_or(1),
            completions: spec.completions,
            is_indexed: spec.completion_mode.as_deref() == Some("Indexed"),
            backoff_limit,
            backoff_limit_per_index: spec.backoff_limit_per_index,
            max_failed_indexes: spec.max_failed_indexes,
            is_suspended: spec.suspend == Some(true),
            deadline_seconds: spec.active_deadline_seconds,
            awaits_ends: failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed"),
            restart_limit: (restart_policy == Some("OnFailure")).then_some(backoff_limit.max(1)),
            failure_policy,
            success_policy: spec.success_policy.as_ref(),
        }
    }
}

impl Terms<'_> {
    /// How many indexes there are.
    pub(super) fn indexes(&self) -> i32 {
        self.completions.unwrap_or(0)
    }

    /// What is made of a pod that failed.
    pub(super) fn judge(&self, member: &Member<'_>) -> Verdict {
        policy::judge(self.failure_policy, member.pod)
    }
}

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits or runs.
    Active,
    /// It is being deleted, and has not ended.
    Terminating,
    Succeeded,
    Failed,
}

/// A pod of a Job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) pod: &'a Pod,
    pub(super) stage: Stage,
    /// It carries the finalizer, which it loses when it has been counted.
    pub(super) is_tracked: bool,
    /// Its completion index, if it has one that there is.
    pub(super) index: Option<i32>,
}

impl<'a> Member<'a> {
    /// A pod, in the eyes of a Job with these terms.
    pub(super) fn new(pod: &'a Pod, terms: &Terms<'_>) -> Self {
        let stage = match pods::phase(pod) {
            "Succeeded" => Stage::Succeeded,
            "Failed" => Stage::Failed,
            _ if pods::is_going(pod) => Stage::Terminating,
            _ => Stage::Active,
        };
        let index =
            number(pod, COMPLETION_INDEX).filter(|index| terms.is_indexed && *index < terms.indexes());
        Self { pod, stage, is_tracked: is_tracked(pod), index }
    }

    pub(super) fn uid(&self) -> &'a str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &'a str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn is_active(&self) -> bool {
        self.stage == Stage::Active
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_active() && pods::is_ready(self.pod)
    }

    /// Whether it is over without success. One that somebody deletes may never come to an end of its own.
    pub(super) fn has_failed(&self, terms: &Terms<'_>) -> bool {
        self.stage == Stage::Failed || self.stage == Stage::Terminating && !terms.awaits_ends
    }

    /// Whether it is one that can be counted: in an indexed Job it has an index.
    pub(super) fn is_valid(&self, terms: &Terms<'_>) -> bool {
        !terms.is_indexed || self.index.is_some()
    }

    /// How often its index had failed before it was made: counted, and ignored.
    pub(super) fn failures_before(&self) -> (i32, i32) {
        let count = |annotation| number(self.pod, annotation).unwrap_or(0);
        (count(FAILURE_COUNT), count(IGNORED_FAILURE_COUNT))
    }
}

/// Whether a pod carries the finalizer.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == TRACKING)
}

/// A number in an annotation; what is none, or negative, is not there.
fn number(pod: &Pod, annotation: &str) -> Option<i32> {
    pod.annotations().get(annotation)?.parse().ok().filter(|number| *number >= 0)
}
