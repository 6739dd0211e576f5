//! What others get wrong: parents that do not fit, children that the server refuses, permissions that are missing.

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use mainstay::{ChildKind, Error, Key, Kind, SyncRequest, SyncResponse};
use mainstay_testkit::{eventually, for_each_cluster};
use serde::Deserialize;
use serde_json::json;

use crate::operator::kinds::{
    as_spec_says, config_map, config_maps, define_shop, is_well, obedient, reconciled, shop, shop_kind,
    shops, short_backoff, step_through, told, warning, writes,
};
use crate::operator::seam::Seam;

/// A parent as its author understands it.
#[derive(Deserialize)]
struct Typed {
    spec: TypedSpec,
}

#[derive(Deserialize)]
struct TypedSpec {
    signs: Vec<Sign>,
}

#[derive(Deserialize)]
struct Sign {
    height: u32,
}

fn typed(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let parent: Typed = request.parent()?;
    let heights: Vec<_> = parent.spec.signs.iter().map(|sign| sign.height.to_string()).collect();
    SyncResponse::from_status(json!({"open": true}))?
        .with_child(config_map(request.name(), json!({"heights": heights.join(" ")})))
}

#[tokio::test]
async fn parent_that_does_not_fit_is_told_with_the_field_and_others_are_unaffected() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, shops([ChildKind::of::<ConfigMap>()]).sync(typed)).await;
        test.create(shop("wrong", json!({"signs": [{"height": 1}, {"height": "tall"}]}))).await;
        test.create(shop("right", json!({"signs": [{"height": 1}, {"height": 2}]}))).await;
        test.settle().await;
        let (status, reason, message) = told(&cluster, "wrong").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "InvalidParent"));
        assert!(message.starts_with("spec.signs[1].height: invalid type: string"), "{message}");
        assert_eq!(warning(&cluster, "wrong", "InvalidParent").await, message);
        assert!(!test.exists(&config_maps(), "wrong").await);
        let right = test.get(&config_maps(), "right").await.expect("the other one is looked after");
        assert_eq!(right["data"]["heights"], "1 2");
        assert_eq!(reconciled(&test.get(&shop_kind(), "right").await.unwrap()), None);

        // It rests until it is changed, and then all is well.
        let key = Key::namespaced(cluster.namespace(), "wrong");
        let report = test.operator().explain(&shop_kind(), &key).expect("it is known");
        assert!(report.queue.contains("rests until it is changed"), "{}", report.queue);
        assert_eq!(writes(&test.settle().await), 0);
        test.patch(&shop_kind(), "wrong", json!({"spec": {"signs": [{"height": 3}]}})).await;
        test.settle().await;
        let mended = test.get(&shop_kind(), "wrong").await.unwrap();
        assert!(is_well(&cluster, "wrong").await);
        assert_eq!(mended["status"]["open"], true);
        assert!(test.exists(&config_maps(), "wrong").await);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn parent_that_fits_no_longer_keeps_its_children() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, shops([ChildKind::of::<ConfigMap>()]).sync(typed)).await;
        test.create(shop("paint", json!({"signs": [{"height": 1}]}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", json!({"spec": {"signs": "none"}})).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "paint").await);
        let shop = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(shop["status"]["open"], true, "the rest of the status is what it was");
        assert_eq!(reconciled(&shop).unwrap()["reason"], "InvalidParent");
    })
    .await;
}

fn bad_service() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 700_000}], "selector": {"app": "web"}},
    })
}

#[tokio::test]
async fn child_that_the_server_refuses_is_told_and_the_others_are_applied() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([Kind::of::<Service>(), config_maps()])).await;
        let children = [config_map("one", json!({})), bad_service(), config_map("two", json!({}))];
        test.create(shop("paint", json!({"children": children, "status": {"open": true}}))).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "one").await);
        assert!(test.exists(&config_maps(), "two").await);
        let (status, reason, message) = told(&cluster, "paint").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ChildRejected"));
        assert!(message.contains("/web was refused") && message.contains("spec.ports[0].port"), "{message}");
        assert_eq!(warning(&cluster, "paint", "ChildRejected").await, message);
        let key = Key::namespaced(cluster.namespace(), "paint");
        let report = test.operator().explain(&shop_kind(), &key).expect("it is known");
        assert!(report.queue.starts_with("failed "), "{}", report.queue);

        let mut good = bad_service();
        good["spec"]["ports"][0]["port"] = json!(80);
        test.patch(&shop_kind(), "paint", json!({"spec": {"children": [good]}})).await;
        test.settle().await;
        assert!(test.exists(&Kind::of::<Service>(), "web").await);
        assert!(is_well(&cluster, "paint").await);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn child_with_a_field_that_its_kind_does_not_have_is_told() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([Kind::of::<Service>(), config_maps()])).await;
        let mut service = bad_service();
        service["spec"] = json!({"prots": [{"port": 80}]});
        let children = [service, config_map("one", json!({}))];
        test.create(shop("paint", json!({"children": children}))).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "one").await);
        let (_, reason, message) = told(&cluster, "paint").await;
        assert_eq!(reason, "ChildRejected");
        assert!(message.contains(".spec.prots: field not declared in schema"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn refused_child_is_tried_again_after_a_backoff_without_writing_the_condition_again() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let controller = shops([ChildKind::of::<Service>()]).backoff(short_backoff()).sync(as_spec_says);
        let test = seam.stepping(&cluster, "shops", controller);
        test.create(shop("paint", json!({"children": [bad_service()]}))).await;
        let mut tries = Vec::new();
        eventually("more tries", async || {
            test.settle().await;
            tries.extend(seam.take_writes());
            (tries.iter().filter(|write| write.contains("/services/web")).count() > 3).then_some(())
        })
        .await;
        let told = tries.iter().filter(|write| write.contains("/paint/status?")).count();
        assert_eq!(told, 1, "{tries:?}");
    })
    .await;
}

#[tokio::test]
async fn missing_permission_is_told_with_verb_kind_and_namespace() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let test = seam.stepping(&cluster, "shops", obedient([Kind::of::<Service>(), config_maps()]));
        let core = format!("/api/v1/namespaces/{}", cluster.namespace());
        seam.refuse(&format!("PATCH {core}/configmaps"), 403);
        let mut service = bad_service();
        service["spec"]["ports"][0]["port"] = json!(80);
        let children = [config_map("one", json!({"a": "1"})), service];
        test.create(shop("paint", json!({"children": children}))).await;
        test.settle().await;
        assert!(test.exists(&Kind::of::<Service>(), "web").await, "the others are applied");
        let (status, reason, message) = told(&cluster, "paint").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "Forbidden"));
        let expected =
            format!("the operator may not create configmaps in namespace {}: ", cluster.namespace());
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with("refused by the test"), "{message}");
        seam.allow();
        test.operator().reconcile_now(&shop_kind(), &Key::namespaced(cluster.namespace(), "paint"));
        test.settle().await;
        assert!(test.exists(&config_maps(), "one").await);
        assert!(is_well(&cluster, "paint").await);

        seam.refuse(&format!("DELETE {core}/services"), 403);
        test.patch(&shop_kind(), "paint", json!({"spec": {"children": [children[0]]}})).await;
        test.settle().await;
        let expected = format!("the operator may not delete services in namespace {}: ", cluster.namespace());
        let (_, _, message) = told(&cluster, "paint").await;
        assert!(message.starts_with(&expected), "{message}");
    })
    .await;
}

#[tokio::test]
async fn kind_that_may_not_be_watched_holds_its_controller_and_is_told() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        seam.refuse("/configmaps?", 403);
        let running = seam.running("shops", obedient([config_maps()]));
        cluster.create(shop("paint", json!({"children": [config_map("one", json!({}))]}))).await;
        let expected = format!(
            "the operator may not watch configmaps in namespace {}: refused by the test",
            cluster.namespace()
        );
        let state = eventually("the watch to be refused", async || {
            let state = running.operator().controllers().pop()?;
            let (_, told) = state.kinds.iter().find(|(kind, _)| kind == "ConfigMap.v1")?.clone();
            (told.contains("may not")).then_some((state.ready, told))
        })
        .await;
        assert_eq!(state, (false, expected));
        seam.allow();
        eventually("the child", async || cluster.find(&config_maps(), "one").await).await;
        running.stop().await;
    })
    .await;
}
