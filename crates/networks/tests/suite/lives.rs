//! Networks from their beginning to their end.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use mainstay::Kind;
use mainstay_networks::peers;
use serde_json::json;

use crate::suite::fixtures::{World, address, condition, in_each_world, listed, networks};

#[tokio::test(flavor = "multi_thread")]
async fn networks_live() {
    in_each_world(async |world| {
        tokio::join!(
            Box::pin(peers_are_assembled_connected_and_mended(world)),
            Box::pin(a_network_expires_when_its_spec_says(world)),
            Box::pin(with_a_network_all_of_it_goes(world)),
            Box::pin(a_foreign_namespace_is_left_alone(world)),
        );
    })
    .await;
}

async fn peers_are_assembled_connected_and_mended(world: &World) {
    world.network("ring", json!({"replicas": 3})).await;
    let network = world.until_ready("ring").await;
    assert_eq!(listed(&network), ["peers-0-0", "peers-0-1", "peers-0-2"]);
    assert_eq!(network["status"]["edges"]["missing"], 0);
    assert_eq!(network["status"]["components"], 1);
    let map = world.part("ring", &Kind::of::<ConfigMap>(), "keramik-peers").await.unwrap();
    let told = peers::read(map["data"]["peers.json"].as_str().unwrap()).unwrap();
    assert_eq!(json!(told), network["status"]["peers"]);
    let jobs = world.parts("ring", &Kind::of::<Job>()).await;
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    world.crowd.cut(&address(&network, 0));
    world.until_reason("ring", "Connected", "EdgesMissing").await;
    world.until_ready("ring").await;
    world.crowd.silence(&address(&network, 2));
    let network = world.until_reason("ring", "Ready", "PeersMissing").await;
    assert_eq!(listed(&network), ["peers-0-0", "peers-0-1"]);
    assert_eq!(network["status"]["unready"][0]["reason"], "RpcUnreachable");
}

async fn a_network_expires_when_its_spec_says(world: &World) {
    world.network("short", json!({"ttlSeconds": 100_000})).await;
    let network = world.until_ready("short").await;
    let first = network["status"]["expirationTime"].clone();
    assert!(first.is_string());
    world.patch("short", json!({"ttlSeconds": 200_000})).await;
    world
        .until_network("short", "another time", |network| {
            network["status"]["expirationTime"].is_string() && network["status"]["expirationTime"] != first
        })
        .await;
    world.patch("short", json!({"ttlSeconds": 1})).await;
    let gone = async || world.cluster.find(&networks(), "short").await.is_none().then_some(());
    world.until("short", "its end", gone).await;
}

async fn with_a_network_all_of_it_goes(world: &World) {
    world.network("brief", json!({})).await;
    world.until_ready("brief").await;
    let secret = world.part("brief", &Kind::of::<Secret>(), "network-secret").await.unwrap();
    assert_eq!(secret["immutable"], true);
    world.cluster.delete(&networks(), "brief").await;
    let namespaces = Kind::of::<Namespace>();
    let gone = async || world.cluster.find(&namespaces, "network-brief").await.is_none().then_some(());
    world.until("brief", "its namespace to go", gone).await;
    // And once more under the same name.
    world.network("brief", json!({})).await;
    world.until_ready("brief").await;
    let other = world.part("brief", &Kind::of::<Secret>(), "network-secret").await.unwrap();
    assert_ne!(secret["data"], other["data"]);
}

async fn a_foreign_namespace_is_left_alone(world: &World) {
    let namespaces = Kind::of::<Namespace>();
    let foreign = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "network-foreign"}});
    world.cluster.create(foreign).await;
    world.network("foreign", json!({})).await;
    let network = world.until_reason("foreign", "Ready", "NamespaceTaken").await;
    assert_eq!(condition(&network, "Ready")["status"], "False");
    assert!(world.part("foreign", &Kind::of::<Secret>(), "network-secret").await.is_none());
    world.cluster.delete(&networks(), "foreign").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let left = world.cluster.find(&namespaces, "network-foreign").await.unwrap();
    assert!(
        left["metadata"]["deletionTimestamp"].is_null()
            && left["metadata"]["labels"]["mainstay.dev/network"].is_null()
    );
}
