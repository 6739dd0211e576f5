//! The conditions of a pod that are its node's to set. All others stay as they are.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};

use super::containers::{Container, Role};
use crate::time::whole_seconds;

/// Set by the node.
const OWN: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// The condition of a pod that ends for no fault of its own. Jobs can be told not to count such pods.
pub(super) const DISRUPTED: &str = "DisruptionTarget";

/// That a pod ends because its node does, in the words of a kubelet.
pub(super) fn disrupted(pod: &Pod, message: &str, now: Timestamp) -> PodCondition {
    PodCondition {
        type_: DISRUPTED.to_owned(),
        status: "True".to_owned(),
        reason: Some("TerminationByKubelet".to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: None,
        last_transition_time: Some(whole_seconds(now)),
        observed_generation: pod.metadata.generation,
    }
}

/// What a condition says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Said {
    is_true: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Said {
    fn yes() -> Self {
        Self { is_true: true, ..Self::default() }
    }

    fn no(reason: &'static str, message: Option<String>) -> Self {
        Self { is_true: false, reason: Some(reason), message }
    }
}

/// The conditions that a pod has next, from the rest of its next status.
pub(super) fn next_conditions(
    pod: &Pod,
    containers: &[Container<'_>],
    status: &PodStatus,
    has_sandbox: bool,
    now: Timestamp,
) -> Vec<PodCondition> {
    let recorded = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let phase = status.phase.as_deref().unwrap_or_default();
    let ready = containers_ready(containers, status, phase);
    let said = [
        Said { is_true: has_sandbox, ..Said::default() },
        initialized(containers, status, phase),
        pod_ready(pod, recorded, &ready),
        ready,
        Said::yes(),
    ];
    let others = recorded.iter().filter(|condition| !OWN.contains(&condition.type_.as_str())).cloned();
    let own = OWN.iter().zip(said).map(|(type_, said)| {
        let word = if said.is_true { "True" } else { "False" };
        let known = recorded.iter().find(|known| known.type_ == *type_);
        let since =
            known.filter(|known| known.status == word).and_then(|known| known.last_transition_time.clone());
        PodCondition {
            type_: (*type_).to_owned(),
            status: word.to_owned(),
            reason: said.reason.map(str::to_owned),
            message: said.message,
            last_probe_time: None,
            last_transition_time: Some(since.unwrap_or_else(|| whole_seconds(now))),
            observed_generation: pod.metadata.generation,
        }
    });
    others.chain(own).collect()
}

/// The statuses of containers of some roles, by name.
fn unready<'a>(
    containers: &'a [Container<'_>],
    status: &'a PodStatus,
    concerns: impl Fn(Role) -> bool,
    is_done: impl Fn(Role, &ContainerStatus) -> bool,
) -> Vec<&'a str> {
    let statuses = || status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let concerned = containers.iter().filter(|container| concerns(container.role));
    let undone = concerned.filter(|container| {
        let name = &container.spec.name;
        !statuses().any(|status| status.name == *name && is_done(container.role, status))
    });
    undone.map(|container| container.spec.name.as_str()).collect()
}

fn initialized(containers: &[Container<'_>], status: &PodStatus, phase: &str) -> Said {
    if phase == "Succeeded" {
        return Said { reason: Some("PodCompleted"), ..Said::yes() };
    }
    let was_begun = |status: &ContainerStatus| {
        status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
            || status.restart_count > 0
    };
    if status.container_statuses.iter().flatten().any(was_begun) {
        return Said::yes();
    }
    let is_done = |role, status: &ContainerStatus| match role {
        Role::Sidecar => status.started == Some(true),
        _ => status.ready,
    };
    let left = unready(containers, status, |role| role != Role::Main, is_done);
    if left.is_empty() {
        return Said::yes();
    }
    let message = format!("containers with incomplete status: [{}]", left.join(" "));
    Said::no("ContainersNotInitialized", Some(message))
}

fn containers_ready(containers: &[Container<'_>], status: &PodStatus, phase: &str) -> Said {
    match phase {
        "Succeeded" => return Said::no("PodCompleted", None),
        "Failed" => return Said::no("PodFailed", None),
        _ => {}
    }
    let left = unready(containers, status, |role| role != Role::Init, |_, status| status.ready);
    if left.is_empty() {
        return Said::yes();
    }
    Said::no("ContainersNotReady", Some(format!("containers with unready status: [{}]", left.join(" "))))
}

fn pod_ready(pod: &Pod, recorded: &[PodCondition], containers: &Said) -> Said {
    if !containers.is_true {
        return containers.clone();
    }
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let closed = gates.iter().filter_map(|gate| {
        let gate = &gate.condition_type;
        match recorded.iter().find(|condition| condition.type_ == *gate) {
            None => Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
            Some(condition) if condition.status == "True" => None,
            Some(condition) => {
                let status = &condition.status;
                Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but {status}"))
            }
        }
    });
    let closed: Vec<_> = closed.collect();
    if closed.is_empty() { Said::yes() } else { Said::no("ReadinessGatesNotReady", Some(closed.join(", "))) }
}
