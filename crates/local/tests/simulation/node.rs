//! A node whose pods are simulated, in a world where everything goes wrong.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use mainstay::Kind;
use mainstay_local::node::{NAME, Node, configure};
use mainstay_testkit::simulation::{Check, Family, Script, State, check, operator};
use serde_json::{Value, json};

fn node(script: Script) -> Check {
    let pods = Kind::of::<Pod>();
    check(operator(NAME, |operator| configure(operator, &Node::new("here", "192.0.2.1"))))
        .script(script)
        // It is the node that removes a pod which the user has deleted.
        .may_remove(&pods)
        .always("a pod that has ended stays so, and one that is ready runs", |state: &State| {
            state.of(&Kind::of::<Pod>()).try_for_each(|pod| {
                let conditions = pod["status"]["conditions"].as_array();
                let is_ready = conditions
                    .into_iter()
                    .flatten()
                    .any(|known| known["type"] == "Ready" && known["status"] == "True");
                let runs = pod["status"]["phase"] == "Running";
                if is_ready && !runs { Err(format!("{} is ready", pod["metadata"]["name"])) } else { Ok(()) }
            })
        })
}

fn pod(name: &str, annotations: &Value, mut spec: Value) -> Value {
    spec["nodeName"] = json!("here");
    spec["automountServiceAccountToken"] = json!(false);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec})
}

fn server(name: &str, annotations: &Value) -> Value {
    pod(name, annotations, json!({"containers": [{"name": "c", "image": "web"}]}))
}

fn task(name: &str, annotations: &Value) -> Value {
    pod(name, annotations, json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "task"}]}))
}

#[test]
fn servers_run_and_go_gracefully() {
    let pods = Kind::of::<Pod>();
    let script = Script::new()
        .create(server("web", &json!({"mainstay.dev/ready-after": "3s"})))
        .delete(&pods, "web")
        .create(server("web", &json!({})));
    node(script).every_fault().seeds(5).run();
}

#[test]
fn tasks_end_once() {
    let init = pod(
        "init",
        &json!({}),
        json!({
            "restartPolicy": "OnFailure",
            "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}],
            "containers": [{"name": "c", "image": "x"}],
        }),
    );
    let script = Script::new().create(init);
    node(script).every_fault().seeds(5).run();
}

#[test]
fn a_container_that_crashes_a_few_times_runs_in_the_end() {
    let script = Script::new().create(server("shaky", &json!({"mainstay.dev/crashes": "3"})));
    node(script).every_fault().seeds(5).run();
}

#[test]
fn a_pod_with_a_finalizer_is_ended_once_and_goes_when_it_may() {
    let pods = Kind::of::<Pod>();
    let mut kept = server("kept", &json!({}));
    kept["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let script = Script::new().create(kept).delete(&pods, "kept").patch(
        &pods,
        "kept",
        json!({"metadata": {"finalizers": null}}),
    );
    node(script).every_fault().seeds(5).run();
}

#[test]
fn a_pod_waits_for_what_it_refers_to() {
    let source = json!({"configMapKeyRef": {"name": "settings", "key": "colour"}});
    let spec = json!({"containers": [{"name": "c", "image": "web", "env": [{"name": "COLOUR", "valueFrom": source}]}]});
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    let script = Script::new().create(pod("web", &json!({}), spec)).create(settings).patch(
        &Kind::of::<ConfigMap>(),
        "settings",
        json!({"data": {"colour": "red"}}),
    );
    node(script).every_fault().seeds(5).run();
}

/// A pod with one volume.
fn with_volume(name: &str, mut volume: Value) -> Value {
    volume["name"] = json!("files");
    pod(name, &json!({}), json!({"containers": [{"name": "c", "image": "web"}], "volumes": [volume]}))
}

/// A pod does not start before the keys that its volume names are there.
fn check_waits_for_key(volume: Value, source: Value, kind: &Kind, patch: Value) {
    let name = source["metadata"]["name"].as_str().unwrap().to_owned();
    let script = Script::new().create(with_volume("web", volume)).create(source).patch(kind, &name, patch);
    let check = node(script).always("no pod runs without its key", |state: &State| {
        let holds = |object: &Value| !object["data"]["colour"].is_null();
        let is_there = state.of(&Kind::of::<ConfigMap>()).chain(state.of(&Kind::of::<Secret>())).any(holds);
        let runs = state.of(&Kind::of::<Pod>()).any(|pod| pod["status"]["phase"] == "Running");
        if runs && !is_there { Err("it runs".to_owned()) } else { Ok(()) }
    });
    check.every_crash_point().seeds(3).run();
}

#[test]
fn a_pod_waits_for_the_keys_that_its_volumes_name() {
    let items = json!([{"key": "colour", "path": "colour"}]);
    let (maps, secrets) = (Kind::of::<ConfigMap>(), Kind::of::<Secret>());
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"other": "x"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "settings"}, "data": {"other": "eA=="}});
    let red = json!({"data": {"colour": "cmVk"}});
    let source = json!({"name": "settings", "items": items});
    let of_secret = json!({"secretName": "settings", "items": items});
    check_waits_for_key(json!({"configMap": source}), map.clone(), &maps, red.clone());
    check_waits_for_key(json!({"secret": of_secret}), secret.clone(), &secrets, red.clone());
    check_waits_for_key(json!({"projected": {"sources": [{"configMap": source}]}}), map, &maps, red.clone());
    check_waits_for_key(json!({"projected": {"sources": [{"secret": source}]}}), secret, &secrets, red);
}

#[test]
fn a_pod_whose_time_is_up_fails() {
    let mut late = task("late", &json!({"mainstay.dev/ends-after": "never"}));
    late["spec"]["activeDeadlineSeconds"] = json!(20);
    // By a clock that is set forward its time is up at once.
    node(Script::new().create(late)).every_fault().but(Family::ClockJumps).seeds(5).run();
}
