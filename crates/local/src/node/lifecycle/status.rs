//! The next status of a pod: what is recorded, with what is the node's to say laid over it.

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, PodIP, PodStatus,
};

use super::super::runtime::CannotStart;
use super::containers::{Container, End, Role, Standing, container_id, lost};
use super::next::{Start, Stop};
use super::{Situation, backoff, conditions, left, phase};
use crate::time::whole_seconds;

/// What the status of every container depends on.
struct Scene<'a> {
    situation: &'a Situation<'a>,
    planned: &'a [Start],
    /// All containers have to end, or have.
    is_stopping: bool,
    /// No container runs, and none will.
    is_over: bool,
    is_initialized: bool,
}

/// The status that follows.
pub(super) fn next_status(
    situation: &Situation<'_>,
    containers: &[Container<'_>],
    planned: &[Start],
    stop: Option<&Stop>,
) -> PodStatus {
    let Situation { pod, addresses, now, .. } = *situation;
    let runs = containers.iter().any(Container::is_running);
    let scene = Scene::new(situation, containers, planned, stop.is_some(), runs);
    let phase = phase::next_phase(pod, containers, scene.is_over, now);
    let recorded = pod.status.clone().unwrap_or_default();
    let told = |is_main: bool| {
        let concerned = containers.iter().filter(|container| (container.role == Role::Main) == is_main);
        let statuses: Vec<_> = concerned.map(|container| scene.container_status(container)).collect();
        (!statuses.is_empty()).then_some(statuses)
    };
    let was_begun = containers.iter().any(Container::was_started) || !situation.refused.is_empty();
    let has_sandbox = was_begun && !scene.is_over;
    let is_on_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    let address = if is_on_host { &addresses.host } else { &addresses.pod };
    let address = recorded.pod_ip.clone().or_else(|| (has_sandbox || is_on_host).then(|| address.clone()));
    let mut status = PodStatus {
        phase: Some(phase.name),
        reason: phase.reason,
        message: phase.message,
        start_time: Some(recorded.start_time.clone().unwrap_or_else(|| whole_seconds(now))),
        host_ip: Some(addresses.host.clone()),
        host_ips: Some(vec![HostIP { ip: addresses.host.clone() }]),
        pod_ips: address.as_ref().map(|ip| vec![PodIP { ip: ip.clone() }]),
        pod_ip: address,
        init_container_statuses: told(false),
        container_statuses: told(true),
        observed_generation: pod.metadata.generation,
        ..recorded
    };
    let mut next = conditions::next_conditions(pod, containers, &status, has_sandbox, now);
    if phase.is_disrupted && !next.iter().any(|known| known.type_ == conditions::DISRUPTED) {
        next.insert(0, conditions::disrupted(pod, phase::SHUTDOWN_MESSAGE, now));
    }
    status.conditions = Some(next);
    status
}

impl<'a> Scene<'a> {
    fn new(
        situation: &'a Situation<'a>,
        containers: &[Container<'_>],
        planned: &'a [Start],
        is_stopping: bool,
        runs: bool,
    ) -> Self {
        let of = |role| containers.iter().filter(move |container| container.role == role);
        let mut before = containers.iter().filter(|container| container.role != Role::Main);
        Self {
            situation,
            planned,
            is_stopping,
            // The end of the last container may be seen here for the first time.
            is_over: !runs && (is_stopping || of(Role::Main).all(|main| ended_for_good(situation, main))),
            is_initialized: of(Role::Main).any(Container::was_started)
                || before.next_back().is_none_or(Container::lets_others_start),
        }
    }

    fn container_status(&self, container: &Container<'_>) -> ContainerStatus {
        let name = &container.spec.name;
        let uid = self.situation.pod.metadata.uid.as_deref().unwrap_or_default();
        let count = container.record.map_or(0, |record| record.restart_count);
        let attempt = match &container.standing {
            Standing::Never => None,
            Standing::Running { attempt, .. } => Some(*attempt),
            Standing::Ended(end) => Some(end.attempt),
        };
        let (state, last) = self.state(container);
        let (started, ready) = match &container.standing {
            Standing::Running { started, ready, .. } => {
                (*started, *started && *ready && container.role != Role::Init)
            }
            Standing::Ended(_) => (false, container.role == Role::Init && container.lets_others_start()),
            Standing::Never => (false, false),
        };
        // What was lost has no id: nobody knows what became of it.
        let is_lost = state.terminated.as_ref().is_some_and(|end| end.container_id.is_none());
        ContainerStatus {
            name: name.clone(),
            image: container.spec.image.clone().unwrap_or_default(),
            image_id: image_id(container),
            container_id: attempt.filter(|_| !is_lost).map(|attempt| container_id(uid, name, attempt)),
            restart_count: attempt.map_or(count, |attempt| count.max(attempt.try_into().unwrap_or(i32::MAX))),
            ready,
            started: Some(started),
            state: Some(state),
            // The API server has it always; a list of these is compared as a whole.
            last_state: Some(last.map(terminated).unwrap_or_default()),
            ..ContainerStatus::default()
        }
    }

    /// The state of a container, and the end of the attempt before.
    fn state(&self, container: &Container<'_>) -> (ContainerState, Option<ContainerStateTerminated>) {
        match &container.standing {
            Standing::Never => (self.never_started(container), None),
            Standing::Running { since, .. } => {
                let running = ContainerStateRunning { started_at: Some(whole_seconds(*since)) };
                let state = ContainerState { running: Some(running), ..ContainerState::default() };
                (state, last_end(container))
            }
            Standing::Ended(end) => match self.waits_again(container, end) {
                Some(waiting) => (waiting, Some(end.state.clone())),
                None => (terminated(end.state.clone()), end.previous.clone()),
            },
        }
    }

    fn never_started(&self, container: &Container<'_>) -> ContainerState {
        let is_first = self.first_init() == Some(&container.spec.name);
        let counts = is_first || container.role == Role::Main && self.is_initialized;
        if self.is_over && counts {
            return terminated(lost());
        }
        match self.situation.refused.get(&container.spec.name) {
            Some(CannotStart { reason, message }) => waiting(reason, Some(message.clone())),
            None if self.first_init().is_some() => waiting("PodInitializing", None),
            None => waiting("ContainerCreating", None),
        }
    }

    fn first_init(&self) -> Option<&str> {
        let spec = self.situation.pod.spec.as_ref()?;
        spec.init_containers.as_ref()?.first().map(|first| first.name.as_str())
    }

    /// How a container waits that has ended and is to run again. Its end is shown before.
    fn waits_again(&self, container: &Container<'_>, end: &End) -> Option<ContainerState> {
        if self.is_stopping || !end.recorded {
            return None;
        }
        let name = &container.spec.name;
        if let Some(CannotStart { reason, message }) = self.situation.refused.get(name) {
            return Some(waiting(reason, Some(message.clone())));
        }
        let start = self.planned.iter().find(|start| start.container == *name)?;
        if left(start.due, self.situation.now).is_some() {
            let message = backoff::message(self.situation.pod, name, start.delay);
            return Some(waiting(backoff::REASON, Some(message)));
        }
        // It is about to start, and as it was until then.
        container.record.and_then(|record| record.state.clone()).filter(|state| state.waiting.is_some())
    }
}

/// The image that a container was started from; empty if it never was.
fn image_id(container: &Container<'_>) -> String {
    match (&container.standing, container.record) {
        (Standing::Never, _) => String::new(),
        (Standing::Ended(end), Some(record)) if end.recorded => record.image_id.clone(),
        _ => container.spec.image.clone().unwrap_or_default(),
    }
}

fn ended_for_good(situation: &Situation<'_>, container: &Container<'_>) -> bool {
    match &container.standing {
        Standing::Ended(end) => !container.restarts_after(situation.pod, end.code()),
        _ => false,
    }
}

/// The end of the attempt before the one that runs.
fn last_end(container: &Container<'_>) -> Option<ContainerStateTerminated> {
    let record = container.record?;
    let ended = record.state.as_ref().and_then(|state| state.terminated.clone());
    ended.or_else(|| record.last_state.as_ref()?.terminated.clone())
}

fn terminated(end: ContainerStateTerminated) -> ContainerState {
    ContainerState { terminated: Some(end), ..ContainerState::default() }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}
