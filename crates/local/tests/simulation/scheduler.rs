//! The scheduler in simulated worlds: whatever goes wrong, no node is given more than it has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_local::scheduler::{NAME, configure};
use mainstay_testkit::simulation::{Check, Script, State, check, operator};
use serde_json::{Value, json};

fn pod(name: &str, cpu: i64) -> Value {
    let requests = json!({"cpu": format!("{cpu}m")});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": requests}}]},
    })
}

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// The cpus that pods of a node ask for are there.
fn no_node_has_too_much(state: &State) -> Result<(), String> {
    let mut used: BTreeMap<&str, i64> = BTreeMap::new();
    for pod in state.of(&Kind::of::<Pod>()) {
        let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
        let cpu =
            pod.pointer("/spec/containers/0/resources/requests/cpu").and_then(Value::as_str).unwrap_or("0m");
        if pod["status"]["phase"] != "Succeeded" {
            *used.entry(node).or_default() += cpu.trim_end_matches('m').parse::<i64>().unwrap_or_default();
        }
    }
    match used.iter().find(|(_, used)| **used > 1000) {
        Some((node, used)) => Err(format!("{node} has 1000m, and {used}m are asked of it")),
        None => Ok(()),
    }
}

fn scheduler(script: Script) -> Check {
    check(operator(NAME, configure))
        .given(node("one"))
        .script(script)
        .always("no node is given more than it has", no_node_has_too_much)
}

// The user is patient: of pods that come at once, the one that is seen first is placed.
#[test]
fn whatever_goes_wrong_pods_are_placed_when_there_is_room() {
    let script = Script::new().create(pod("first", 600)).create(pod("second", 600)).patch_status(
        &Kind::of::<Pod>(),
        "first",
        json!({"status": {"phase": "Succeeded"}}),
    );
    scheduler(script).patient().every_fault().seeds(5).run();
}

#[test]
fn wherever_it_crashes_and_whatever_it_sees_late_pods_that_come_at_once_do_not_share_what_is_enough_for_one()
{
    let script = Script::new()
        .create(pod("a", 600))
        .at_once()
        .create(pod("b", 600))
        .at_once()
        .create(pod("c", 300))
        .at_once()
        .create(pod("d", 300))
        .create(node("two"));
    let pods = Kind::of::<Pod>();
    // Which of them are placed where is up to the order in which they are seen.
    let check = scheduler(script).ignoring_in(&pods, "/spec/nodeName").ignoring_in(&pods, "/status");
    check.every_crash_point().every_lost_event().every_time_travel().seeds(10).run();
}
