//! Jobs that fail and Jobs that complete.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::simulation::world::{
    change, completes, disturbed, failed, fails, feeds, killed, orders, program, run_of_orders, with_class,
    with_plugin, without_pods,
};

#[test]
fn whatever_goes_wrong_a_job_that_fails_is_a_crash_loop() {
    let job = Kind::of::<Job>();
    let script = Script::new().create(orders(&json!({}))).patch_status(&job, &run_of_orders(1), failed());
    disturbed(without_pods(&json!({})), script);
}

#[test]
fn a_crash_loop_is_over_when_the_spec_changes() {
    let script = Script::new().create(orders(&json!({"jobTemplateRef": {"name": "broken"}}))).patch(
        &feeds(),
        "orders",
        change(2, &json!({"jobTemplateRef": {"name": "feeds"}})),
    );
    killed(with_plugin().given(program("broken", &fails())), script);
}

#[test]
fn a_budget_is_used_up_and_a_restart_begins_it_anew() {
    let job = Kind::of::<Job>();
    let script = Script::new()
        .create(orders(&json!({})))
        .patch_status(&job, &run_of_orders(1), failed())
        .patch_status(&job, &run_of_orders(2), failed())
        .patch(&feeds(), "orders", json!({"metadata": {"annotations": {"mainstay.dev/restart": "now"}}}));
    killed(without_pods(&json!({"restart": {"budget": 1, "backoffSeconds": 5}})), script);
}

#[test]
fn a_job_that_completes_is_followed_by_the_next_though_nobody_keeps_it() {
    let mut done = program("done", &completes());
    done["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = json!(0);
    let script = Script::new()
        .create(orders(&json!({"jobTemplateRef": {"name": "done"}})))
        .wait(Duration::from_mins(8))
        .patch(&feeds(), "orders", change(2, &json!({"suspended": true})));
    let class = json!({"restart": {"minimumIntervalSeconds": 600}});
    killed(with_class(&class).given(done), script);
}
