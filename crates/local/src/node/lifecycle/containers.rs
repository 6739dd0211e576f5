//! The containers of a pod, each with what has become of it: what is seen, or else what is recorded.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container as Spec, ContainerState, ContainerStateTerminated, ContainerStatus, Pod,
};

use super::super::runtime::Observed;
use crate::time::whole_seconds;

/// The exit code of a container of whose end nothing is known.
const LOST_CODE: i32 = 137;
const LOST_REASON: &str = "ContainerStatusUnknown";
const LOST_MESSAGE: &str = "The container could not be located when the pod was terminated";

/// What a container is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It has to end before the next one starts.
    Init,
    /// It has to have started before the next one does, and runs for as long as the pod.
    Sidecar,
    /// The pod is there for it.
    Main,
}

/// One container of a pod.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) spec: &'a Spec,
    pub(super) role: Role,
    /// Its recorded status.
    pub(super) record: Option<&'a ContainerStatus>,
    pub(super) standing: Standing,
}

/// What has become of a container.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    /// It was never started.
    Never,
    /// It runs.
    Running { attempt: u32, since: Timestamp, started: bool, ready: bool },
    /// Its last attempt is over.
    Ended(Box<End>),
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct End {
    pub(super) attempt: u32,
    /// As statuses have it.
    pub(super) state: ContainerStateTerminated,
    /// The end of the attempt before.
    pub(super) previous: Option<ContainerStateTerminated>,
    /// Whether the recorded status has it already.
    pub(super) recorded: bool,
    /// It ended because the node did.
    pub(super) by_node: bool,
}

impl End {
    pub(super) fn code(&self) -> i32 {
        self.state.exit_code
    }

    pub(super) fn finished_at(&self) -> Option<Timestamp> {
        self.state.finished_at.as_ref().map(|time| time.0)
    }
}

impl Container<'_> {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.standing, Standing::Running { .. })
    }

    /// It ended because the node did.
    pub(super) fn ended_with_node(&self) -> bool {
        matches!(&self.standing, Standing::Ended(end) if end.by_node)
    }

    pub(super) fn was_started(&self) -> bool {
        self.standing != Standing::Never
    }

    /// Whether it has done what an init container has to do before the next one starts.
    pub(super) fn lets_others_start(&self) -> bool {
        match (&self.standing, self.role) {
            (Standing::Running { started, .. }, Role::Sidecar) => *started,
            (Standing::Ended(end), Role::Init) => end.code() == 0,
            _ => false,
        }
    }

    /// Whether it runs again after it has ended with this code.
    pub(super) fn restarts_after(&self, pod: &Pod, code: i32) -> bool {
        let spec = pod.spec.as_ref();
        let of_pod = spec.and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
        match self.role {
            Role::Sidecar => true,
            // What succeeded has done its part.
            Role::Init if code == 0 => false,
            _ if self.has_restart_rule(code) => true,
            _ => match self.spec.restart_policy.as_deref().unwrap_or(of_pod) {
                "Never" => false,
                "OnFailure" => code != 0,
                _ => true,
            },
        }
    }

    fn has_restart_rule(&self, code: i32) -> bool {
        let rules = self.spec.restart_policy_rules.iter().flatten();
        let codes = rules.filter_map(|rule| rule.exit_codes.as_ref());
        codes.into_iter().any(|codes| {
            let listed = codes.values.iter().flatten().any(|listed| *listed == code);
            if codes.operator == "NotIn" { !listed } else { listed }
        })
    }
}

/// All containers, in the order in which they start.
pub(super) fn all<'a>(pod: &'a Pod, seen: &BTreeMap<String, Observed>) -> Vec<Container<'a>> {
    let status = pod.status.as_ref();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let Some(spec) = &pod.spec else { return Vec::new() };
    let of = |spec: &'a Spec, role, records: Option<&'a Vec<ContainerStatus>>| {
        let record = records.into_iter().flatten().find(|record| record.name == spec.name);
        let standing = standing(uid, &spec.name, record, seen.get(&spec.name));
        Container { spec, role, record, standing }
    };
    let init = spec.init_containers.iter().flatten().map(|spec| {
        let role = if spec.restart_policy.as_deref() == Some("Always") { Role::Sidecar } else { Role::Init };
        of(spec, role, status.and_then(|status| status.init_container_statuses.as_ref()))
    });
    let records = status.and_then(|status| status.container_statuses.as_ref());
    init.chain(spec.containers.iter().map(|spec| of(spec, Role::Main, records))).collect()
}

fn standing(uid: &str, name: &str, record: Option<&ContainerStatus>, seen: Option<&Observed>) -> Standing {
    let recorded = record.and_then(recorded_end);
    match seen.unwrap_or(&Observed::Absent) {
        Observed::Running { attempt, since, started, ready } => {
            Standing::Running { attempt: *attempt, since: *since, started: *started, ready: *ready }
        }
        Observed::Exited { attempt, code, since, until, message, by_node } => match recorded {
            Some(end) if end.attempt >= *attempt => {
                let by_node = *by_node && end.attempt == *attempt;
                Standing::Ended(Box::new(End { by_node, ..end }))
            }
            _ => Standing::Ended(Box::new(End {
                attempt: *attempt,
                state: ContainerStateTerminated {
                    container_id: Some(container_id(uid, name, *attempt)),
                    exit_code: *code,
                    reason: Some(if *code == 0 { "Completed" } else { "Error" }.to_owned()),
                    message: message.clone(),
                    started_at: Some(whole_seconds(*since)),
                    finished_at: Some(whole_seconds(*until)),
                    signal: None,
                },
                previous: record.and_then(last_end).cloned(),
                recorded: false,
                by_node: *by_node,
            })),
        },
        Observed::Absent => match (recorded, record.filter(|record| is_running(record))) {
            (Some(end), _) => Standing::Ended(Box::new(end)),
            (None, Some(record)) => Standing::Ended(Box::new(End {
                attempt: attempt_of(record),
                state: lost(),
                previous: last_end(record).cloned(),
                recorded: false,
                by_node: false,
            })),
            (None, None) => Standing::Never,
        },
    }
}

/// The end of the last attempt, as the record has it.
fn recorded_end(record: &ContainerStatus) -> Option<End> {
    let state = record.state.as_ref()?;
    let (end, previous) = match (&state.terminated, &state.waiting) {
        (Some(end), _) => (end, last_end(record)),
        (None, Some(_)) => (last_end(record)?, None),
        (None, None) => return None,
    };
    let (attempt, state, previous) = (attempt_of(record), end.clone(), previous.cloned());
    Some(End { attempt, state, previous, recorded: true, by_node: false })
}

fn last_end(record: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    record.last_state.as_ref()?.terminated.as_ref()
}

fn is_running(record: &ContainerStatus) -> bool {
    record.state.as_ref().is_some_and(|state: &ContainerState| state.running.is_some())
}

fn attempt_of(record: &ContainerStatus) -> u32 {
    record.restart_count.try_into().unwrap_or_default()
}

/// The end of an attempt of which nothing is known but that it is over.
pub(super) fn lost() -> ContainerStateTerminated {
    ContainerStateTerminated {
        exit_code: LOST_CODE,
        reason: Some(LOST_REASON.to_owned()),
        message: Some(LOST_MESSAGE.to_owned()),
        ..ContainerStateTerminated::default()
    }
}

/// Each attempt is a container of its own.
pub(super) fn container_id(uid: &str, name: &str, attempt: u32) -> String {
    format!("mainstay://{uid}/{name}/{attempt}")
}
