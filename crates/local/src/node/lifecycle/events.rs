//! What is told of a pod: what its next status says and its recorded one did not.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use mainstay::events::Event;

use super::backoff;

/// The events of the step from the recorded status to the next. Of a simulated pod nothing is claimed that did not happen.
pub(in super::super) fn events(pod: &Pod, next: &PodStatus, is_simulated: bool) -> Vec<Event> {
    let mut events = Vec::new();
    let recorded = pod.status.as_ref();
    let before = |name: &str| {
        let statuses = recorded.into_iter().flat_map(all);
        statuses.into_iter().find(|status| status.name == name)
    };
    for status in all(next) {
        let old = before(&status.name);
        let state = status.state.clone().unwrap_or_default();
        let old_state = old.and_then(|old| old.state.clone()).unwrap_or_default();
        if state == old_state && old.is_none_or(|old| old.restart_count == status.restart_count) {
            continue;
        }
        of_container((pod, is_simulated), status, (&state, &old_state), &mut events);
    }
    let reason = |status: Option<&PodStatus>| status.and_then(|status| status.reason.clone());
    if let Some(said) = reason(Some(next)).filter(|said| reason(recorded).as_ref() != Some(said)) {
        events.push(Event::normal(&said, next.message.as_deref().unwrap_or_default()));
    }
    events
}

fn of_container(
    (pod, is_simulated): (&Pod, bool),
    status: &ContainerStatus,
    (state, old): (&ContainerState, &ContainerState),
    events: &mut Vec<Event>,
) {
    let (name, image) = (&status.name, &status.image);
    if state.running.is_some() {
        events.push(if is_simulated {
            Event::normal(
                "Simulated",
                &format!("Container {name} is simulated: image \"{image}\" runs nowhere"),
            )
        } else {
            Event::normal("Pulled", &format!("Container image \"{image}\" already present on machine"))
        });
        events.push(Event::normal("Created", &format!("Container created: {name}")));
        events.push(Event::normal("Started", &format!("Container started: {name}")));
    }
    if state.terminated.is_some() && old.running.is_some() && pod.metadata.deletion_timestamp.is_some() {
        events.push(Event::normal("Killing", &format!("Stopping container {name}")));
    }
    let Some(waiting) = &state.waiting else { return };
    let message = waiting.message.as_deref().unwrap_or_default();
    match waiting.reason.as_deref().unwrap_or_default() {
        "ContainerCreating" | "PodInitializing" => {}
        backoff::REASON => {
            let pod = backoff::pod_name(pod);
            let note = format!("Back-off restarting failed container {name} in pod {pod}");
            events.push(Event::warning("BackOff", &note));
        }
        "ImagePullBackOff" => events.push(Event::warning("BackOff", message)),
        _ => events.push(Event::warning("Failed", &format!("Error: {message}"))),
    }
}

fn all(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses).flatten()
}
