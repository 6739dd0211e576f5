//! Templates and Secrets that change under several streams.

use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_testkit::simulation::{Script, State};
use serde_json::{Value, json};

use crate::plugin::{feeds, templates};
use crate::world::{stream, with_class, with_secrets};

fn secret(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sink"},
        "stringData": {"password": value},
    })
}

/// Both streams have run once: from then on one of them at most is without a Job that runs.
fn one_at_a_time(state: &State) -> Result<(), String> {
    let all: Vec<&Value> = state.of(&feeds()).collect();
    let have_run = all.iter().all(|stream| stream["status"]["runsStarted"].as_u64() >= Some(1));
    let without = all.iter().filter(|stream| stream["status"]["run"].is_null()).count();
    if all.len() == 2 && have_run && without > 1 { Err(format!("{without} have none")) } else { Ok(()) }
}

#[test]
fn a_template_and_a_secret_change_under_two_streams() {
    let refers = json!({"sinkSecretRef": {"name": "sink"}});
    let container = json!([{"name": "feed", "image": "example.com/feed:2"}]);
    let image = json!({"spec": {"template": {"spec": {"template": {"spec": {"containers": container}}}}}});
    let script = Script::new()
        .create(secret("a"))
        .at_once()
        .create(stream("orders", &refers))
        .at_once()
        .create(stream("returns", &refers))
        .patch(&templates(), "feed", image)
        .patch(&Kind::of::<Secret>(), "sink", json!({"stringData": {"password": "b"}}));
    let check = with_secrets(with_class(&json!({"rollout": {"maxUnavailable": 1}})));
    // Nothing goes wrong here: whose turn it is, is known to the operator only while it lives.
    check.always("they are restarted one at a time", one_at_a_time).script(script).run();
}
