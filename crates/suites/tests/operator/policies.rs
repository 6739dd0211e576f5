//! What a user can ask of an operator by an annotation, and what an author can by a child kind's policy.

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::plan::{PAUSED, RECONCILE_NOW};
use mainstay::{ChildKind, Controller, Error, Finalized, SyncRequest};
use mainstay_testkit::{eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{Count, Switch, for_ever, key, maps, maps_of, shops, until, until_gone};
use crate::operator::kinds::{config_map, config_maps, define_shop, shop, shop_kind, step_through, version};
use crate::operator::seam::Seam;

fn annotate(name: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {name: value.into()}}})
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nothing_is_written_for_a_paused_parent() {
    for_each_cluster(async |cluster| {
        let (calls, sync) = Count::calls_of(maps_of);
        let test = step_through(&cluster, shops().sync(sync)).await;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", annotate(PAUSED, "true")).await;
        test.settle().await;
        let called = calls.get();
        test.patch(&config_maps(), "a", json!({"data": {"key": "drifted"}})).await;
        let shop = test.patch(&shop_kind(), "paint", maps(json!({"b": {}}))).await;
        let before = version(&cluster, &config_maps(), "a").await;
        test.settle().await;
        assert_eq!(calls.get(), called, "its handler is not even asked");
        assert!(!test.exists(&config_maps(), "b").await);
        assert_eq!(version(&cluster, &config_maps(), "a").await, before);
        let now = version(&cluster, &shop_kind(), "paint").await;
        assert_eq!(shop["metadata"]["resourceVersion"], now);
        let report = test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        assert!(report.history.last().unwrap()["plan"]["waiting"].to_string().contains("Paused"));

        test.patch(&shop_kind(), "paint", annotate(PAUSED, Value::Null)).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "b").await);
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["data"]["key"], "1");
    })
    .await;
}

#[tokio::test]
async fn a_paused_parent_is_not_finalized_before_it_goes_on() {
    for_each_cluster(async |cluster| {
        let (calls, finalize) = Count::calls_of(|_| Ok(Finalized::Done));
        let controller = shops().finalize(finalize).sync(maps_of);
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", annotate(PAUSED, "true")).await;
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        assert_eq!(calls.get(), 0);
        assert!(test.exists(&shop_kind(), "paint").await);
        test.patch(&shop_kind(), "paint", annotate(PAUSED, Value::Null)).await;
        test.settle().await;
        assert_eq!(calls.get(), 1);
        assert!(!test.exists(&shop_kind(), "paint").await);
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_asked_for_is_synced_whatever_its_backoff_or_rest() {
    for_each_cluster(async |cluster| {
        let (mended, terminal) = (Switch::default(), Switch::default());
        let (is_mended, is_terminal) = (mended.clone(), terminal.clone());
        let controller = shops().backoff(for_ever()).sync(move |request: &SyncRequest| {
            match (is_mended.is_on(), is_terminal.is_on()) {
                (true, _) => maps_of(request),
                (false, true) => Err(Error::terminal("no hope")),
                (false, false) => Err(Error::new("no luck")),
            }
        });
        let test = step_through(&cluster, controller).await;
        let report = || test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        test.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        test.settle().await;
        assert_eq!(report().failures, 1);

        test.patch(&shop_kind(), "paint", annotate(RECONCILE_NOW, "1")).await;
        let steps = test.settle().await;
        assert_eq!(steps.len(), 1);
        assert_eq!(steps[0].sync.as_ref().unwrap().triggers, ["somebody asked for it"]);
        assert_eq!(report().failures, 1, "it starts afresh");

        terminal.set(true);
        test.patch(&shop_kind(), "paint", annotate(RECONCILE_NOW, "2")).await;
        test.settle().await;
        assert!(report().queue.contains("rests"), "{}", report().queue);
        test.operator().reconcile_now(&shop_kind(), &key(&cluster, "paint"));
        assert_eq!(test.settle().await.len(), 1, "by a call, too");

        mended.set(true);
        test.patch(&shop_kind(), "paint", annotate(RECONCILE_NOW, "3")).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "a").await);
        assert_eq!((report().failures, report().error), (0, None));
    })
    .await;
}

/// Shops adopt config maps that have a label with their name.
fn adopting() -> Controller {
    let adopt = |parent: &Value| format!("shop={}", parent["metadata"]["name"].as_str().unwrap_or_default());
    Controller::for_kind(shop_kind()).child(ChildKind::of::<ConfigMap>().adopt(adopt)).sync(maps_of)
}

fn labelled(name: &str, labels: Value) -> Value {
    let mut map = config_map(name, json!({"old": "1"}));
    map["metadata"]["labels"] = labels;
    map
}

#[tokio::test]
async fn an_object_with_the_right_labels_and_no_controller_is_adopted_and_no_other() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, adopting()).await;
        let mine = test.create(labelled("mine", json!({"shop": "paint"}))).await;
        test.create(labelled("not-mine", json!({"shop": "other"}))).await;
        test.create(config_map("plain", json!({}))).await;
        let wanted = json!({"mine": {"new": "1"}, "not-mine": {"new": "1"}, "plain": {"new": "1"}});
        let shop = test.create(shop("paint", json!({"maps": wanted}))).await;
        test.settle().await;

        let adopted = test.get(&config_maps(), "mine").await.unwrap();
        assert_eq!(uid(&adopted), uid(&mine), "it was taken over, not made anew");
        assert_eq!(adopted["data"], json!({"old": "1", "new": "1"}));
        let owner = &adopted["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&shop["metadata"]["uid"], &json!(true)));
        for name in ["not-mine", "plain"] {
            let other = test.get(&config_maps(), name).await.unwrap();
            assert_eq!(other["metadata"]["ownerReferences"], Value::Null, "{name}");
            assert_eq!(other["data"]["new"], Value::Null, "{name}");
        }
        let shop = test.get(&shop_kind(), "paint").await.unwrap();
        let message = shop["status"]["conditions"][0]["message"].as_str().unwrap();
        assert!(message.contains("not-mine exists and was not made for this parent"), "{message}");
        assert!(message.contains("plain exists"), "{message}");

        test.patch(&config_maps(), "plain", json!({"metadata": {"labels": {"shop": "paint"}}})).await;
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "plain").await.unwrap()["data"]["new"], "1");
        test.assert_settled_despite("not made for this parent").await;
    })
    .await;
}

#[tokio::test]
async fn nothing_is_adopted_that_has_a_controller() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, adopting()).await;
        let first = test.create(shop("first", json!({}))).await;
        let mut taken = labelled("taken", json!({"shop": "second"}));
        taken["metadata"]["ownerReferences"] = json!([{"apiVersion": "test.mainstay.dev/v1", "kind": "Shop",
            "name": "first", "uid": first["metadata"]["uid"], "controller": true}]);
        // The first lets it be: it names it without saying anything about it.
        test.patch(&shop_kind(), "first", maps(json!({"taken": {"old": "1"}}))).await;
        test.create(taken).await;
        test.create(shop("second", json!({"maps": {"taken": {"new": "1"}}}))).await;
        test.settle().await;
        let map = test.get(&config_maps(), "taken").await.unwrap();
        assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], first["metadata"]["uid"]);
        assert_eq!(map["data"], json!({"old": "1"}));
        let second = test.get(&shop_kind(), "second").await.unwrap();
        let message = second["status"]["conditions"][0]["message"].as_str().unwrap();
        assert!(message.contains("taken belongs to Shop first; it was not touched"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_another_by_now_adopts_under_its_own_uid() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let running = seam.running("adopts-late", adopting());
        cluster.create(config_map("a", json!({}))).await;
        let wanted = json!({"maps": {"a": {"new": "1"}}});
        cluster.create(shop("paint", wanted.clone())).await;
        until(&cluster, &shop_kind(), "paint", |shop| shop["status"]["conditions"][0]["status"] == "False")
            .await;

        // The operator does not learn that the parent has been replaced, but that there is something to adopt.
        seam.hold_events("/shops");
        cluster.delete(&shop_kind(), "paint").await;
        let second = cluster.create(shop("paint", wanted)).await;
        cluster.patch(&config_maps(), "a", json!({"metadata": {"labels": {"shop": "paint"}}})).await;
        let map = until(&cluster, &config_maps(), "a", |map| map["data"]["new"] == "1").await;
        let owners = map["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), 1);
        assert_eq!(owners[0]["uid"], second["metadata"]["uid"]);
        seam.let_go();
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn children_of_a_former_parent_of_the_same_name_are_not_taken_for_its_own() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let running = seam.running("successor", shops().sync(maps_of));
        cluster.create(shop("paint", json!({"maps": {"a": {"key": "1"}, "old": {}}}))).await;
        let first = until(&cluster, &config_maps(), "a", |_| true).await;
        until(&cluster, &config_maps(), "old", |_| true).await;
        cluster.delete(&shop_kind(), "paint").await;
        let second = cluster.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        let owned = |map: &Value| map["metadata"]["ownerReferences"][0]["uid"] == second["metadata"]["uid"];
        let map = until(&cluster, &config_maps(), "a", owned).await;
        assert_ne!(uid(&map), uid(&first), "the old one went with its parent, this one is new");
        until_gone(&cluster, &config_maps(), "old").await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn children_that_shall_outlive_their_parent_are_released() {
    for_each_cluster(async |cluster| {
        let controller = Controller::for_kind(shop_kind())
            .child(ChildKind::of::<ConfigMap>().orphan_on_delete())
            .sync(maps_of);
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}, "b": {"key": "1"}}}))).await;
        test.settle().await;
        let before = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!(before["metadata"]["ownerReferences"][0]["name"], "paint");
        // A child that is no longer desired goes, though its parent stays.
        test.patch(&shop_kind(), "paint", maps(json!({"b": null}))).await;
        test.settle().await;
        assert!(!test.exists(&config_maps(), "b").await);

        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        until_gone(&cluster, &shop_kind(), "paint").await;
        let after = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!(uid(&after), uid(&before));
        assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
        assert_eq!(after["data"], json!({"key": "1"}));
    })
    .await;
}

#[tokio::test]
async fn children_are_released_by_a_controller_that_is_called_until_the_parent_is_gone() {
    for_each_cluster(async |cluster| {
        let controller = Controller::for_kind(shop_kind())
            .child(ChildKind::of::<ConfigMap>().orphan_on_delete())
            .until_gone()
            .sync(maps_of);
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        until_gone(&cluster, &shop_kind(), "paint").await;
        let after = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_child_that_lost_its_reference_gets_it_back() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, shops().sync(maps_of)).await;
        let shop = test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        test.patch(&config_maps(), "a", json!({"metadata": {"ownerReferences": null}})).await;
        test.settle().await;
        let map = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], shop["metadata"]["uid"]);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn children_that_a_user_orphans_are_not_taken_along() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let running = seam.running("cascades", shops().sync(maps_of));
        cluster.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        let child = until(&cluster, &config_maps(), "a", |_| true).await;
        // That the parent is going comes late; that its child has lost its reference does not.
        seam.hold_events("/shops");
        let path = shop_kind().object_path(&key(&cluster, "paint"));
        let orphan = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
        let request = http::Request::delete(path).header("content-type", "application/json");
        let (status, answer) = cluster.send(request.body(orphan.to_string().into_bytes()).unwrap()).await;
        assert!(status.is_success(), "{answer}");
        until_gone(&cluster, &shop_kind(), "paint").await;
        eventually("the operator to look", async || {
            (!seam.requests("GET /shops/paint").is_empty()).then_some(())
        })
        .await;
        seam.let_go();
        eventually("the parent's end to be heard", async || {
            running.operator().explain(&shop_kind(), &key(&cluster, "paint")).is_none().then_some(())
        })
        .await;
        running.stop().await;
        let after = cluster.find(&config_maps(), "a").await.unwrap();
        assert_eq!(uid(&after), uid(&child));
        assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
    })
    .await;
}
