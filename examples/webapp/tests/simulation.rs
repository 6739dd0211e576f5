//! The operator in simulated worlds: whatever goes wrong, wherever it does.

use k8s_openapi::api::apps::v1::Deployment;
use kube::CustomResourceExt as _;
use mainstay::Kind;
use mainstay_testkit::simulation::{Script, check, operator};
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
        // The condition after `Ready` is the framework's. Where it once had a problem to tell of, it stays, and is true.
        .ignoring_in(&kind, "/status/conditions/1")
        .silent()
        .every_crash_point()
        .every_lost_event()
        .seeds(20)
        .run();
}
