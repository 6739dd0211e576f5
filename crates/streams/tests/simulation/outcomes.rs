//! Jobs that fail and Jobs that complete.

use std::time::Duration;

use mainstay_testkit::simulation::{Family, Script};
use serde_json::json;

use crate::plugin::feeds;
use crate::world::{change, completes, disturbed, fails, orders, program, with_class, with_plugin};

#[test]
fn a_job_that_fails_is_a_crash_loop_until_the_spec_changes() {
    let script = Script::new()
        .create(program("broken", &fails()))
        .create(orders(&json!({"jobTemplateRef": {"name": "broken"}})))
        .patch(&feeds(), "orders", change(2, &json!({"jobTemplateRef": {"name": "feed"}})));
    disturbed(with_plugin(), script);
}

#[test]
fn a_budget_is_used_up_and_a_restart_begins_it_anew() {
    let script = Script::new()
        .create(program("broken", &fails()))
        .create(orders(&json!({"jobTemplateRef": {"name": "broken"}})))
        .patch(&feeds(), "orders", json!({"metadata": {"annotations": {"mainstay.dev/restart": "now"}}}));
    let class = json!({"restart": {"budget": 1, "backoffSeconds": 5}});
    // By a clock that is wrong by an hour, its time comes when nobody waits any more.
    disturbed(with_class(&class).but(Family::ClockJumps), script);
}

#[test]
fn a_job_that_completes_is_followed_by_the_next_though_nobody_keeps_it() {
    let mut done = program("done", &completes());
    done["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = json!(0);
    let script = Script::new()
        .create(done)
        .create(orders(&json!({"jobTemplateRef": {"name": "done"}})))
        .wait(Duration::from_mins(8))
        .patch(&feeds(), "orders", change(2, &json!({"suspended": true})));
    let class = json!({"restart": {"minimumIntervalSeconds": 600}});
    disturbed(with_class(&class).but(Family::ClockJumps), script);
}
