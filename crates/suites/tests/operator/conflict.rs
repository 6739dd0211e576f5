//! One name, two that want it: nothing is stolen.

use mainstay::Key;
use mainstay_testkit::{eventually, for_each_cluster};
use serde_json::json;

use crate::operator::kinds::{
    config_map, config_maps, define_shop, is_well, obedient, reconciled, shop, shop_kind, step_through, told,
    until_ready, version, warning,
};
use crate::operator::seam::Seam;

#[tokio::test]
async fn second_parent_of_a_child_is_told_and_the_child_stays_with_the_first() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([config_maps()])).await;
        let spec = |value: &str| json!({"children": [config_map("sign", json!({"text": value}))]});
        let first = test.create(shop("first", spec("one"))).await;
        test.settle().await;
        let before = version(&cluster, &config_maps(), "sign").await;
        let second = test.create(shop("second", spec("two"))).await;
        test.settle().await;
        assert_eq!(version(&cluster, &config_maps(), "sign").await, before);
        let (status, reason, message) = told(&cluster, "second").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ChildConflict"));
        let expected =
            format!("ConfigMap.v1 {}/sign belongs to Shop first; it was not touched", cluster.namespace());
        assert_eq!(message, expected);
        assert_eq!(warning(&cluster, "second", "ChildConflict").await, expected);
        assert_eq!(reconciled(&test.get(&shop_kind(), "first").await.unwrap()), None);
        test.assert_settled_despite("belongs to").await;

        // When the first lets go, the second gets it without being asked.
        test.patch(&shop_kind(), "first", json!({"spec": {"children": []}})).await;
        test.settle().await;
        let sign = test.get(&config_maps(), "sign").await.expect("the second made it");
        assert_eq!(sign["data"]["text"], "two");
        assert_eq!(sign["metadata"]["ownerReferences"][0]["uid"], second["metadata"]["uid"]);
        assert_ne!(sign["metadata"]["ownerReferences"][0]["uid"], first["metadata"]["uid"]);
        assert!(is_well(&cluster, "second").await);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn object_of_a_user_is_never_taken_over() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([config_maps()])).await;
        test.create(config_map("sign", json!({"mine": "yes"}))).await;
        let before = version(&cluster, &config_maps(), "sign").await;
        test.create(shop("paint", json!({"children": [config_map("sign", json!({"text": "one"}))]}))).await;
        test.settle().await;
        assert_eq!(version(&cluster, &config_maps(), "sign").await, before);
        let (_, reason, message) = told(&cluster, "paint").await;
        assert_eq!(reason, "ChildConflict");
        assert!(message.contains("exists and was not made for this parent"), "{message}");
        // Nor deleted, when it is no longer wanted.
        test.patch(&shop_kind(), "paint", json!({"spec": {"children": []}})).await;
        test.settle().await;
        assert_eq!(version(&cluster, &config_maps(), "sign").await, before);
        assert!(is_well(&cluster, "paint").await);
    })
    .await;
}

#[tokio::test]
async fn object_of_a_user_that_the_cache_has_not_seen_is_not_taken_over() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let running = seam.running("shops", obedient([config_maps()]));
        until_ready(running.operator()).await;
        seam.hold_events("/configmaps");
        cluster.create(config_map("sign", json!({"mine": "yes"}))).await;
        let before = version(&cluster, &config_maps(), "sign").await;
        cluster
            .create(shop("paint", json!({"children": [config_map("sign", json!({"text": "one"}))]})))
            .await;
        eventually("the conflict to be told", async || {
            let shop = cluster.find(&shop_kind(), "paint").await?;
            (reconciled(&shop)?["reason"] == "ChildConflict").then_some(())
        })
        .await;
        assert_eq!(version(&cluster, &config_maps(), "sign").await, before);
        assert!(seam.take_writes().iter().any(|write| write.contains("/configmaps/sign")), "it was tried");
        seam.let_go();
        // The user gives the name up.
        cluster.delete(&config_maps(), "sign").await;
        eventually("the child", async || {
            let sign = cluster.find(&config_maps(), "sign").await?;
            (sign["data"]["text"] == "one").then_some(())
        })
        .await;
        let key = Key::namespaced(cluster.namespace(), "paint");
        eventually("the shop to be content", async || {
            running.operator().explain(&shop_kind(), &key)?.error.is_none().then_some(())
        })
        .await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn child_that_became_somebody_elses_is_not_deleted() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([config_maps()])).await;
        test.create(shop("paint", json!({"children": [config_map("sign", json!({"text": "one"}))]}))).await;
        test.settle().await;
        let other = test.create(config_map("warehouse", json!({}))).await;
        let owners = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "warehouse", "uid": other["metadata"]["uid"],
            "controller": true,
        }]);
        test.patch(&config_maps(), "sign", json!({"metadata": {"ownerReferences": owners}})).await;
        let before = version(&cluster, &config_maps(), "sign").await;
        test.settle().await;
        assert_eq!(told(&cluster, "paint").await.1, "ChildConflict");
        test.patch(&shop_kind(), "paint", json!({"spec": {"children": []}})).await;
        test.settle().await;
        assert_eq!(version(&cluster, &config_maps(), "sign").await, before);
        assert!(is_well(&cluster, "paint").await);
    })
    .await;
}
