//! An edit of any field converges, also where Kubernetes cannot change what was made.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use mainstay::Kind;
use serde_json::{Value, json};

use crate::suite::fixtures::{World, in_each_world, listed};

#[tokio::test(flavor = "multi_thread")]
async fn edits_converge() {
    in_each_world(async |world| {
        tokio::join!(
            Box::pin(groups_are_edited(world)),
            Box::pin(what_cannot_be_changed_is_made_anew(world)),
            Box::pin(connections_are_edited(world)),
        );
    })
    .await;
}

async fn groups_are_edited(world: &World) {
    world.network("groups", json!({})).await;
    world.until_ready("groups").await;
    let far = json!({"name": "far", "image": "example.com/peer:1"});
    world.patch("groups", json!({"replicas": 4, "peers": [{"image": "example.com/peer:1"}, far]})).await;
    let network = world.until_ready("groups").await;
    assert_eq!(listed(&network), ["peers-0-0", "peers-0-1", "far-0", "far-1"]);
    world.patch("groups", json!({"replicas": 1, "peers": [{"image": "example.com/peer:2"}]})).await;
    let is_new = |network: &Value| listed(network) == ["peers-0-0"];
    world.until_network("groups", "one peer", is_new).await;
    for kind in [Kind::of::<StatefulSet>(), Kind::of::<Service>()] {
        let alone = async || (world.parts("groups", &kind).await.len() == 1).then_some(());
        world.until("groups", "one group", alone).await;
    }
}

async fn what_cannot_be_changed_is_made_anew(world: &World) {
    let sets = Kind::of::<StatefulSet>();
    world.network("anew", json!({})).await;
    world.until_ready("anew").await;
    let uid = async || Some(world.part("anew", &sets, "peers-0").await?["metadata"]["uid"].clone());
    let before = uid().await;
    let group = json!({"image": "example.com/peer:1", "storage": {"size": "1Gi"}});
    world.patch("anew", json!({"peers": [group]})).await;
    let is_other = async || {
        let set = world.part("anew", &sets, "peers-0").await?;
        let claims = set["spec"]["volumeClaimTemplates"].as_array().map(Vec::len);
        (Some(&set["metadata"]["uid"]) != before.as_ref() && claims == Some(1)).then_some(())
    };
    world.until("anew", "another StatefulSet", is_other).await;
}

async fn connections_are_edited(world: &World) {
    world.network("shape", json!({"replicas": 4, "bootstrap": {"method": "star"}})).await;
    let network = world.until_ready("shape").await;
    assert_eq!(network["status"]["edges"]["desired"], 3);
    let jobs = async || world.parts("shape", &Kind::of::<Job>()).await;
    let before = jobs().await[0]["metadata"]["name"].clone();
    world.patch("shape", json!({"bootstrap": {"method": "full"}, "peersConfigMap": "peers"})).await;
    let network = world.until_ready("shape").await;
    assert_eq!(network["status"]["edges"]["desired"], 6);
    assert!(jobs().await.iter().any(|job| job["metadata"]["name"] != before));
    let maps = Kind::of::<ConfigMap>();
    assert!(world.part("shape", &maps, "peers").await.is_some());
    let old = async || world.part("shape", &maps, "keramik-peers").await.is_none().then_some(());
    world.until("shape", "the former list to go", old).await;
    world.patch("shape", json!({"bootstrap": {"enabled": false}})).await;
    world.until_reason("shape", "Connected", "Disabled").await;
    world.until("shape", "no Job", async || jobs().await.is_empty().then_some(())).await;
}
