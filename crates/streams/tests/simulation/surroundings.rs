//! Templates and Secrets that change under several streams.

use k8s_openapi::api::core::v1::Secret;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Script, State};
use serde_json::{Value, json};

use crate::simulation::plugin::templates;
use crate::simulation::world::{disturbed, feeds, killed, stream, with_class, with_secrets, without_pods};

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

fn refers() -> Value {
    json!({"sinkSecretRef": {"name": "sink"}})
}

fn two_streams() -> Script {
    Script::new().create(stream("orders", &refers())).at_once().create(stream("returns", &refers()))
}

fn with_rollouts() -> Check {
    with_secrets(with_class(&one_seat())).given(secret("a"))
}

fn one_seat() -> Value {
    json!({"rollout": {"maxUnavailable": 1}})
}

fn template_changes(script: Script) -> Script {
    let container = json!([{"name": "stream", "image": "example.com/stream:2"}]);
    let image = json!({"spec": {"template": {"spec": {"template": {"spec": {"containers": container}}}}}});
    script.patch(&templates(), "feeds", image)
}

fn secret_changes(script: Script) -> Script {
    script.patch(&Kind::of::<Secret>(), "sink", json!({"stringData": {"password": "b"}}))
}

#[test]
fn a_template_and_a_secret_change_under_two_streams() {
    let script = secret_changes(template_changes(two_streams()));
    // Nothing goes wrong here: whose turn it is, is known to the operator only while it lives.
    with_rollouts().always("they are restarted one at a time", one_at_a_time).script(script).run();
}

#[test]
fn wherever_it_dies_a_changed_template_is_rolled_out_to_all() {
    killed(with_rollouts(), template_changes(two_streams()));
}

#[test]
fn whatever_goes_wrong_a_changed_secret_is_in_the_next_job() {
    let check = with_secrets(without_pods(&one_seat())).given(secret("a"));
    disturbed(check, secret_changes(Script::new().create(stream("orders", &refers()))));
}
