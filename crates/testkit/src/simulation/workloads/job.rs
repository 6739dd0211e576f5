//! A Job has pods that end: as many at once as it allows, until enough have succeeded or too many failed.
//!
//! Pods that have ended stay until the Job goes. What was once counted is not forgotten when a pod is deleted.

use mainstay::conditions::{Conditions, State};
use mainstay::{Error, SyncRequest, SyncResponse};
use serde_json::{Value, json};

use super::{LivePod, count, kept_pod, numbers, pod_from, seconds, text};

/// How many pods of a Job are in which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tally {
    active: i64,
    ready: i64,
    succeeded: i64,
    failed: i64,
}

/// Where a Job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Complete,
    Failed,
    Suspended,
    /// So many pods shall be active.
    Running(i64),
}

pub(super) fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let job = request.parent_json();
    let conditions = Conditions::of_status(&job["status"]);
    let pods = LivePod::all(request);
    if text(&job["spec"]["completionMode"]) == "Indexed" {
        return Err(Error::terminal("the workload controllers of a simulation know no indexed Jobs"));
    }
    let mut response = SyncResponse::new();
    if conditions.is_true("Complete") || conditions.is_true("Failed") {
        for pod in &pods {
            response.add_child(kept_pod(&pod.name))?;
        }
        return Ok(response);
    }
    let tally = tally(job, &pods);
    let phase = phase(&job["spec"], tally);
    response.set_status(status(request, conditions, phase, tally)?)?;
    for pod in pods_of(job, request.name(), phase, &pods) {
        response.add_child(pod)?;
    }
    Ok(response)
}

fn tally(job: &Value, pods: &[LivePod]) -> Tally {
    let told = |field: &str| job["status"][field].as_i64().unwrap_or(0);
    let seen = |phase: &str| count(pods, |pod| pod.has_phase(phase));
    Tally {
        active: count(pods, LivePod::is_active),
        ready: count(pods, |pod| pod.is_active() && pod.is_ready()),
        succeeded: seen("Succeeded").max(told("succeeded")),
        failed: seen("Failed").max(told("failed")),
    }
}

fn phase(spec: &Value, tally: Tally) -> Phase {
    let number = |field: &str| spec[field].as_i64();
    let parallelism = number("parallelism").unwrap_or(1);
    let completions = number("completions");
    let is_complete = match completions {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0 && tally.active == 0,
    };
    if is_complete {
        Phase::Complete
    } else if tally.failed > number("backoffLimit").unwrap_or(6) {
        Phase::Failed
    } else if spec["suspend"] == true {
        Phase::Suspended
    } else {
        match completions {
            Some(completions) => Phase::Running(parallelism.min(completions - tally.succeeded)),
            // Pods that share a queue end together: when one has succeeded no other begins.
            None if tally.succeeded > 0 => Phase::Running(tally.active.min(parallelism)),
            None => Phase::Running(parallelism),
        }
    }
}

/// Ended pods stay, surplus ones go, missing ones come under the next free number.
fn pods_of(job: &Value, name: &str, phase: Phase, live: &[LivePod]) -> Vec<Value> {
    let mut missing = if let Phase::Running(pods) = phase { pods } else { 0 };
    let mut pods = Vec::new();
    for pod in live {
        let is_ended = pod.has_ended();
        if is_ended || (missing > 0 && !pod.is_going()) {
            missing -= i64::from(!is_ended);
            pods.push(kept_pod(&pod.name));
        }
    }
    let names = (0..).map(|number: i64| format!("{name}-{number}"));
    let free = names.filter(|name| live.iter().all(|pod| pod.name != *name));
    let missing = usize::try_from(missing).unwrap_or(0);
    pods.extend(free.take(missing).map(|name| pod_from(&job["spec"]["template"], &name)));
    pods
}

fn status(
    request: &SyncRequest,
    mut conditions: Conditions,
    phase: Phase,
    tally: Tally,
) -> Result<Value, Error> {
    let (live, now) = (&request.parent_json()["status"], request.now());
    let Tally { active, ready, succeeded, failed } = tally;
    let counts = [("active", active), ("ready", ready), ("succeeded", succeeded), ("failed", failed)];
    let mut status = numbers(&[], &counts);
    let was_suspended = conditions.is_true("Suspended");
    let mut say = |condition: &str, state: State, reason: &str, message: &str| {
        conditions.set(condition, state, reason, message, None, now)
    };
    match phase {
        Phase::Complete => {
            for condition in ["SuccessCriteriaMet", "Complete"] {
                say(condition, State::True, "CompletionsReached", "enough pods have succeeded")?;
            }
            status.insert("completionTime".into(), json!(seconds(now)));
        }
        Phase::Failed => {
            for condition in ["FailureTarget", "Failed"] {
                say(condition, State::True, "BackoffLimitExceeded", "too many pods have failed")?;
            }
        }
        Phase::Suspended => {
            say("Suspended", State::True, "JobSuspended", "it is suspended")?;
        }
        Phase::Running(_) if was_suspended => {
            say("Suspended", State::False, "JobResumed", "it has been resumed")?;
        }
        Phase::Running(_) => {}
    }
    if phase != Phase::Suspended {
        let known = live["startTime"].as_str().filter(|_| !was_suspended);
        status.insert("startTime".into(), json!(known.map_or_else(|| seconds(now), str::to_owned)));
    }
    if conditions.iter().next().is_some() {
        status.insert("conditions".into(), serde_json::to_value(conditions)?);
    }
    Ok(Value::Object(status))
}
