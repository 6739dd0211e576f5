//! A handler and what it is given.

use mainstay::{Controller, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::json;

use crate::kinds::{config_map, config_maps, define_kinds, shop, shop_kind};

fn one_map(request: &SyncRequest) -> Result<SyncResponse, mainstay::Error> {
    Ok(SyncResponse::new().with_child(config_map(request.name(), json!({"a": "1"})))?)
}

#[tokio::test]
async fn a_function_is_a_handler() {
    for_each_cluster(async |cluster| {
        define_kinds(&cluster).await;
        let controller =
            Controller::for_kind(shop_kind()).owns::<k8s_openapi::api::core::v1::ConfigMap>().sync(one_map);
        let test = OperatorTest::new(&cluster, "shops", |operator| operator.controller(controller));
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "paint").await);
        test.assert_settled().await;
    })
    .await;
}
