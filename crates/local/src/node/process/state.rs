//! What is known of pods and their containers while the node runs. A plain value behind a lock that is never held across an await.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use mainstay::clock::later;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::runtime::{Observed, PodId};
use super::logs::capture::Progress;
use super::probes::Finding;
use super::record::{Exit, Record, Remembered};

/// That a container has to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    /// By when at the latest.
    pub(super) deadline: Instant,
    /// Why, if it is not its pod that ends.
    pub(super) message: Option<String>,
}

/// A container whose process runs.
pub(super) struct Running {
    /// The process, and its group.
    pub(super) pid: u32,
    /// Whether it has started, as its startup probe sees it.
    pub(super) started: bool,
    /// Whether it is ready, as its readiness probe sees it.
    pub(super) ready: bool,
    /// Tells its supervisor to end it.
    pub(super) stop: watch::Sender<Option<Stop>>,
    /// Its supervisor, which ends after it.
    pub(super) supervisor: Option<JoinHandle<()>>,
}

/// The last attempt of a container.
pub(super) struct Attempt {
    /// Which one.
    pub(super) number: u32,
    /// From when.
    pub(super) since: Timestamp,
    /// Its process, while it runs.
    pub(super) running: Option<Running>,
    /// How it ended, if it has.
    pub(super) exit: Option<Exit>,
    /// How its log comes on.
    pub(super) progress: Option<watch::Receiver<Progress>>,
}

/// A pod that has something here.
pub(super) struct PodState {
    /// Its address.
    pub(super) address: Ipv4Addr,
    /// The pod as it was last seen; none before a container of it is started.
    pub(super) object: Option<Pod>,
    /// Its containers by name.
    pub(super) containers: BTreeMap<String, Attempt>,
}

/// All pods.
#[derive(Default)]
pub(super) struct Pods(pub(super) BTreeMap<PodId, PodState>);

impl Attempt {
    /// What a node sees of it.
    pub(super) fn observed(&self) -> Observed {
        match (&self.running, &self.exit) {
            (Some(running), _) => Observed::Running {
                attempt: self.number,
                since: self.since,
                started: running.started,
                ready: running.started && running.ready,
            },
            (None, Some(exit)) => Observed::Exited {
                attempt: self.number,
                code: exit.code,
                since: self.since,
                until: exit.until,
                message: exit.message.clone(),
                by_node: exit.by_node,
            },
            (None, None) => Observed::Absent,
        }
    }

    /// Tells the process to end. The earliest deadline holds, and the first reason.
    fn stop(&self, grace: Duration, message: Option<String>) {
        let Some(running) = &self.running else { return };
        let deadline = later(Instant::now(), grace);
        running.stop.send_if_modified(|stop| match stop {
            Some(stop) if stop.deadline <= deadline => false,
            Some(stop) => {
                stop.deadline = deadline;
                true
            }
            None => {
                *stop = Some(Stop { deadline, message });
                true
            }
        });
    }
}

impl From<Record> for Attempt {
    fn from(record: Record) -> Self {
        Self { number: record.attempt, since: record.since, running: None, exit: record.exit, progress: None }
    }
}

impl Pods {
    /// As they were left.
    pub(super) fn remembered(all: Vec<Remembered>) -> Self {
        let pods = all.into_iter().map(|pod| {
            let containers = pod.containers.into_iter().map(|(name, record)| (name, record.into())).collect();
            (pod.id, PodState { address: pod.address, object: None, containers })
        });
        Self(pods.collect())
    }

    /// The last attempt of a container.
    pub(super) fn attempt(&self, pod: &PodId, container: &str) -> Option<&Attempt> {
        self.0.get(pod)?.containers.get(container)
    }

    /// This attempt of a container, if it is still the last.
    pub(super) fn attempt_mut(&mut self, pod: &PodId, container: &str, number: u32) -> Option<&mut Attempt> {
        let attempt = self.0.get_mut(pod)?.containers.get_mut(container)?;
        (attempt.number == number).then_some(attempt)
    }

    /// Tells all processes of a pod to end.
    pub(super) fn stop(&self, pod: &PodId, grace: Duration) {
        for attempt in self.0.get(pod).into_iter().flat_map(|pod| pod.containers.values()) {
            attempt.stop(grace, None);
        }
    }

    /// Takes in what probes found out. Says whether anything changed.
    pub(super) fn take(
        &mut self,
        pod: &PodId,
        container: &str,
        number: u32,
        finding: Finding,
        default_grace: Duration,
    ) -> bool {
        let Some(attempt) = self.attempt_mut(pod, container, number) else { return false };
        if let Finding::Unhealthy { message, grace } = finding {
            attempt.stop(grace.unwrap_or(default_grace), Some(message));
            return false;
        }
        let Some(running) = &mut attempt.running else { return false };
        let before = (running.started, running.ready);
        match finding {
            Finding::Started => running.started = true,
            Finding::Ready(ready) => running.ready = ready,
            Finding::Unhealthy { .. } => {}
        }
        before != (running.started, running.ready)
    }

    /// All processes that run, with their pods and containers.
    pub(super) fn running(&self) -> impl Iterator<Item = (&PodId, &str, &Running)> {
        let attempts = self.0.iter().flat_map(|(id, pod)| pod.containers.iter().map(move |one| (id, one)));
        attempts.filter_map(|(id, (name, attempt))| Some((id, name.as_str(), attempt.running.as_ref()?)))
    }

    /// The supervisors of a pod's processes, to be waited for.
    pub(super) fn take_supervisors(&mut self, pod: &PodId) -> Vec<JoinHandle<()>> {
        let attempts = self.0.get_mut(pod).into_iter().flat_map(|pod| pod.containers.values_mut());
        attempts.filter_map(|attempt| attempt.running.as_mut()?.supervisor.take()).collect()
    }
}
