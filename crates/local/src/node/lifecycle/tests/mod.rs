//! Scenes from the life of pods: what is seen at which second, and what follows.

mod endings;
mod laws;
mod scenes;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::Expect;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::runtime::{CannotStart, Observed};
use super::{Addresses, Decision, Situation, decide};

/// The time so many seconds after the beginning.
pub(super) fn at(seconds: i64) -> Timestamp {
    let beginning: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    beginning.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// A pod and what is seen of its containers.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) pod: Pod,
    pub(super) seen: BTreeMap<String, Observed>,
    pub(super) refused: BTreeMap<String, CannotStart>,
    pub(super) now: i64,
}

impl Stage {
    /// A pod of this spec.
    pub(super) fn new(spec: &str) -> Self {
        let mut pod = Pod { spec: Some(serde_saphyr::from_str(spec).unwrap()), ..Pod::default() };
        let text = |text: &str| Some(text.to_owned());
        pod.metadata.name = text("p");
        pod.metadata.namespace = text("default");
        pod.metadata.uid = text("u");
        pod.metadata.generation = Some(1);
        let (phase, qos_class) = (text("Pending"), text("BestEffort"));
        pod.status = Some(PodStatus { phase, qos_class, ..PodStatus::default() });
        Self { pod, seen: BTreeMap::new(), refused: BTreeMap::new(), now: 0 }
    }

    /// One whose `startTime` is recorded.
    pub(super) fn begun(spec: &str) -> Self {
        let mut stage = Self::new(spec);
        stage.step();
        stage
    }

    pub(super) fn at(&mut self, seconds: i64) -> &mut Self {
        self.now = seconds;
        self
    }

    pub(super) fn runs(&mut self, container: &str, attempt: u32, since: i64) -> &mut Self {
        let running = Observed::Running { attempt, since: at(since), started: true, ready: true };
        self.seen.insert(container.to_owned(), running);
        self
    }

    pub(super) fn ends(
        &mut self,
        container: &str,
        attempt: u32,
        code: i32,
        since: i64,
        until: i64,
    ) -> &mut Self {
        let (since, until) = (at(since), at(until));
        let exited = Observed::Exited { attempt, code, since, until, message: None, by_node: false };
        self.seen.insert(container.to_owned(), exited);
        self
    }

    /// The same, because the node was shut down.
    pub(super) fn ends_with_node(&mut self, container: &str, code: i32, until: i64) -> &mut Self {
        let (since, until, message) = (at(1), at(until), None);
        let exited = Observed::Exited { attempt: 0, code, since, until, message, by_node: true };
        self.seen.insert(container.to_owned(), exited);
        self
    }

    pub(super) fn deleted(&mut self, seconds: i64, grace: i64) -> &mut Self {
        self.pod.metadata.deletion_timestamp = Some(Time(at(seconds.saturating_add(grace))));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
        self
    }

    pub(super) fn decide(&self) -> Decision {
        let addresses = Addresses { pod: "10.244.0.1".into(), host: "192.0.2.1".into() };
        decide(&Situation {
            pod: &self.pod,
            seen: &self.seen,
            refused: &self.refused,
            addresses: &addresses,
            now: at(self.now),
        })
    }

    /// Decides and records the status.
    pub(super) fn step(&mut self) -> Decision {
        let decision = self.decide();
        self.pod.status = Some(decision.status.clone());
        decision
    }

    /// Decides and records until nothing changes any more, and tells the last decision.
    pub(super) fn settle(&mut self) -> String {
        for _ in 0..5 {
            let before = self.pod.status.clone();
            let decision = self.step();
            if before == self.pod.status {
                return tell(&decision);
            }
        }
        panic!("it does not settle: {:?}", self.pod.status);
    }
}

pub(super) fn check(told: &str, expected: &Expect) {
    expected.assert_eq(told);
}

/// A decision in a few lines.
pub(super) fn tell(decision: &Decision) -> String {
    let status = &decision.status;
    let mut text = status.phase.clone().unwrap_or_default();
    for said in [&status.reason, &status.message].into_iter().flatten() {
        let _ = write!(text, " {said}");
    }
    for container in status.init_container_statuses.iter().chain(&status.container_statuses).flatten() {
        let _ = write!(text, "\n{}", tell_container(container));
    }
    let _ = write!(text, "\n{}", tell_conditions(status));
    for start in &decision.starts {
        let _ = write!(text, "\nstart {} {}", start.container, start.attempt);
    }
    if let Some(stop) = &decision.stop {
        let _ = write!(text, "\nstop within {}s", stop.grace.as_secs());
    }
    if let Some(again) = decision.again {
        let _ = write!(text, "\nagain after {}s", again.as_secs());
    }
    if decision.over {
        text.push_str("\nover");
    }
    text
}

/// Conditions in one line: `+` those that are true, `-` those that are not. What is said of the containers is not said again of the pod.
fn tell_conditions(status: &PodStatus) -> String {
    let conditions = status.conditions.iter().flatten();
    let told = conditions.map(|condition| {
        let sign = if condition.status == "True" { "+" } else { "-" };
        let said = [&condition.reason, &condition.message].into_iter().flatten().map(String::as_str);
        let said: Vec<_> = said.filter(|_| condition.type_ != "ContainersReady").collect();
        format!("{sign}{} {}", condition.type_, said.join(": ")).trim_end().to_owned()
    });
    told.collect::<Vec<_>>().join(" ")
}

fn tell_container(status: &ContainerStatus) -> String {
    let mut text = format!("{}: {}", status.name, tell_state(status.state.as_ref()));
    if status.last_state.as_ref().is_some_and(|last| last.terminated.is_some()) {
        let _ = write!(text, ", before {}", tell_state(status.last_state.as_ref()));
    }
    if status.restart_count > 0 {
        let _ = write!(text, ", restarts {}", status.restart_count);
    }
    let marks = [("started", status.started == Some(true)), ("ready", status.ready)];
    for (mark, _) in marks.iter().filter(|(_, is_so)| *is_so) {
        let _ = write!(text, ", {mark}");
    }
    text
}

fn tell_state(state: Option<&ContainerState>) -> String {
    let Some(state) = state else { return "nothing".into() };
    if state.running.is_some() {
        return "running".into();
    }
    if let Some(end) = &state.terminated {
        return format!("{} {}", end.reason.as_deref().unwrap_or_default(), end.exit_code);
    }
    let waiting = state.waiting.clone().unwrap_or_default();
    let said: Vec<_> = [waiting.reason, waiting.message].into_iter().flatten().collect();
    said.join(" ")
}
