//! The phase of a pod, and why it is in it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::containers::{Container, Role, Standing};
use super::{ended_phase, next, runs_again};

const DEADLINE_REASON: &str = "DeadlineExceeded";
const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";
/// In the words of a kubelet whose machine is shut down.
const SHUTDOWN_REASON: &str = "Terminated";
pub(super) const SHUTDOWN_MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";

/// A phase with what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    /// The pod has failed just now, and because its node was shut down or killed.
    pub(super) is_disrupted: bool,
}

/// The next phase. No pod goes back to an earlier one.
///
/// `is_over`: no container runs, and none will.
pub(super) fn next_phase(pod: &Pod, containers: &[Container<'_>], is_over: bool, now: Timestamp) -> Phase {
    let status = pod.status.as_ref();
    let recorded = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    if ended_phase(pod).is_none() && next::deadline(pod).is_some_and(|deadline| deadline <= now) {
        let text = |text: &str| Some(text.to_owned());
        return Phase {
            name: "Failed".into(),
            reason: text(DEADLINE_REASON),
            message: text(DEADLINE_MESSAGE),
            is_disrupted: false,
        };
    }
    let name = match (ended_phase(pod), of_containers(pod, containers, is_over)) {
        (Some(ended), _) => ended,
        (None, "Pending" | "Running") if is_over => "Failed",
        (None, "Pending") if recorded == "Running" => "Running",
        (None, phase) => phase,
    };
    if ended_phase(pod).is_none() && name == "Failed" && containers.iter().any(Container::ended_with_node) {
        return Phase {
            name: name.to_owned(),
            reason: Some(SHUTDOWN_REASON.to_owned()),
            message: Some(SHUTDOWN_MESSAGE.to_owned()),
            is_disrupted: true,
        };
    }
    let said = status.filter(|_| name == recorded);
    Phase {
        name: name.to_owned(),
        reason: said.and_then(|status| status.reason.clone()),
        message: said.and_then(|status| status.message.clone()),
        is_disrupted: false,
    }
}

/// The phase as its containers have it.
fn of_containers(pod: &Pod, containers: &[Container<'_>], is_over: bool) -> &'static str {
    let of = |role| containers.iter().filter(move |container| container.role == role);
    let has_failed = |container: &Container<'_>| match &container.standing {
        Standing::Ended(end) => end.code() != 0,
        _ => false,
    };
    if of(Role::Init).any(|init| has_failed(init) && !runs_again(pod, init)) {
        return "Failed";
    }
    let is_initialized = of(Role::Main).any(Container::was_started);
    let waits_for_init = !is_initialized
        && (of(Role::Init).any(|init| !matches!(init.standing, Standing::Ended(_)))
            || of(Role::Sidecar).any(|sidecar| !sidecar.lets_others_start()));
    if waits_for_init || of(Role::Main).any(|main| !main.was_started()) {
        return "Pending";
    }
    if containers.iter().any(Container::is_running)
        || !is_over && of(Role::Main).any(|main| runs_again(pod, main))
    {
        return "Running";
    }
    if of(Role::Main).any(has_failed) { "Failed" } else { "Succeeded" }
}
