//! Handlers whose answer differs each time: found, named, and not carried out for ever.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{ChildKind, Controller, Error, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::json;

use crate::operator::kinds::{
    config_map, config_maps, secrets, shop, shop_kind, shops, step_through, told, warning, writes,
};

/// More would mean that nobody stops it.
const WRITES_MAX: usize = 20;

/// Shows that what a handler does with a number that is new at each call comes to an end, and what is said of it.
async fn is_told(
    answer: impl Fn(&SyncRequest, usize) -> Result<SyncResponse, Error> + Copy + Send + Sync + 'static,
    expected: impl Fn(&str) -> String,
) {
    for_each_cluster(async |cluster| {
        let count = AtomicUsize::new(0);
        let controller = shops([ChildKind::of::<ConfigMap>()])
            .sync(move |request: &SyncRequest| answer(request, count.fetch_add(1, Ordering::Relaxed)));
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        let steps = test.settle().await;
        assert!(writes(&steps) < WRITES_MAX, "{} writes", writes(&steps));
        let (status, reason, message) = told(&cluster, "paint").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "NotConverging"));
        let expected = expected(cluster.namespace());
        assert!(message.contains(&expected), "{message:?} does not say {expected:?}");
        assert!(warning(&cluster, "paint", "NotConverging").await.contains(&expected));
        let looping = |line: &str| line.starts_with("mainstay_loops{") && line.ends_with(" 1");
        let metrics = test.operator().metrics();
        assert!(metrics.lines().any(looping), "{metrics}");
        // A user's change starts afresh.
        test.patch(&shop_kind(), "paint", json!({"spec": {"again": true}})).await;
        assert!(writes(&test.settle().await) > 0);
    })
    .await;
}

#[tokio::test]
async fn value_that_is_new_each_time_is_told_with_its_field() {
    is_told(
        |_, count| {
            SyncResponse::new().with_child(config_map("one", json!({"at": count.to_string(), "a": "1"})))
        },
        |namespace| format!("ConfigMap.v1 {namespace}/one: data.at: every sync gives another value"),
    )
    .await;
}

#[tokio::test]
async fn name_that_is_new_each_time_is_told() {
    is_told(
        |_, count| SyncResponse::new().with_child(config_map(&format!("one-{count}"), json!({}))),
        |_| "the names of ConfigMap.v1 children: every sync gives another value".into(),
    )
    .await;
}

#[tokio::test]
async fn status_that_is_new_each_time_is_told() {
    is_told(
        |_, count| SyncResponse::from_status(json!({"syncs": count})),
        |namespace| format!("Shop.test.mainstay.dev/v1 {namespace}/paint: status.syncs: every sync"),
    )
    .await;
}

#[tokio::test]
async fn change_of_a_parent_without_a_generation_starts_afresh() {
    for_each_cluster(async |cluster| {
        let count = AtomicUsize::new(0);
        let controller = Controller::of::<Secret>().owns::<ConfigMap>().sync(move |request: &SyncRequest| {
            let data = json!({"at": count.fetch_add(1, Ordering::Relaxed).to_string(), "of": request.parent_json()["data"]["a"]});
            SyncResponse::new().with_child(config_map("one", data))
        });
        let test = OperatorTest::new(&cluster, "pairs", |operator| operator.controller(controller));
        test.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "paint"}, "data": {"a": "MQ=="}}))
            .await;
        test.settle().await;
        assert!(warning(&cluster, "paint", "NotConverging").await.contains("data.at"));
        test.patch(&secrets(), "paint", json!({"data": {"a": "Mg=="}})).await;
        assert!(writes(&test.settle().await) > 0);
        assert_eq!(test.get(&config_maps(), "one").await.unwrap()["data"]["of"], "Mg==");
    })
    .await;
}

#[tokio::test]
async fn only_what_is_unstable_is_left_alone() {
    for_each_cluster(async |cluster| {
        let count = AtomicUsize::new(0);
        let controller = shops([ChildKind::of::<ConfigMap>()]).sync(move |_: &SyncRequest| {
            let count = count.fetch_add(1, Ordering::Relaxed);
            SyncResponse::new()
                .with_child(config_map("one", json!({"at": count.to_string()})))?
                .with_child(config_map("two", json!({"a": "1"})))
        });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        assert_eq!(told(&cluster, "paint").await.1, "NotConverging");
        test.patch(&config_maps(), "two", json!({"data": {"a": "9"}})).await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "two").await.unwrap()["data"]["a"], "1");
    })
    .await;
}
