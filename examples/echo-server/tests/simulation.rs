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
        .silent()
        .every_fault()
        .seeds(20)
        .run();
}

#[test]
fn the_end_depends_on_the_last_spec_only() {
    check(operator(NAME, configure))
        .given(yaml(kinds::CRD))
        .script(Script::new().create(yaml(include_str!("../hello.yaml"))))
        .every_spec_change(yaml(kinds::CRD), 10)
        .run();
}
