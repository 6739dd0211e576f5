//! Streams that are made, changed, suspended and deleted, and Jobs with which somebody meddles.

use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::plugin::feeds;
use crate::world::{change, disturbed, orders, run_of_orders, with_plugin};

#[test]
fn wherever_it_dies_a_stream_gets_its_job_and_the_next_one() {
    let script = Script::new().create(orders(&json!({}))).patch(
        &feeds(),
        "orders",
        change(2, &json!({"source": "b"})),
    );
    disturbed(with_plugin(), script);
}

#[test]
fn a_stream_is_changed_suspended_resumed_deleted_and_made_again() {
    let script = Script::new()
        .create(orders(&json!({})))
        .patch(&feeds(), "orders", change(2, &json!({"source": "b"})))
        .patch(&feeds(), "orders", change(3, &json!({"suspended": true})))
        .patch(&feeds(), "orders", change(4, &json!({"suspended": false})))
        .delete(&feeds(), "orders")
        .at_once()
        .create(orders(&json!({"source": "c"})));
    disturbed(with_plugin(), script);
}

#[test]
fn changes_that_come_before_the_last_is_carried_out_end_the_same() {
    let script = Script::new()
        .create(orders(&json!({"suspended": true})))
        .at_once()
        .patch(&feeds(), "orders", change(2, &json!({"suspended": false})))
        .patch(&feeds(), "orders", change(3, &json!({"source": "b"})))
        .at_once()
        .patch(&feeds(), "orders", change(4, &json!({"suspended": true})))
        .patch(&feeds(), "orders", json!({"metadata": {"annotations": {"mainstay.dev/suspend": "true"}}}))
        .patch(&feeds(), "orders", change(5, &json!({"suspended": false})));
    disturbed(with_plugin(), script);
}

#[test]
fn a_job_that_somebody_deletes_or_changes_is_made_anew() {
    let job = Kind::of::<Job>();
    let script = Script::new()
        .create(orders(&json!({})))
        .delete(&job, &run_of_orders(1))
        .patch(&job, &run_of_orders(2), json!({"spec": {"parallelism": 2}}))
        .patch(&job, &run_of_orders(3), json!({"metadata": {"annotations": {"mainstay.dev/run": null}}}));
    disturbed(with_plugin(), script);
}
