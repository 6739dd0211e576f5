//! Simulations that are run, disturbed, run again and deleted.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use serde_json::json;

use crate::world::{disturbed, load, ready, simulations_kind};

/// A verdict, in a condition.
const FINISHED: &str = r#""Running" -> "Judged""#;

#[test]
fn wherever_the_operator_dies_there_is_one_run_and_its_verdict() {
    let script = ready().create(load(&json!({})));
    disturbed(script, &[FINISHED, "dismissed"]);
}

#[test]
fn wherever_the_operator_dies_nobody_is_killed_twice_and_everybody_let_in_again() {
    let faults = json!([
        {"atSeconds": 1, "action": "partition", "durationSeconds": 2, "count": 1},
        {"atSeconds": 2, "action": "kill", "count": 2},
        {"atSeconds": 2, "action": "pause"},
    ]);
    let script = ready().create(load(&json!({"faults": faults})));
    disturbed(
        script,
        &[FINISHED, "10.1.0.0:5001 keeps out: created", "delete pods network-lab/peers-0-1", "Unsupported"],
    );
}

#[test]
fn another_nonce_runs_it_once_more() {
    let script = ready().create(load(&json!({"nonce": "1"}))).patch(
        &simulations_kind(),
        "network-lab/load",
        json!({"spec": {"nonce": "2"}}),
    );
    disturbed(script, &[FINISHED, r#""StoppingFormerRun" -> "StartingManager""#]);
}

#[test]
fn a_simulation_that_is_deleted_in_a_partition_leaves_nobody_apart() {
    let faults = json!([{"atSeconds": 0, "action": "partition", "durationSeconds": 4}]);
    let script = ready()
        .create(load(&json!({"faults": faults})))
        .at_once()
        .wait(Duration::from_secs(5))
        .at_once()
        .delete(&simulations_kind(), "network-lab/load");
    disturbed(script, &["10.1.0.0:5001 keeps out: created", "network-lab/load: removed"]);
}

#[test]
fn a_simulation_whose_manager_is_deleted_fails() {
    let script = ready()
        .create(load(&json!({})))
        .at_once()
        .wait(Duration::from_secs(5))
        .at_once()
        .delete(&Kind::of::<Job>(), "network-lab/load-manager");
    disturbed(script, &[r#""Running" -> "ManagerLost""#]);
}
