//! Pods: their status is told from the states of their containers.

use super::{AGE, Builtin, NAME, Row, at, count_of, text, text_of, wide};
use crate::table::age::{since, time};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) static POD: Builtin = Builtin {
    columns: &[
        NAME,
        text("Ready"),
        text("Status"),
        text("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells: pod,
    condition: Some(completed),
};

fn completed(row: &Row<'_>) -> Option<Value> {
    let (reason, message) = match row.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": reason, "message": message}))
}

fn pod(row: &Row<'_>) -> Vec<Value> {
    let summary = Summary::of(row);
    let total = row.list("spec.containers").len() + sidecars(row).count();
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, since(Some(last), row.now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        row.name().into(),
        format!("{}/{total}", summary.ready).into(),
        reason(row, summary.reason).into(),
        restarts.into(),
        row.age(),
        row.text_or("status.podIP", "<none>").into(),
        row.text_or("spec.nodeName", "<none>").into(),
        row.text_or("status.nominatedNodeName", "<none>").into(),
        readiness_gates(row).into(),
    ]
}

/// A pod on its way out says so, unless it has ended already.
fn reason(row: &Row<'_>, reason: String) -> String {
    let ended = matches!(row.text("status.phase"), "Succeeded" | "Failed");
    match row.text("status.reason") {
        _ if !row.is_deleted() => reason,
        "NodeLost" => "Unknown".to_owned(),
        _ if ended => reason,
        _ => "Terminating".to_owned(),
    }
}

fn readiness_gates(row: &Row<'_>) -> String {
    let gates = row.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| row.condition("status.conditions", text_of(gate, "conditionType")));
    format!("{}/{}", open.count(), gates.len())
}

/// Init containers that keep running beside the others.
fn sidecars<'a>(row: &Row<'a>) -> impl Iterator<Item = &'a str> {
    let sidecars = row.list("spec.initContainers").iter();
    sidecars.filter(|container| text_of(container, "restartPolicy") == "Always").map(|c| text_of(c, "name"))
}

struct Summary {
    ready: i64,
    reason: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += count_of(status, "restartCount");
        self.last = self.last.max(time(at(status, "lastState.terminated.finishedAt")));
    }
}

impl Summary {
    fn of(row: &Row<'_>) -> Summary {
        let mut reason = row.text_or("status.phase", "").to_owned();
        if !row.text("status.reason").is_empty() {
            row.text("status.reason").clone_into(&mut reason);
        }
        let gated = |condition: &Value| {
            text_of(condition, "type") == "PodScheduled" && text_of(condition, "reason") == "SchedulingGated"
        };
        if row.list("status.conditions").iter().any(gated) {
            "SchedulingGated".clone_into(&mut reason);
        }

        let mut ready = 0;
        let (mut restarts, mut sidecar_restarts) = (Restarts::default(), Restarts::default());
        let mut initializing = false;
        for (index, status) in row.list("status.initContainerStatuses").iter().enumerate() {
            restarts.add(status);
            let is_sidecar = sidecars(row).any(|name| name == text_of(status, "name"));
            if is_sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = at(status, "state.terminated");
            if terminated.is_some_and(|ended| count_of(ended, "exitCode") == 0) {
                continue;
            }
            if is_sidecar && at(status, "started") == Some(&Value::Bool(true)) {
                ready += i64::from(at(status, "ready") == Some(&Value::Bool(true)));
                continue;
            }
            let waiting = text_of(status, "state.waiting.reason");
            let why = match terminated {
                Some(ended) => ending(ended),
                None if !waiting.is_empty() && waiting != "PodInitializing" => waiting.to_owned(),
                None => format!("{index}/{}", row.list("spec.initContainers").len()),
            };
            reason = format!("Init:{why}");
            initializing = true;
            break;
        }
        if !initializing || row.condition("status.conditions", "Initialized") {
            restarts = sidecar_restarts;
            reason = running_reason(row, reason, &mut ready, &mut restarts);
        }
        Summary { ready, reason, restarts: restarts.count, last_restart: restarts.last }
    }
}

/// Why a container ended.
fn ending(terminated: &Value) -> String {
    match (text_of(terminated, "reason"), count_of(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", count_of(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn running_reason(row: &Row<'_>, mut reason: String, ready: &mut i64, restarts: &mut Restarts) -> String {
    let mut running = false;
    let mut failure = None;
    for status in row.list("status.containerStatuses").iter().rev() {
        restarts.add(status);
        let waiting = text_of(status, "state.waiting.reason");
        let is_ready = at(status, "ready") == Some(&Value::Bool(true));
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if let Some(terminated) = at(status, "state.terminated") {
            reason = ending(terminated);
            if count_of(terminated, "exitCode") != 0 {
                failure = Some(reason.clone());
            }
        } else if is_ready && at(status, "state.running").is_some() {
            running = true;
            *ready += 1;
        }
    }
    if reason != "Completed" {
        return reason;
    }
    let conditions = row.list("status.conditions");
    let is_ready = |c: &Value| text_of(c, "type") == "Ready" && text_of(c, "status") == "True";
    if running && conditions.iter().any(is_ready) {
        "Running".to_owned()
    } else if let Some(failure) = failure {
        failure
    } else if running {
        "NotReady".to_owned()
    } else {
        reason
    }
}
