//! What users write that cannot be carried out.

use k8s_openapi::api::apps::v1::StatefulSet;
use mainstay::Kind;
use serde_json::{Value, json};

use crate::suite::fixtures::{condition, in_each_world};

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_edit_changes_nothing_and_is_told_with_its_field() {
    in_each_world(async |world| {
        world.network("wrong", json!({})).await;
        world.until_ready("wrong").await;
        let sets = Kind::of::<StatefulSet>();
        let spec = async || world.part("wrong", &sets, "peers-0").await.unwrap()["spec"].clone();
        let before: Value = spec().await;
        let group = json!({"image": "example.com/peer:2", "weight": 0});
        world.patch("wrong", json!({"replicas": 5, "peers": [group]})).await;
        let network = world.until_reason("wrong", "Ready", "InvalidSpec").await;
        let message = condition(&network, "Ready")["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains("spec.peers"), "{message}");
        assert_eq!(spec().await, before);
        world.patch("wrong", json!({"replicas": 2, "peers": [{"image": "example.com/peer:1"}]})).await;
        world.until_ready("wrong").await;
    })
    .await;
}
