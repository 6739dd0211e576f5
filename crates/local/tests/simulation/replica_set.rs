use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use mainstay::Kind;
use mainstay_testkit::simulation::{Check, Script, check, pods};
use serde_json::{Value, json};

use crate::simulation::controllers_of;

fn sets() -> Kind {
    Kind::of::<ReplicaSet>()
}

fn set(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

fn stray() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    })
}

fn world(script: Script) -> Check {
    // The stand-in for a kubelet gives addresses by name, and which of the free names a pod gets depends on when others go.
    let pod = Kind::of::<Pod>();
    let check = check(controllers_of(&["ReplicaSet"])).beside(pods()).script(script).silent();
    // How many names were used up depends on how many pods were made and removed on the way.
    let used = "/metadata/annotations/mainstay.dev~1pod-numbers-used";
    let check = check.ignoring_in(&Kind::of::<ReplicaSet>(), used);
    check.ignoring_in(&pod, "/status/podIP").ignoring_in(&pod, "/status/podIPs")
}

/// At each of the places at which it can be interrupted for good.
fn interrupted(check: Check) -> Check {
    check.every_crash_point().every_time_travel().every_second_leader().seeds(6)
}

#[test]
fn it_has_as_many_pods_as_it_should() {
    let script = Script::new().create(set(1)).patch(&sets(), "web", json!({"spec": {"replicas": 3}})).patch(
        &sets(),
        "web",
        json!({"spec": {"replicas": 1}}),
    );
    world(script).every_fault().seeds(10).run();
}

#[test]
fn its_pods_are_available_when_they_have_been_ready_for_long_enough() {
    let script = Script::new().create(set(2)).patch(&sets(), "web", json!({"spec": {"minReadySeconds": 20}}));
    interrupted(world(script)).run();
}

#[test]
fn it_is_made_anew_at_once() {
    let script = Script::new().create(set(2)).delete(&sets(), "web").at_once().create(set(3));
    interrupted(world(script)).run();
}

#[test]
fn it_adopts_pods_that_fit_and_releases_those_that_no_longer_do() {
    let relabelled = json!({"metadata": {"labels": {"app": "other"}}});
    let script = Script::new().create(stray()).create(set(2)).patch(&Kind::of::<Pod>(), "stray", relabelled);
    interrupted(world(script)).run();
}

#[test]
fn a_pod_that_has_ended_stays_and_is_replaced() {
    let failed = json!({"status": {"phase": "Failed", "conditions": []}});
    let script =
        Script::new().create(stray()).create(set(2)).patch_status(&Kind::of::<Pod>(), "stray", failed);
    // A pod that fails before it is adopted never is.
    interrupted(world(script)).patient().run();
}
