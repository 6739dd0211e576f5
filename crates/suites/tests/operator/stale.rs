//! What an operator does whose view of the cluster is behind: it destroys nothing on an old decision.

use k8s_openapi::api::apps::v1::Deployment;
use mainstay::Kind;
use mainstay_testkit::{eventually, for_each_cluster};
use serde_json::json;

use crate::operator::children::rewritten;
use crate::operator::fixtures::{maps, maps_of, shops, until, until_gone};
use crate::operator::kinds::{config_map, config_maps, define_shop, obedient, shop, shop_kind};
use crate::operator::seam::Seam;

#[tokio::test]
async fn the_parent_is_read_from_the_server_before_anything_is_deleted() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let running = seam.running("shops", shops().sync(maps_of));
        let paint = cluster.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        until(&cluster, &config_maps(), "a", |_| true).await;
        let reads = || seam.requests("GET /shops/paint").len();
        assert_eq!(reads(), 0, "nothing is deleted, so nothing is asked");

        // Another instance sees that the user wants `b` and makes it, while this one still knows nothing of the wish.
        seam.hold_events("watch= /shops");
        cluster.patch(&shop_kind(), "paint", maps(json!({"a": {}, "b": {"key": "1"}}))).await;
        let mut b = config_map("b", json!({"key": "0"}));
        let owner = json!({
            "apiVersion": shop_kind().api_version(), "kind": shop_kind().kind(), "name": "paint",
            "uid": paint["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        });
        b["metadata"]["ownerReferences"] = json!([owner]);
        let b = cluster.create(b).await;
        let kept = until(&cluster, &config_maps(), "b", |map| map["data"]["key"] == "1").await;
        assert_eq!(kept["metadata"]["uid"], b["metadata"]["uid"]);
        assert!(seam.requests("DELETE /configmaps").is_empty());
        assert_eq!(reads(), 1);

        // A parent that is as the operator knows it is asked about once, however many children go.
        seam.let_go();
        cluster.patch(&shop_kind(), "paint", maps(json!({"a": null, "b": null}))).await;
        until_gone(&cluster, &config_maps(), "a").await;
        until_gone(&cluster, &config_maps(), "b").await;
        assert_eq!(reads(), 2);
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_cannot_be_read_keeps_its_children() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let test = seam.stepping(&cluster, "shops", shops().sync(maps_of));
        test.create(shop("paint", json!({"maps": {"a": {}, "b": {}}}))).await;
        test.settle().await;
        seam.refuse("GET /shops/paint", 503);
        test.patch(&shop_kind(), "paint", maps(json!({"a": null, "b": null, "c": {}}))).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "c").await, "what deletes nothing is done");
        assert!(seam.requests("DELETE /configmaps").is_empty());
        seam.allow();
        test.patch(&shop_kind(), "paint", maps(json!({"c": {"key": "1"}}))).await;
        test.settle().await;
        assert!(!test.exists(&config_maps(), "a").await && !test.exists(&config_maps(), "b").await);
    })
    .await;
}

#[tokio::test]
async fn a_change_by_somebody_is_not_taken_for_what_the_server_rewrote() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let (deployments, children) = (Kind::of::<Deployment>(), &rewritten()[..1]);
        let test = seam.stepping(&cluster, "shops", obedient([deployments.clone()]));
        test.create(shop("paint", json!({"children": children}))).await;
        test.settle().await;
        drop(test);
        // After a restart the operator asks why the child differs. A moment before, somebody changes it.
        let (changed, kind) = (cluster.clone(), deployments.clone());
        seam.before("GET /deployments/web", async move {
            changed.patch(&kind, "web", json!({"spec": {"replicas": 2}})).await;
        });
        let test = seam.stepping(&cluster, "shops", obedient([deployments.clone()]));
        eventually("the change to be undone", async || {
            test.settle().await;
            let web = test.get(&deployments, "web").await?;
            let asked = !seam.requests("GET /deployments/web").is_empty();
            (asked && web["spec"]["replicas"] == 0).then_some(())
        })
        .await;
        test.assert_settled().await;
    })
    .await;
}
