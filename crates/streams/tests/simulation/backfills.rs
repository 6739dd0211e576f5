//! Requests for backfills, and reloads.

use k8s_openapi::api::batch::v1::Job;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Script};
use serde_json::{Value, json};

use crate::simulation::plugin::{requests, with};
use crate::simulation::world::{
    backfill_of_orders, completed, disturbed, failed, feeds, killed, orders, program, runs, without_pods,
};

fn request(name: &str, spec: &Value) -> Value {
    let spec = with(json!({"streamClass": "feeds", "streamId": "orders"}), spec);
    json!({"apiVersion": requests().api_version(), "kind": "BackfillRequest", "metadata": {"name": name}, "spec": spec})
}

/// A stream that can be backfilled.
fn made() -> Script {
    Script::new().create(orders(&json!({"backfillJobTemplateRef": {"name": "backfill"}})))
}

/// A run that is a backfill ends so.
fn ends(script: Script, number: u64, how: Value) -> Script {
    script.patch_status(&Kind::of::<Job>(), &backfill_of_orders(number), how)
}

/// A new stream is backfilled if this says so.
fn with_backfills(initial: bool) -> Check {
    let class = json!({"initialBackfill": initial, "restart": {"backoffSeconds": 5}});
    without_pods(&class).given(program("backfill", &runs()))
}

#[test]
fn whatever_goes_wrong_a_new_stream_is_backfilled_once() {
    disturbed(with_backfills(true), ends(made(), 1, completed()));
}

#[test]
fn whatever_goes_wrong_a_request_is_carried_out_once() {
    disturbed(with_backfills(false), ends(made().create(request("first", &json!({}))), 2, completed()));
}

#[test]
fn requests_are_carried_out_one_after_the_other_unless_they_are_cancelled() {
    let script = made()
        .create(request("first", &json!({})))
        .at_once()
        .create(request("second", &json!({})))
        .at_once()
        .create(request("third", &json!({"priority": -1})))
        .at_once()
        .patch(&requests(), "second", json!({"spec": {"cancelled": true}}));
    killed(with_backfills(false), ends(ends(script, 2, completed()), 3, completed()));
}

#[test]
fn a_backfill_that_runs_is_stopped_when_its_request_is_cancelled() {
    let script = made().create(request("first", &json!({}))).patch(
        &requests(),
        "first",
        json!({"spec": {"cancelled": true}}),
    );
    killed(with_backfills(false), script);
}

#[test]
fn a_backfill_that_runs_is_stopped_when_its_request_is_gone() {
    killed(with_backfills(false), made().create(request("first", &json!({}))).delete(&requests(), "first"));
}

#[test]
fn a_reload_is_a_backfill() {
    let reload = json!({"metadata": {"annotations": {"mainstay.dev/reload": "1"}}});
    killed(with_backfills(false), ends(made().patch(&feeds(), "orders", reload), 2, completed()));
}

#[test]
fn a_request_goes_when_its_time_has_come() {
    let script = made().create(request("short", &json!({"ttlSecondsAfterFinished": 20})));
    killed(with_backfills(false).may_remove(&requests()), ends(script, 2, completed()));
}

#[test]
fn a_backfill_that_fails_is_tried_again_as_often_as_its_request_says() {
    let script = made().create(request("vain", &json!({"retries": 1})));
    killed(with_backfills(false), ends(ends(script, 2, failed()), 3, failed()));
}
