//! The parent's status.

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::{Controller, Error, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::json;

use crate::operator::kinds::{
    as_spec_says, config_map, config_maps, obedient, reconciled, shop, shop_kind, step_through, version,
    warning, writes,
};
use crate::operator::own_kinds::{object, own_kind, undefine};

#[tokio::test]
async fn observed_generation_is_added_by_itself() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([])).await;
        test.create(shop("paint", json!({"status": {"open": true}}))).await;
        test.settle().await;
        let made = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(made["status"], json!({"open": true, "observedGeneration": 1}));
        test.patch(&shop_kind(), "paint", json!({"spec": {"other": 1}})).await;
        test.settle().await;
        let made = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(made["status"], json!({"open": true, "observedGeneration": 2}));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn null_status_writes_none() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([config_maps()])).await;
        test.create(shop("paint", json!({"children": [config_map("one", json!({}))]}))).await;
        test.settle().await;
        assert_eq!(test.get(&shop_kind(), "paint").await.unwrap().get("status"), None);
        // What is there stays.
        cluster.patch_status(&shop_kind(), "paint", json!({"status": {"theirs": 1}})).await;
        let before = version(&cluster, &shop_kind(), "paint").await;
        assert_eq!(writes(&test.settle().await), 0);
        assert_eq!(version(&cluster, &shop_kind(), "paint").await, before);
    })
    .await;
}

#[tokio::test]
async fn status_fields_that_are_dropped_are_removed() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([])).await;
        let status = json!({"a": {"b": 1, "c": 2}, "list": [1, 2], "gone": "x"});
        test.create(shop("paint", json!({"status": status}))).await;
        test.settle().await;
        let status = json!({"a": {"b": 1, "c": null}, "list": [], "gone": null});
        test.patch(&shop_kind(), "paint", json!({"spec": {"status": status}})).await;
        test.settle().await;
        let made = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(made["status"], json!({"a": {"b": 1}, "list": [], "observedGeneration": 2}));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn what_somebody_writes_into_the_status_is_put_right() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([])).await;
        test.create(shop("paint", json!({"status": {"open": true}}))).await;
        test.settle().await;
        cluster.patch_status(&shop_kind(), "paint", json!({"status": {"open": false}})).await;
        test.settle().await;
        let made = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(made["status"]["open"], true);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn status_tells_of_the_children_as_they_are_after_the_writes() {
    for_each_cluster(async |cluster| {
        let controller =
            Controller::for_kind(shop_kind()).owns::<ConfigMap>().sync(|request: &SyncRequest| {
                let children = request.children::<ConfigMap>().count();
                SyncResponse::from_status(json!({"children": children}))?
                    .with_child(config_map("one", json!({})))?
                    .with_child(config_map("two", json!({})))
            });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        assert_eq!(writes(&test.settle().await), 3, "no status tells of a state that is about to change");
        let made = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(made["status"]["children"], 2);
    })
    .await;
}

#[tokio::test]
async fn parent_without_the_status_subresource_must_have_none() {
    for_each_cluster(async |cluster| {
        // Config maps have no status subresource.
        let controller = Controller::of::<ConfigMap>()
            .child(mainstay::ChildKind::new(crate::operator::kinds::secrets()))
            .sync(|request: &SyncRequest| match request.name() {
                "paint" => SyncResponse::from_status(json!({"open": true}))?
                    .with_child(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "paint"}})),
                _ => as_spec_says(request),
            });
        let test = OperatorTest::new(&cluster, "maps", |operator| operator.controller(controller));
        let made = test.create(config_map("paint", json!({"a": "1"}))).await;
        test.create(config_map("quiet", json!({}))).await;
        let steps = test.settle().await;
        assert_eq!(writes(&steps), 1, "the child is made all the same");
        let version_now = version(&cluster, &config_maps(), "paint").await;
        assert_eq!(made["metadata"]["resourceVersion"], json!(version_now));
        let note = warning(&cluster, "paint", "NoStatusSubresource").await;
        assert!(note.contains("return null"), "{note}");
        let quiet = mainstay::Key::namespaced(cluster.namespace(), "quiet");
        let report = test.operator().explain(&config_maps(), &quiet).expect("it is known");
        assert_eq!(report.error, None);
    })
    .await;
}

#[tokio::test]
async fn kind_whose_status_has_no_place_for_conditions_comes_to_rest_all_the_same() {
    for_each_cluster(async |cluster| {
        let (kind, mut definition) = own_kind("Stall", Scope::Namespaced);
        let status = json!({"type": "object", "properties": {"open": {"type": "boolean"}}});
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
        cluster.define(definition).await;
        let controller = Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(as_spec_says);
        let test = OperatorTest::new(&cluster, "stalls", |operator| operator.controller(controller));
        test.create(config_map("sign", json!({}))).await;
        let spec = json!({"children": [config_map("sign", json!({}))], "status": {"open": true}});
        test.create(object(&kind, "paint", spec)).await;
        assert_eq!(writes(&test.settle().await), 1);
        assert_eq!(test.get(&kind, "paint").await.unwrap()["status"], json!({"open": true}));
        assert!(warning(&cluster, "paint", "ChildConflict").await.contains("was not touched"));
        test.assert_settled_despite("not made for this parent").await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn status_that_the_server_refuses_is_told_on_the_status_that_is_there() {
    for_each_cluster(async |cluster| {
        let (kind, mut definition) = own_kind("Stall", Scope::Namespaced);
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let status = json!({"type": "object", "properties": {
            "open": {"type": "boolean"}, "conditions": {"type": "array", "items": anything},
        }});
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
        cluster.define(definition).await;
        let controller = Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(as_spec_says);
        let test = OperatorTest::new(&cluster, "stalls", |operator| operator.controller(controller));
        test.create(object(&kind, "paint", json!({"status": {"open": true}}))).await;
        test.settle().await;
        assert_eq!(test.get(&kind, "paint").await.unwrap()["status"], json!({"open": true}));
        test.patch(&kind, "paint", json!({"spec": {"status": {"colour": "red"}}})).await;
        test.settle().await;
        let refused = test.get(&kind, "paint").await.unwrap();
        assert_eq!(refused["status"]["open"], true);
        let condition = reconciled(&refused).expect("it is told");
        assert_eq!(condition["reason"], "ChildRejected");
        assert!(condition["message"].as_str().unwrap_or_default().contains(".status.colour"), "{condition}");
        test.patch(&kind, "paint", json!({"spec": {"status": {"open": false, "colour": null}}})).await;
        test.settle().await;
        let mended = test.get(&kind, "paint").await.unwrap();
        assert_eq!(mended["status"]["open"], false);
        assert_eq!(reconciled(&mended), None, "it is over");
        test.assert_settled().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn status_field_is_removed_even_if_nothing_else_changes() {
    for_each_cluster(async |cluster| {
        let controller =
            Controller::for_kind(shop_kind()).owns::<ConfigMap>().sync(|request: &SyncRequest| {
                let child = request.children::<ConfigMap>().get("one")?;
                let theirs = child.and_then(|map| map.data).unwrap_or_default();
                SyncResponse::from_status(json!({"open": true, "theirs": theirs.get("theirs")}))?
                    .with_child(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}))
            });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        test.patch(&config_maps(), "one", json!({"data": {"theirs": "1"}})).await;
        test.settle().await;
        assert_eq!(test.get(&shop_kind(), "paint").await.unwrap()["status"]["theirs"], "1");
        test.patch(&config_maps(), "one", json!({"data": null})).await;
        test.settle().await;
        let made = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(made["status"], json!({"open": true, "observedGeneration": 1}));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn a_terminal_error_is_on_the_parent_and_touches_nothing_else_there() {
    for_each_cluster(async |cluster| {
        let handler = |request: &SyncRequest| {
            if request.parent_json()["spec"]["hopeless"] == true {
                return Err(Error::terminal("no hope"));
            }
            let ready =
                json!({"type": "Ready", "status": "True", "observedGeneration": request.generation()});
            SyncResponse::from_status(json!({"conditions": [ready], "open": true}))
        };
        let test = step_through(&cluster, Controller::for_kind(shop_kind()).sync(handler)).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        cluster.patch_status(&shop_kind(), "paint", json!({"status": {"theirs": 1}})).await;
        let before = test.get(&shop_kind(), "paint").await.unwrap();
        test.patch(&shop_kind(), "paint", json!({"spec": {"hopeless": true}})).await;
        assert_eq!(writes(&test.settle().await), 1);
        let told = test.get(&shop_kind(), "paint").await.unwrap();
        let mut status = told["status"].clone();
        let condition = status["conditions"].as_array_mut().unwrap().pop().unwrap();
        assert_eq!((&condition["type"], &condition["status"]), (&json!("Reconciled"), &json!("False")));
        assert_eq!((&condition["reason"], &condition["message"]), (&json!("SyncFailed"), &json!("no hope")));
        assert_eq!(condition["observedGeneration"], told["metadata"]["generation"]);
        assert_eq!(status, before["status"], "the handler's own conditions and fields, and those of others");
        let managed = told["metadata"]["managedFields"].as_array().unwrap();
        let ours =
            managed.iter().find(|entry| entry["manager"] == "shops" && entry["subresource"] == "status");
        let ours = &ours.unwrap()["fieldsV1"]["f:status"];
        assert_eq!(ours.get("f:theirs"), None, "what somebody else wrote stays theirs: {ours}");
        assert!(ours.get("f:open").is_some(), "{ours}");

        test.patch(&shop_kind(), "paint", json!({"metadata": {"labels": {"seen": "yes"}}})).await;
        assert_eq!(writes(&test.settle().await), 0, "it is said once");
        test.patch(&shop_kind(), "paint", json!({"spec": {"hopeless": false}})).await;
        test.settle().await;
        assert!(reconciled(&test.get(&shop_kind(), "paint").await.unwrap()).is_none(), "it is mended");
        test.assert_settled().await;
    })
    .await;
}
