//! What a Job's own rules say: which failures of pods matter, and which successes are enough.

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use kube::ResourceExt as _;

use super::indexes::Indexes;

/// What becomes of a pod that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts towards the limits.
    Counts,
    /// It does not.
    Ignored,
    /// Its index is not tried again.
    FailsIndex,
    /// The whole Job fails, for this reason.
    FailsJob(String),
}

impl Verdict {
    /// Whether it is in the number of those that failed.
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignored
    }
}

/// What the first rule says that fits a failed pod.
pub(super) fn judge(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Verdict {
    let rules = policy.map_or(&[][..], |policy| &policy.rules);
    let fitting = rules.iter().enumerate().find_map(|(index, rule)| Some((index, rule, reason(rule, pod)?)));
    let Some((index, rule, reason)) = fitting else { return Verdict::Counts };
    match rule.action.as_str() {
        "Ignore" => Verdict::Ignored,
        "FailIndex" => Verdict::FailsIndex,
        "FailJob" => Verdict::FailsJob(format!("{reason} matching FailJob rule at index {index}")),
        _ => Verdict::Counts,
    }
}

/// Why a rule fits a pod, if it does.
fn reason(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let place = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    if let Some(codes) = &rule.on_exit_codes {
        let (container, code) = exit_code(codes, status)?;
        return Some(format!("Container {container} for pod {place} failed with exit code {code}"));
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let mut conditions = status.conditions.iter().flatten();
    let fitting = conditions.find(|condition| {
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_ && pattern.status.as_deref() == Some(&condition.status)
        })
    })?;
    Some(format!("Pod {place} has condition {}", fitting.type_))
}

/// The first container that ended with one of these codes, and the code. Zero is no failure.
fn exit_code<'a>(
    codes: &PodFailurePolicyOnExitCodesRequirement,
    status: &'a PodStatus,
) -> Option<(&'a str, i32)> {
    let containers = [&status.container_statuses, &status.init_container_statuses];
    let named = |container: &&ContainerStatus| {
        codes.container_name.as_ref().is_none_or(|name| *name == container.name)
    };
    containers.into_iter().flatten().flatten().filter(named).find_map(|container| {
        let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
        let listed = codes.values.contains(&code);
        let fits = if codes.operator == "NotIn" { !listed } else { listed };
        (code != 0 && fits).then_some((container.name.as_str(), code))
    })
}

/// Why the indexes that have succeeded are enough, if they are.
pub(super) fn success(
    policy: Option<&SuccessPolicy>,
    succeeded: &Indexes,
    completions: i32,
) -> Option<String> {
    if succeeded.count() == 0 {
        return None;
    }
    let met = policy?.rules.iter().position(|rule| {
        let enough = |count: i32| rule.succeeded_count.is_some_and(|needed| count >= needed);
        match rule.succeeded_indexes.as_deref().map(|text| Indexes::read(text, completions)) {
            Some(named) if named.count() == 0 => false,
            Some(named) => {
                let there = named.shared(succeeded);
                there == named.count() || enough(there)
            }
            None => enough(succeeded.count()),
        }
    })?;
    Some(format!("Matched rules at index {met}"))
}
