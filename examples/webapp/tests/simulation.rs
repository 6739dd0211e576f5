//! The operator in simulated worlds: whatever goes wrong, wherever it does.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::CustomResourceExt as _;
use mainstay::Kind;
use mainstay_local::controllers;
use mainstay_testkit::simulation::{Script, State, check, operator, pods};
use serde_json::{Value, json};
use webapp::kinds::WebApp;
use webapp::{NAME, configure};

#[test]
fn whatever_goes_wrong_it_comes_to_the_same_end() {
    let shop: Value = serde_saphyr::from_str(include_str!("../shop.yaml")).unwrap();
    let kind = Kind::of::<WebApp>();
    let script = Script::new()
        .create(shop.clone())
        .patch(&Kind::of::<Deployment>(), "shop", json!({"spec": {"replicas": 7}})) // somebody meddles
        .delete(&kind, "shop")
        .at_once() // and before all of it is gone
        .create(shop);
    check(operator(NAME, configure))
        .given(json!(WebApp::crd()))
        .script(script)
        .silent()
        .every_fault()
        .seeds(20)
        .run();
}

#[test]
fn the_end_depends_on_the_last_spec_only() {
    let shop: Value = serde_saphyr::from_str(include_str!("../shop.yaml")).unwrap();
    check(operator(NAME, configure))
        .given(json!(WebApp::crd()))
        .script(Script::new().create(shop))
        .every_spec_change(json!(WebApp::crd()), 10)
        .run();
}

#[test]
fn an_application_is_ready_in_the_end_and_never_before_its_pods_are() {
    let shop: Value = serde_saphyr::from_str(include_str!("../shop.yaml")).unwrap();
    let ready_only_with_pods = |state: &State| {
        let ready = |object: &&Value| object.pointer("/status/conditions/0/status") == Some(&json!("True"));
        let pods = state.of(&Kind::of::<Pod>()).filter(|pod| pod["status"]["phase"] == "Running").count();
        match state.of(&Kind::of::<WebApp>()).find(ready) {
            Some(_) if pods == 0 => Err("it is said to be ready".to_owned()),
            _ => Ok(()),
        }
    };
    check(operator(NAME, configure))
        .given(json!(WebApp::crd()))
        .beside(operator(controllers::NAME, |operator| {
            controllers::configure_only(operator, |kind| ["Deployment", "ReplicaSet"].contains(&kind.kind()))
        }))
        .beside(pods())
        .script(Script::new().create(shop))
        .always("no application is ready without a pod", ready_only_with_pods)
        .every_crash_point()
        .run();
}
