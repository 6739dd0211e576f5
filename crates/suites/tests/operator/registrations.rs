//! Controllers that a parent has run: a kind is registered by an object.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::replicas::Replicas;
use mainstay::{Controller, Kind, RegisteredState, Registration, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, OperatorTest, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{maps, maps_of, until};
use crate::operator::kinds::{config_maps, define_shop, secrets, shop, shop_kind};
use crate::operator::own_kinds::own_kind;
use crate::operator::seam::Seam;

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

const PARENTS: usize = 20;

/// A replica of a registrar, of two that share four shards.
fn replica(cluster: &Cluster, name: &'static str) -> (Seam, RunningOperator) {
    let seam = Seam::new(cluster);
    let replicas = Replicas::sharded(cluster.namespace(), 4).identity(name);
    let replicas = replicas.retry_interval(Duration::from_millis(200)).lease_duration(Duration::from_secs(4));
    let operator = seam.builder("registrar").replicas(replicas).controller(registrar()).build().unwrap();
    (seam, RunningOperator::start(operator))
}

/// Has all shops want a map with this text, and waits until they have it.
async fn all_have(cluster: &Cluster, text: &str) {
    for number in 0..PARENTS {
        let name = format!("map-{number}");
        cluster.patch(&shop_kind(), &format!("shop-{number}"), maps(json!({&name: {"text": text}}))).await;
    }
    for number in 0..PARENTS {
        until(cluster, &config_maps(), &format!("map-{number}"), |map| map["data"]["text"] == text).await;
    }
}

#[tokio::test]
async fn a_registered_controller_looks_after_the_parents_of_all_shards() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        for number in 0..PARENTS {
            cluster.create(shop(&format!("shop-{number}"), json!({}))).await;
        }
        cluster.create(secret("declaration", "1")).await;
        let (first, one) = replica(&cluster, "one");
        let (second, other) = replica(&cluster, "other");
        eventually("both to have their share", async || {
            let shards = |operator: &RunningOperator| {
                let metrics = operator.operator().metrics();
                let held = metrics
                    .lines()
                    .filter(|line| line.starts_with("mainstay_lease_held") && line.ends_with(" 1"));
                held.count()
            };
            (shards(&one) == 2 && shards(&other) == 2).then_some(())
        })
        .await;
        all_have(&cluster, "first").await;
        let wrote = |seam: &Seam| -> BTreeSet<String> {
            seam.requests("PATCH /configmaps/").iter().map(|sent| sent.object().to_owned()).collect()
        };
        // The replica that looks after the declaration runs the controller; when it ends, the other one does.
        let (running, standing, next) =
            if wrote(&second).is_empty() { (one, other, second) } else { (other, one, first) };
        running.stop().await;
        all_have(&cluster, "second").await;
        assert_eq!(wrote(&next).len(), PARENTS);
        standing.stop().await;
    })
    .await;
}
