//! Classes and kinds that come late, change and go.

use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::simulation::plugin::{classes, definition};
use crate::simulation::world::{
    alone, change, class_with, disturbed, feeds, killed, orders, program, runs, without_pods,
};

#[test]
fn whatever_comes_last_the_stream_runs() {
    let script = Script::new()
        .create(class_with(&json!({})))
        .create(definition(&feeds()))
        .create(orders(&json!({})))
        .create(program("feeds", &runs()));
    killed(alone(), script);
}

#[test]
fn a_class_is_edited_stopped_and_started() {
    let script = Script::new()
        .create(orders(&json!({})))
        .patch(&classes(), "feeds", json!({"spec": {"restart": {"budget": 2}}}))
        .patch(&classes(), "feeds", json!({"spec": {"stopped": true}}))
        .patch(&feeds(), "orders", change(2, &json!({"source": "b"})))
        .patch(&classes(), "feeds", json!({"spec": {"stopped": false}}));
    killed(without_pods(&json!({})), script);
}

#[test]
fn streams_run_on_without_their_class_and_are_picked_up_when_it_is_back() {
    let script = Script::new()
        .create(orders(&json!({})))
        .delete(&classes(), "feeds")
        .patch(&feeds(), "orders", change(2, &json!({"source": "b"})))
        .create(class_with(&json!({})));
    killed(without_pods(&json!({})), script);
}

/// The kind keeps little of a status, so that the rest is in an annotation.
#[test]
fn a_kind_that_keeps_little_of_a_status_forgets_nothing() {
    let mut narrow = definition(&feeds());
    let time = json!({"type": "string", "format": "date-time"});
    let past = json!({"type": "object", "properties": {"number": {"type": "integer"}, "endedAt": time}});
    narrow["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({
        "type": "object",
        "properties": {"phase": {"type": "string"}, "history": {"type": "array", "items": past}},
    });
    let script = Script::new().create(orders(&json!({}))).patch(
        &feeds(),
        "orders",
        change(2, &json!({"source": "b"})),
    );
    disturbed(alone().given(narrow).given(class_with(&json!({}))).given(program("feeds", &runs())), script);
}
