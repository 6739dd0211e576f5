//! Simulations that are run, disturbed, run again and deleted.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use mainstay_testkit::simulation::{Family, Script};
use serde_json::{Value, json};

use crate::simulation::world::{disturbed, happens, killed, laboratory, load, ready, simulations};

/// A verdict, in a condition.
const FINISHED: &str = r#""Running" -> "Judged""#;
/// A run of so many seconds goes on while the operator is dead.
const SHORT: u64 = 4;
/// One of so many goes on while an answer is waited for that never comes, or another takes over.
const LONG: u64 = 240;

/// A story, told how long its run takes: if that were over before the operator can do anything again, it would have another end.
type Story = fn(u64) -> Script;

/// Without faults all of this happens; and wherever the operator dies, it comes to the same.
fn survives(story: Story, happens_then: &[&str]) {
    let check = laboratory().script(story(SHORT));
    happens(&check, happens_then);
    killed(check);
}

/// Whatever else goes wrong, it comes to the same. Only the clock has to be right, for a run is timed by it.
fn endures(script: Script) {
    disturbed(laboratory().script(script).but(Family::ClockJumps));
}

/// The simulation is made in a network that is ready.
fn made(seconds: u64, mut spec: Value) -> Script {
    spec["runTimeSeconds"] = json!(seconds);
    ready().create(load(&spec))
}

/// The same, and in the middle of the run the user goes on.
fn under_way(seconds: u64, spec: Value) -> Script {
    made(seconds, spec).at_once().wait(Duration::from_secs(3 + seconds / 2)).at_once()
}

#[test]
fn there_is_one_run_and_its_verdict() {
    let story: Story = |seconds| made(seconds, json!({}));
    survives(story, &[FINISHED, "dismissed"]);
    endures(story(SHORT));
}

#[test]
fn nobody_is_killed_twice_and_everybody_let_in_again() {
    let story: Story = |seconds| {
        let faults = json!([
            {"atSeconds": seconds / 4, "action": "partition", "durationSeconds": seconds / 2, "count": 1},
            {"atSeconds": seconds / 2, "action": "kill"},
            {"atSeconds": seconds / 2, "action": "pause"},
        ]);
        made(seconds, json!({"faults": faults}))
    };
    let happens_then =
        [FINISHED, "10.1.0.1 keeps out: created", "delete pods network-lab/peers-0-", "Unsupported"];
    survives(story, &happens_then);
}

#[test]
fn another_nonce_runs_it_once_more() {
    let story: Story = |seconds| {
        let again = json!({"spec": {"nonce": "2"}});
        made(seconds, json!({"nonce": "1"})).patch(&simulations(), "network-lab/load", again)
    };
    survives(story, &[FINISHED, r#""StoppingFormerRun" -> "StartingManager""#]);
    endures(story(SHORT));
}

#[test]
fn a_simulation_that_is_deleted_in_a_partition_leaves_nobody_apart() {
    let story: Story = |seconds| {
        let faults = json!([{"atSeconds": 0, "action": "partition", "durationSeconds": seconds}]);
        under_way(seconds, json!({"faults": faults})).delete(&simulations(), "network-lab/load")
    };
    survives(story, &["10.1.0.1 keeps out: created", "network-lab/load: removed"]);
    endures(story(LONG));
}

#[test]
fn a_simulation_whose_manager_is_deleted_fails() {
    let story: Story =
        |seconds| under_way(seconds, json!({})).delete(&Kind::of::<Job>(), "network-lab/load-manager");
    survives(story, &[r#""Running" -> "ManagerLost""#]);
}
