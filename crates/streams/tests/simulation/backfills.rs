//! Requests for backfills, and reloads.

use mainstay_testkit::simulation::{Check, Family, Script};
use serde_json::{Value, json};

use crate::plugin::{feeds, requests};
use crate::world::{completes, disturbed, fails, orders, program, with_class, with_plugin};

fn request(name: &str, spec: &Value) -> Value {
    let mut all = json!({"streamClass": "feeds", "streamId": "orders"});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": requests().api_version(), "kind": "BackfillRequest", "metadata": {"name": name}, "spec": all})
}

fn backfilled() -> Value {
    orders(&json!({"backfillJobTemplateRef": {"name": "backfill"}}))
}

fn with_backfills() -> Check {
    with_plugin().given(program("backfill", &completes()))
}

#[test]
fn requests_are_carried_out_one_after_the_other_unless_they_are_cancelled() {
    let script = Script::new()
        .create(backfilled())
        .create(request("first", &json!({})))
        .at_once()
        .create(request("second", &json!({})))
        .at_once()
        .create(request("third", &json!({"priority": -1})))
        .at_once()
        .patch(&requests(), "second", json!({"spec": {"cancelled": true}}));
    disturbed(with_backfills(), script);
}

#[test]
fn a_backfill_that_runs_is_stopped_when_its_request_is_cancelled_or_gone() {
    let endless = program("backfill", &json!({"mainstay.dev/ends-after": "never"}));
    let script = Script::new()
        .create(backfilled())
        .create(request("first", &json!({})))
        .patch(&requests(), "first", json!({"spec": {"cancelled": true}}))
        .create(request("second", &json!({})))
        .delete(&requests(), "second");
    disturbed(with_class(&json!({"initialBackfill": false})).given(endless), script);
}

#[test]
fn a_reload_is_a_backfill_and_a_request_goes_when_its_time_has_come() {
    let script = Script::new()
        .create(backfilled())
        .patch(&feeds(), "orders", json!({"metadata": {"annotations": {"mainstay.dev/reload": "1"}}}))
        .create(request("short", &json!({"ttlSecondsAfterFinished": 20})));
    let check = with_backfills().may_remove(&requests());
    disturbed(check.but(Family::ClockJumps), script);
}

#[test]
fn a_backfill_that_fails_is_tried_again_as_often_as_its_request_says() {
    let script = Script::new().create(backfilled()).create(request("vain", &json!({"retries": 1}))).patch(
        &feeds(),
        "orders",
        json!({"metadata": {"annotations": {"mainstay.dev/restart": "now"}}}),
    );
    let class = json!({"initialBackfill": false, "restart": {"backoffSeconds": 5}});
    let check = with_class(&class).given(program("backfill", &fails()));
    disturbed(check.but(Family::ClockJumps), script);
}
