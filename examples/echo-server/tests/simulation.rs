//! The operator in simulated worlds: whatever goes wrong, wherever it does.

use echo_server::{NAME, configure, kinds};
use mainstay_testkit::simulation::{Script, check, operator};
use serde_json::{Value, json};

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn whatever_goes_wrong_it_comes_to_the_same_end() {
    let hello = yaml(include_str!("../hello.yaml"));
    let script = Script::new()
        .create(hello.clone())
        .patch(&kinds::echo_server(), "hello", json!({"spec": {"message": "good day"}})) // another pod
        .delete(&kinds::echo_server(), "hello")
        .at_once() // and before all of it is gone
        .create(hello);
    check(operator(NAME, configure))
        .given(yaml(kinds::CRD))
        .script(script)
        // Only the framework has conditions here. Where it once had a problem to tell of, `Reconciled` stays, and is true.
        .ignoring_in(&kinds::echo_server(), "/status/conditions")
        .silent()
        .every_crash_point()
        .every_lost_event()
        .every_second_leader()
        .seeds(20)
        .run();
}
