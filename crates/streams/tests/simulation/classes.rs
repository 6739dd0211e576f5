//! Classes and kinds that come late, change and go.

use mainstay_testkit::simulation::Script;
use serde_json::json;

use crate::plugin::{classes, definition, feeds};
use crate::world::{bare, change, class_with, disturbed, orders, program, runs, with_plugin};

#[test]
fn whatever_comes_last_the_stream_runs() {
    let script = Script::new()
        .create(class_with(&json!({})))
        .create(definition())
        .create(orders(&json!({})))
        .create(program("feed", &runs()));
    disturbed(bare(), script);
}

#[test]
fn a_class_is_edited_stopped_and_started() {
    let script = Script::new()
        .create(orders(&json!({})))
        .patch(&classes(), "feeds", json!({"spec": {"restart": {"budget": 2}}}))
        .patch(&classes(), "feeds", json!({"spec": {"stopped": true}}))
        .patch(&feeds(), "orders", change(2, &json!({"source": "b"})))
        .patch(&classes(), "feeds", json!({"spec": {"stopped": false}}));
    disturbed(with_plugin(), script);
}

#[test]
fn streams_run_on_without_their_class_and_are_picked_up_when_it_is_back() {
    let script = Script::new()
        .create(orders(&json!({})))
        .delete(&classes(), "feeds")
        .patch(&feeds(), "orders", change(2, &json!({"source": "b"})))
        .create(class_with(&json!({})));
    disturbed(with_plugin(), script);
}
