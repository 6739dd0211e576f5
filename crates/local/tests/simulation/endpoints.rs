//! Services in simulated worlds: whatever goes wrong, what is behind them is told in the end.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use mainstay::Kind;
use mainstay_testkit::simulation::{Script, State, check, pods};
use serde_json::{Value, json};

use crate::simulation::controllers_of;

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"team": "red"}}, "spec": spec})
}

fn pod(name: &str, port: i32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [
            {"name": "main", "image": "web:1", "ports": [{"name": "http", "containerPort": port}]},
        ]},
    })
}

fn web() -> Value {
    service(
        "web",
        &json!({"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}),
    )
}

fn slices_are_sound(state: &State) -> Result<(), String> {
    for slice in state.of(&Kind::of::<EndpointSlice>()) {
        let mut seen = BTreeSet::new();
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            let address = endpoint["addresses"][0].as_str().unwrap_or_default();
            if !seen.insert(address) {
                return Err(format!("{address} is there twice"));
            }
        }
        let is_owned =
            slice["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1);
        if !is_owned {
            return Err("a slice without an owner".to_owned());
        }
    }
    Ok(())
}

#[test]
fn whatever_goes_wrong_services_lead_to_their_pods() {
    let script =
        Script::new().create(pod("one", 8080)).at_once().create(web()).delete(&Kind::of::<Pod>(), "one");
    check(controllers_of(&["Service"]))
        .beside(pods())
        .script(script)
        .always("every slice is a Service's and tells of each pod once", slices_are_sound)
        .every_fault()
        .seeds(5)
        .run();
}

#[test]
fn wherever_it_crashes_services_lead_to_the_pods_that_are_ready_now() {
    let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    let script = Script::new()
        .create(web())
        .create(pod("one", 8080))
        .at_once()
        .create(pod("two", 9090))
        .patch_status(&Kind::of::<Pod>(), "one", ready("False"))
        .patch(&Kind::of::<Service>(), "web", json!({"metadata": {"labels": {"team": "blue"}}}))
        .delete(&Kind::of::<Pod>(), "two");
    check(controllers_of(&["Service"]))
        .beside(pods())
        .script(script)
        .always("every slice is a Service's and tells of each pod once", slices_are_sound)
        .every_crash_point()
        .every_second_leader()
        .run();
}

#[test]
fn wherever_it_crashes_what_somebody_else_fills_is_left_alone() {
    let theirs = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "theirs"},
        "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}],
    });
    let script = Script::new()
        .create(pod("one", 8080))
        .create(service("theirs", &json!({"ports": [{"port": 80}]})))
        .create(theirs)
        .create(web())
        .patch(&Kind::of::<Service>(), "web", json!({"spec": {"selector": null}}))
        .delete(&Kind::of::<Pod>(), "one")
        .delete(&Kind::of::<Endpoints>(), "theirs")
        .delete(&Kind::of::<Service>(), "web");
    check(controllers_of(&["Service"])).beside(pods()).script(script).every_crash_point().run();
}
