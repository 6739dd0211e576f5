//! The operator in a simulated world: everything that can go wrong, everywhere.

use kube::CustomResourceExt as _;
use mainstay::Kind;
use mainstay_testkit::simulation::{self, Script};
use serde_json::json;
use webapp::kinds::WebApp;
use webapp::{NAME, configure};

#[test]
fn whatever_goes_wrong_it_comes_to_the_same_end() {
    let shop = serde_saphyr::from_str(include_str!("../shop.yaml")).unwrap();
    let kind = Kind::of::<WebApp>();
    let script = Script::new()
        .create(shop)
        .patch(&kind, "shop", json!({"spec": {"replicas": 3, "settings": {"COLOUR": null, "SIZE": "large"}}}))
        .delete(&kind, "shop");
    let report = simulation::check(simulation::operator(NAME, configure))
        .given(json!(WebApp::crd()))
        .script(script)
        .silent()
        .every_fault()
        .seeds(20)
        .report();
    println!("{report}\n{:?}", report.took);
}
