//! Containers that run nowhere: how they seem to run follows from the pod, the rules and the time. Pure; nothing is remembered.
//!
//! What a pod's annotations say goes before what [rules](super::rules) say, and these before the defaults. An annotation is for all
//! main containers, or with the name of a container at its end (`mainstay.dev/ends-after.migrate`) for that one alone, init
//! containers included.
//!
//! | annotation | field of a rule | what it says | default |
//! |---|---|---|---|
//! | `mainstay.dev/starts-after` | `startsAfter` | when it runs after it was told to, the first time | `1s` |
//! | `mainstay.dev/ready-after` | `readyAfter` | when it is ready after it runs; or `never` | `0s` |
//! | `mainstay.dev/ends-after` | `endsAfter` | when it ends by itself after it runs; or `never` | `never` if it is to run always, `1s` for init containers, otherwise `5s`, as it is if it has an exit code |
//! | `mainstay.dev/exit-code` | `exitCode` | how it ends by itself | `0` |
//! | `mainstay.dev/crashes` | `crashes` | how many attempts, from the first on, end with an error; or `always` | `0` |
//! | `mainstay.dev/stops-after` | `stopsAfter` | when it ends after it was asked to, within its grace period | `1s` |
//! | `mainstay.dev/cannot-pull` | `cannotPull` | whether its image cannot be pulled: `true` | `false` |
//! | `mainstay.dev/log` | `log` | what it has logged | nothing |
//!
//! An attempt that crashes ends after a second, if nothing says otherwise, with its exit code or 1. A container that is asked to stop
//! ends with 0 if it is to run always, with 143 (as by SIGTERM) otherwise: it was interrupted.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodStatus};
use mainstay::diff::content_hash;
use serde_json::json;

use super::lifecycle::{Start, Stop, after, left, stopping};
use super::rules::{Behaviour, Crashes, Moment, Rules, Span};
use super::runtime::{CannotStart, Observed};
use crate::time::whole_seconds;

const STARTS_AFTER: Duration = Duration::from_secs(1);
const STOPS_AFTER: Duration = Duration::from_secs(1);
const TASK_ENDS_AFTER: Duration = Duration::from_secs(5);
const INIT_ENDS_AFTER: Duration = Duration::from_secs(1);
const CRASHES_AFTER: Duration = Duration::from_secs(1);
/// The exit code of a program that SIGTERM ends.
const INTERRUPTED: i32 = 143;
const PREFIX: &str = "mainstay.dev/";

/// The condition of pods that run nowhere.
pub const CONDITION: &str = "mainstay.dev/Simulated";

/// The annotation of pods that run nowhere; its value is `true`.
pub const ANNOTATION: &str = "mainstay.dev/simulated";

/// Says in a pod's status that the pod is simulated.
pub(super) fn tell(status: &mut PodStatus, now: Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().any(|known| known.type_ == CONDITION) {
        return;
    }
    conditions.push(PodCondition {
        type_: CONDITION.to_owned(),
        status: "True".to_owned(),
        reason: Some("NoProcess".to_owned()),
        message: Some(
            "No process runs for this pod: what its status says is made up by annotations, rules and time"
                .to_owned(),
        ),
        last_transition_time: Some(whole_seconds(now)),
        ..PodCondition::default()
    });
}

/// What is seen of simulated containers.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) containers: BTreeMap<String, Observed>,
    pub(super) refused: BTreeMap<String, CannotStart>,
    /// When something else will be seen.
    pub(super) next: Option<Duration>,
}

impl Seen {
    fn look_again(&mut self, at: Timestamp, now: Timestamp) {
        self.next = [self.next, left(at, now)].into_iter().flatten().min();
    }
}

/// What is seen of the containers that the pod's status says to run. Nothing is seen of all others.
pub(super) fn observe(pod: &Pod, rules: &Rules, now: Timestamp) -> Seen {
    let mut seen = Seen::default();
    let stop = stopping(pod, now);
    for (container, is_init) in containers(pod) {
        let Some((attempt, since)) = record(pod, &container.name).and_then(running) else { continue };
        // Whoever spoils an annotation of a container that runs gets what there is without annotations.
        let course = course(pod, container, is_init, rules)
            .unwrap_or_else(|_| Course::default_of(pod, container, is_init));
        let (end, code) = course.end(attempt, since, stop.as_ref(), now);
        let observed = if let Some(until) = end.filter(|end| left(*end, now).is_none()) {
            Observed::Exited { attempt, code, since, until: until.min(now), message: None, by_node: false }
        } else {
            let ready_at = course.ready_at(since, now);
            let ready = ready_at.is_some_and(|at| left(at, now).is_none());
            end.into_iter().chain(ready_at).for_each(|at| seen.look_again(at, now));
            Observed::Running { attempt, since, started: true, ready }
        };
        seen.containers.insert(container.name.clone(), observed);
    }
    seen
}

/// What is seen once containers were told to start.
pub(super) fn start(pod: &Pod, rules: &Rules, starts: &[Start], now: Timestamp, seen: &mut Seen) {
    for start in starts {
        let Some((container, is_init)) = containers(pod).find(|(known, _)| known.name == start.container)
        else {
            continue;
        };
        let name = container.name.clone();
        match course(pod, container, is_init, rules) {
            Err(error) => {
                seen.refused.insert(name, error);
            }
            Ok(course) if course.cannot_pull => {
                seen.refused.insert(name, unpulled(container));
            }
            Ok(course) => {
                let wait = if start.attempt == 0 { course.starts_after } else { Duration::ZERO };
                let begins = after(start.since, wait, now);
                if left(begins, now).is_some() {
                    seen.look_again(begins, now);
                    continue;
                }
                let ready = course.ready_at(now, now).is_some_and(|at| left(at, now).is_none());
                let running = Observed::Running { attempt: start.attempt, since: now, started: true, ready };
                seen.containers.insert(name, running);
            }
        }
    }
}

/// What a container has logged; `None` if the pod has no such container.
pub fn log(pod: &Pod, container: &str, rules: &Rules) -> Option<String> {
    let (container, is_init) = containers(pod).find(|(known, _)| known.name == container)?;
    let was_started = record(pod, &container.name).is_some_and(|status| status.container_id.is_some());
    let course = course(pod, container, is_init, rules).ok().filter(|_| was_started);
    Some(course.map(|course| course.log).unwrap_or_default())
}

/// The address of a simulated pod, which follows from its name.
pub(super) fn address(namespace: &str, name: &str) -> String {
    let hash = u64::from_str_radix(&content_hash(&json!([namespace, name])), 16).unwrap_or_default();
    let [a, b, c, ..] = hash.to_be_bytes();
    // The upper half of 10.0.0.0/8, so that two pods hardly ever have one address.
    format!("10.{}.{b}.{c}", 128 | a)
}

/// How a container behaves, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Course {
    starts_after: Duration,
    ready_after: Moment,
    ends_after: Moment,
    exit_code: i32,
    crashes: Crashes,
    crashes_after: Duration,
    stops_after: Duration,
    stop_code: i32,
    cannot_pull: bool,
    log: String,
}

impl Course {
    fn default_of(pod: &Pod, container: &Container, is_init: bool) -> Self {
        Self::new(&Behaviour::default(), pod, container, is_init)
    }

    fn new(given: &Behaviour, pod: &Pod, container: &Container, is_init: bool) -> Self {
        let of_pod = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
        let is_server = container.restart_policy.as_deref().unwrap_or(of_pod) == "Always";
        let is_init = is_init && container.restart_policy.as_deref() != Some("Always");
        let ends_after = match given.ends_after {
            Some(moment) => moment,
            None if is_init => Moment::After(INIT_ENDS_AFTER),
            None if is_server && given.exit_code.is_none() => Moment::Never,
            None => Moment::After(TASK_ENDS_AFTER),
        };
        let crashes_after = match given.ends_after {
            Some(Moment::After(length)) => length,
            _ => CRASHES_AFTER,
        };
        Self {
            starts_after: given.starts_after.map_or(STARTS_AFTER, |Span(length)| length),
            ready_after: given.ready_after.unwrap_or(Moment::After(Duration::ZERO)),
            ends_after,
            exit_code: given.exit_code.unwrap_or_default().into(),
            crashes: given.crashes.unwrap_or(Crashes::Times(0)),
            crashes_after,
            stops_after: given.stops_after.map_or(STOPS_AFTER, |Span(length)| length),
            stop_code: if is_server { 0 } else { INTERRUPTED },
            cannot_pull: given.cannot_pull.unwrap_or_default(),
            log: given.log.clone().unwrap_or_default(),
        }
    }

    fn ready_at(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        at(self.ready_after, since, now)
    }

    /// When an attempt ends, if it does, and how.
    fn end(
        &self,
        attempt: u32,
        since: Timestamp,
        stop: Option<&Stop>,
        now: Timestamp,
    ) -> (Option<Timestamp>, i32) {
        let crashes = match self.crashes {
            Crashes::Always => true,
            Crashes::Times(times) => attempt < times,
        };
        let (own, code) = if crashes {
            (
                Some(after(since, self.crashes_after, now)),
                if self.exit_code == 0 { 1 } else { self.exit_code },
            )
        } else {
            (at(self.ends_after, since, now), self.exit_code)
        };
        let asked = stop.map(|stop| match stop.since {
            Some(asked) => after(asked.max(since), self.stops_after.min(stop.grace), now),
            None => now,
        });
        match (own, asked) {
            (own, Some(asked)) if own.is_none_or(|own| asked < own) => (Some(asked), self.stop_code),
            (own, _) => (own, code),
        }
    }
}

fn at(moment: Moment, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    match moment {
        Moment::After(length) => Some(after(since, length, now)),
        Moment::Never => None,
    }
}

/// How a container behaves, or which annotation is wrong.
fn course(pod: &Pod, container: &Container, is_init: bool, rules: &Rules) -> Result<Course, CannotStart> {
    let mut given =
        rules.behaviour(container.image.as_deref().unwrap_or_default()).cloned().unwrap_or_default();
    let annotations = Annotations { pod, container: &container.name, is_init };
    annotations.lay_over(&mut given)?;
    Ok(Course::new(&given, pod, container, is_init))
}

/// What a pod's annotations say of one container.
struct Annotations<'a> {
    pod: &'a Pod,
    container: &'a str,
    is_init: bool,
}

impl Annotations<'_> {
    fn lay_over(&self, given: &mut Behaviour) -> Result<(), CannotStart> {
        self.set("starts-after", &mut given.starts_after, Span::from_str)?;
        self.set("ready-after", &mut given.ready_after, Moment::from_str)?;
        self.set("ends-after", &mut given.ends_after, Moment::from_str)?;
        let code = |text: &str| text.parse().map_err(|_| format!("{text:?} is no exit code from 0 to 255"));
        self.set("exit-code", &mut given.exit_code, code)?;
        self.set("crashes", &mut given.crashes, Crashes::from_str)?;
        self.set("stops-after", &mut given.stops_after, Span::from_str)?;
        let word = |text: &str| text.parse().map_err(|_| format!("{text:?} is neither true nor false"));
        self.set("cannot-pull", &mut given.cannot_pull, word)?;
        self.set("log", &mut given.log, |text| Ok(text.to_owned()))
    }

    fn set<T>(
        &self,
        name: &str,
        field: &mut Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<(), CannotStart> {
        let annotations = self.pod.metadata.annotations.as_ref();
        let general = (!self.is_init).then(|| format!("{PREFIX}{name}"));
        let keys = [Some(format!("{PREFIX}{name}.{}", self.container)), general];
        let found = keys.into_iter().flatten().find_map(|key| {
            let text = annotations?.get(&key)?;
            Some((key, text))
        });
        let Some((key, text)) = found else { return Ok(()) };
        *field = Some(parse(text).map_err(|message| CannotStart {
            reason: "CreateContainerConfigError".to_owned(),
            message: format!("metadata.annotations[{key}]: {message}"),
        })?);
        Ok(())
    }
}

fn unpulled(container: &Container) -> CannotStart {
    let image = container.image.as_deref().unwrap_or_default();
    CannotStart {
        reason: "ImagePullBackOff".to_owned(),
        message: format!(
            "Back-off pulling image \"{image}\": ErrImagePull: it is simulated as one that cannot be pulled"
        ),
    }
}

/// All containers, and whether each is an init container.
fn containers(pod: &Pod) -> impl Iterator<Item = (&Container, bool)> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| {
        let init = spec.init_containers.iter().flatten().map(|container| (container, true));
        init.chain(spec.containers.iter().map(|container| (container, false)))
    })
}

fn record<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let mut all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    all.find(|status| status.name == name)
}

/// Which attempt runs, and since when.
fn running(status: &ContainerStatus) -> Option<(u32, Timestamp)> {
    let started = status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?;
    Some((status.restart_count.try_into().unwrap_or_default(), started.0))
}

#[cfg(test)]
mod tests;
