//! What is kept of objects, and that it is kept once.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{ChildKind, Controller, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

use crate::operator::fixtures::{maps, maps_of, shops};
use crate::operator::kinds::{config_map, config_maps, define_shop, shop, shop_kind, step_through, version};
use crate::operator::seam::Seam;

/// What a handler saw of its first child last.
type Seen = Arc<Mutex<Value>>;

fn watching(seen: &Seen) -> impl Fn(&SyncRequest) -> Result<SyncResponse, mainstay::Error> + use<> {
    let seen = seen.clone();
    move |request: &SyncRequest| {
        *seen.lock().unwrap() = request.all_children().first().map_or(Value::Null, |child| child.json());
        maps_of(request)
    }
}

#[tokio::test]
async fn of_metadata_only_children_nothing_else_is_kept_and_they_are_looked_after_all_the_same() {
    for_each_cluster(async |cluster| {
        let seen = Seen::default();
        let controller = Controller::for_kind(shop_kind())
            .child(ChildKind::of::<ConfigMap>().metadata_only())
            .sync(watching(&seen));
        let test = step_through(&cluster, controller).await;
        let large = "x".repeat(20_000);
        test.create(shop("paint", json!({"maps": {"a": {"key": large}}}))).await;
        test.settle().await;
        test.assert_settled().await;
        let child = seen.lock().unwrap().clone();
        assert_eq!(child["kind"], "ConfigMap");
        assert_eq!(child["metadata"]["name"], "a");
        assert_eq!(child["data"], Value::Null);
        let reports = test.operator().caches();
        let report = reports.iter().find(|report| report.kind == config_maps()).unwrap();
        assert!(report.json_bytes < 10_000, "{} bytes", report.json_bytes);

        test.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "small"}}))).await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["data"]["key"], "small");
        // What somebody changes in the metadata is noticed, what they change elsewhere is not.
        test.patch(&config_maps(), "a", json!({"data": {"key": "theirs"}})).await;
        let before = version(&cluster, &config_maps(), "a").await;
        test.settle().await;
        assert_eq!(version(&cluster, &config_maps(), "a").await, before);
        test.delete(&config_maps(), "a").await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["data"]["key"], "small");
        test.patch(&shop_kind(), "paint", maps(json!({"a": null}))).await;
        test.settle().await;
        assert!(!test.exists(&config_maps(), "a").await);
    })
    .await;
}

#[tokio::test]
async fn drift_in_the_metadata_of_metadata_only_children_is_mended() {
    for_each_cluster(async |cluster| {
        let controller = Controller::for_kind(shop_kind())
            .child(ChildKind::of::<ConfigMap>().metadata_only())
            .sync(|_: &SyncRequest| {
                let mut map = config_map("a", json!({"key": "1"}));
                map["metadata"]["labels"] = json!({"tier": "front"});
                SyncResponse::new().with_child(map)
            });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        test.patch(&config_maps(), "a", json!({"metadata": {"labels": {"tier": "back"}}})).await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["metadata"]["labels"]["tier"], "front");
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn fields_that_are_not_wanted_are_not_kept() {
    for_each_cluster(async |cluster| {
        let seen = Seen::default();
        let controller = Controller::for_kind(shop_kind())
            .without("/spec/large")
            .child(ChildKind::of::<ConfigMap>().without("/binaryData"))
            .sync({
                let sync = watching(&seen);
                move |request: &SyncRequest| {
                    assert_eq!(request.parent_json()["spec"]["large"], Value::Null);
                    sync(request)
                }
            });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({"large": "x".repeat(1_000), "maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        test.patch(&config_maps(), "a", json!({"binaryData": {"theirs": "eA=="}})).await;
        test.settle().await;
        let child = seen.lock().unwrap().clone();
        assert_eq!((&child["data"]["key"], &child["binaryData"]), (&json!("1"), &Value::Null));
        assert_eq!(child["metadata"]["managedFields"], Value::Null);
        let live = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!(live["binaryData"]["theirs"], "eA==", "what is not kept is not touched");
        assert!(live["metadata"]["managedFields"].is_array());
        test.patch(&config_maps(), "a", json!({"data": {"key": "theirs"}})).await;
        test.settle().await;
        let live = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!((&live["data"]["key"], &live["binaryData"]["theirs"]), (&json!("1"), &json!("eA==")));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn two_controllers_share_one_cache_that_keeps_what_either_needs() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (few, all) = (Seen::default(), Seen::default());
        let thrifty = Controller::for_kind(shop_kind())
            .child(ChildKind::of::<ConfigMap>().metadata_only())
            .sync(watching(&few));
        let full = Controller::of::<Secret>().owns::<ConfigMap>().sync({
            let seen = all.clone();
            move |request: &SyncRequest| {
                let child = request.all_children().first();
                *seen.lock().unwrap() = child.map_or(Value::Null, |child| child.json());
                SyncResponse::new().with_child(config_map(request.name(), json!({"key": "1"})))
            }
        });
        let seam = Seam::new(&cluster);
        let operator = seam.builder("shared").controller(thrifty).controller(full);
        let test = OperatorTest::stepping(&cluster, &operator.build().unwrap());
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}})).await;
        test.settle().await;
        test.assert_settled().await;
        assert_eq!(all.lock().unwrap()["data"]["key"], "1");
        let reports = test.operator().caches();
        let users: Vec<_> =
            reports.iter().filter(|report| report.kind == config_maps()).map(|report| report.users).collect();
        assert_eq!(users.len(), 1);
        assert!(users[0] >= 2);
        // A change by somebody else in what only the other one looks at is no concern of the thrifty one.
        test.patch(&config_maps(), "b", json!({"data": {"key": "theirs"}})).await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "b").await.unwrap()["data"]["key"], "1");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_streams_no_lists_will_do() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        seam.refuse("sendInitialEvents=true", 422);
        let test = seam.stepping(&cluster, "paging", shops().sync(maps_of));
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "a").await);
        test.patch(&config_maps(), "a", json!({"data": {"key": "theirs"}})).await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["data"]["key"], "1");
        test.assert_settled().await;
        assert!(!seam.requests("/configmaps?limit=").is_empty(), "the list came in pages");
        assert_eq!(seam.requests("/configmaps? sendInitialEvents").len(), 1, "it is not asked for again");
    })
    .await;
}
