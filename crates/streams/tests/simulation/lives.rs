//! Streams that are made, changed, suspended and deleted, and Jobs with which somebody meddles.

use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use mainstay_testkit::simulation::Script;
use serde_json::{Value, json};

use crate::simulation::world::{
    change, disturbed, feeds, killed, orders, plagued, run_of_orders, with_plugin, without_pods,
};

fn made() -> Script {
    Script::new().create(orders(&json!({})))
}

fn changed(script: Script, generation: u32, spec: &Value) -> Script {
    script.patch(&feeds(), "orders", change(generation, spec))
}

/// The one story in which everything goes wrong at every place: what an operator does when it starts is the same in all of them.
#[test]
fn whatever_goes_wrong_a_stream_gets_its_job_and_the_next_one_and_rests_when_it_is_told_to() {
    let script = changed(made(), 2, &json!({"source": "b"}));
    let script = changed(script, 3, &json!({"suspended": true}));
    plagued(without_pods(&json!({})), changed(script, 4, &json!({"suspended": false})));
}

#[test]
fn wherever_it_dies_the_pods_of_the_last_job_are_waited_for() {
    killed(with_plugin(), changed(made(), 2, &json!({"source": "b"})));
}

#[test]
fn a_stream_is_deleted_and_made_again() {
    let script = made().delete(&feeds(), "orders").at_once().create(orders(&json!({"source": "c"})));
    disturbed(without_pods(&json!({})), script);
}

#[test]
fn changes_that_come_before_the_last_is_carried_out_end_the_same() {
    let script = Script::new().create(orders(&json!({"suspended": true}))).at_once();
    let script = changed(script, 2, &json!({"suspended": false}));
    let script = changed(script, 3, &json!({"source": "b"})).at_once();
    let script = changed(script, 4, &json!({"suspended": true}));
    // Whichever of the last two is seen first is why the run was stopped.
    disturbed(without_pods(&json!({})).ignoring("/status/history/*/reason"), script);
}

#[test]
fn an_annotation_suspends_whatever_the_spec_says() {
    let annotation = json!({"metadata": {"annotations": {"mainstay.dev/suspend": "true"}}});
    let script =
        Script::new().create(orders(&json!({"suspended": true}))).patch(&feeds(), "orders", annotation);
    disturbed(without_pods(&json!({})), changed(script, 2, &json!({"suspended": false})));
}

#[test]
fn a_job_that_somebody_deletes_is_made_anew() {
    disturbed(without_pods(&json!({})), made().delete(&Kind::of::<Job>(), &run_of_orders(1)));
}

#[test]
fn a_job_that_somebody_changes_is_made_anew() {
    let job = Kind::of::<Job>();
    let script = made().patch(&job, &run_of_orders(1), json!({"spec": {"parallelism": 2}})).patch(
        &job,
        &run_of_orders(2),
        json!({"metadata": {"annotations": {"mainstay.dev/run": null}}}),
    );
    disturbed(without_pods(&json!({})), script);
}
