//! Controllers that a parent has run: a kind is registered by an object.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Controller, Kind, RegisteredState, Registration, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::maps_of;
use crate::operator::kinds::{config_maps, define_shop, secrets, shop, shop_kind};
use crate::operator::own_kinds::own_kind;

/// A Secret with the annotation `runs` has a controller of a kind like shops run, in the version that it names, and tells of it in another one.
fn declares(kind: &Kind, request: &SyncRequest) -> Result<SyncResponse, mainstay::Error> {
    let Some(version) = request.parent_json()["metadata"]["annotations"]["runs"].as_str() else {
        return Ok(SyncResponse::new());
    };
    let told = request.registered(kind).map_or_else(
        || "not yet".to_owned(),
        |registered| {
            let state = match &registered.state {
                RegisteredState::Ready => "ready".to_owned(),
                RegisteredState::Missing(missing) => format!("no {}", missing.kind()),
                RegisteredState::Taken => "taken".to_owned(),
                other => format!("{other:?}"),
            };
            format!("{state}, {} parents, {:?}", registered.parents, registered.counts)
        },
    );
    let controller = Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(maps_of);
    let registration = Registration::new(controller, version).count_by("/spec/colour");
    SyncResponse::new()
        .with_controller(registration)
        .with_parent(json!({"metadata": {"annotations": {"told": told}}}))
}

fn secret(name: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": {"runs": version}}})
}

async fn is_told(test: &OperatorTest, name: &str, wanted: &str) {
    eventually(&format!("{name} to tell: {wanted}"), async || {
        test.settle().await;
        let secret = test.get(&secrets(), name).await?;
        (secret["metadata"]["annotations"]["told"] == wanted).then_some(())
    })
    .await;
}

fn registrar() -> Controller {
    registrar_of(shop_kind())
}

fn registrar_of(kind: Kind) -> Controller {
    Controller::of::<Secret>().writes_parents().sync(move |request: &SyncRequest| declares(&kind, request))
}

#[tokio::test]
async fn a_parent_has_a_controller_run_for_as_long_as_it_says_so() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let test = OperatorTest::new(&cluster, "registrar", |operator| operator.controller(registrar()));
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.create(secret("declaration", "1")).await;
        is_told(&test, "declaration", "ready, 1 parents, {}").await;
        assert!(test.exists(&config_maps(), "a").await, "shops are looked after");

        test.patch(&secrets(), "declaration", json!({"metadata": {"annotations": {"runs": null}}})).await;
        test.settle().await;
        assert!(test.operator().controllers().iter().all(|state| state.parent != shop_kind().to_string()));
        assert!(test.exists(&config_maps(), "a").await, "children stay as they are");

        test.patch(&secrets(), "declaration", json!({"metadata": {"annotations": {"runs": "2"}}})).await;
        is_told(&test, "declaration", "ready, 1 parents, {}").await;
        test.delete(&secrets(), "declaration").await;
        eventually("the controller to end", async || {
            test.settle().await;
            let of_shops = |state: &mainstay::ControllerState| state.parent == shop_kind().to_string();
            (!test.operator().controllers().iter().any(of_shops)).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_second_parent_does_not_take_a_kind_from_the_first() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let test = OperatorTest::new(&cluster, "registrar", |operator| operator.controller(registrar()));
        test.create(secret("first", "1")).await;
        is_told(&test, "first", "ready, 0 parents, {}").await;
        test.create(secret("second", "1")).await;
        is_told(&test, "second", "taken, 0 parents, {}").await;
        test.delete(&secrets(), "second").await;
        test.settle().await;
        let of_shops = |state: &mainstay::ControllerState| state.parent == shop_kind().to_string();
        assert!(test.operator().controllers().iter().any(of_shops), "the first has its controller still");
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_comes_late_is_told_of() {
    for_each_cluster(async |cluster| {
        let (kind, definition) = own_kind("Stall", Scope::Namespaced);
        let registrar = registrar_of(kind.clone());
        let test = OperatorTest::new(&cluster, "registrar", |operator| operator.controller(registrar));
        test.create(secret("early", "1")).await;
        is_told(&test, "early", &format!("no {}, 0 parents, {{}}", kind.kind())).await;
        cluster.create(definition).await;
        is_told(&test, "early", "ready, 0 parents, {}").await;
    })
    .await;
}
