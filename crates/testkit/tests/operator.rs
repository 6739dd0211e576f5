//! What a test of an operator is told: a helper that cannot fail is no help.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Controller, Error, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, OperatorTest};
use serde_json::json;

/// An operator of config maps with this handler, and one parent.
async fn test_of(
    handler: impl Fn(&SyncRequest) -> Result<SyncResponse, Error> + Send + Sync + 'static,
) -> OperatorTest {
    let cluster = Cluster::embedded().await.unwrap();
    let controller = Controller::of::<ConfigMap>().owns::<Secret>().sync(handler);
    let test = OperatorTest::new(&cluster, "pairs", |operator| operator.controller(controller));
    test.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}})).await;
    test
}

#[tokio::test]
#[should_panic(expected = "failed: no luck")]
async fn an_operator_that_always_fails_is_not_settled() {
    test_of(|_| Err(Error::new("no luck"))).await.assert_settled().await;
}

#[tokio::test]
#[should_panic(expected = "failed: no hope")]
async fn an_operator_that_has_given_up_is_not_settled() {
    test_of(|_| Err(Error::terminal("no hope"))).await.assert_settled().await;
}

#[tokio::test]
#[should_panic(expected = "wrote")]
async fn an_operator_that_writes_something_else_each_time_is_not_settled() {
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = move |request: &SyncRequest| {
        if request.name() != "paint" {
            return Ok(SyncResponse::new());
        }
        // Two syncs of one state agree, so that there is an end to them; those that are asked for do not.
        let call = calls.fetch_add(1, Ordering::SeqCst) / 2;
        SyncResponse::new().with_child(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()},
            "stringData": {"call": call.to_string()},
        }))
    };
    test_of(handler).await.assert_settled().await;
}

#[tokio::test]
async fn an_error_that_is_expected_is_none() {
    let test = test_of(|_| Err(Error::new("no luck"))).await;
    test.assert_settled_despite("no luck").await;
}

#[tokio::test]
#[should_panic(expected = "failed: no luck")]
async fn another_error_is_one() {
    test_of(|_| Err(Error::new("no luck"))).await.assert_settled_despite("no hope").await;
}
