//! What handlers do to their parents and to children that are to go on by themselves.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use mainstay::{ChildKind, Controller, Error, Key, Kind, ObjectRef, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{config_map, config_maps, shop, shop_kind, shops, step_through};

fn maps() -> mainstay::ControllerBuilder {
    shops([ChildKind::of::<ConfigMap>()])
}

fn map_of(request: &SyncRequest, name: &str) -> ObjectRef {
    ObjectRef { kind: config_maps(), key: Key::new(request.namespace(), name) }
}

#[tokio::test]
async fn fields_of_the_parent_are_set_beside_those_of_others() {
    for_each_cluster(async |cluster| {
        let sync = |request: &SyncRequest| {
            let turn = request.parent_json()["spec"]["turn"].to_string();
            SyncResponse::new().with_parent(json!({"metadata": {"annotations": {"example.com/turn": turn}}}))
        };
        let test = step_through(&cluster, maps().writes_parents().sync(sync)).await;
        let mut paint = shop("paint", json!({"turn": 1}));
        paint["metadata"]["annotations"] = json!({"example.com/theirs": "x"});
        test.create(paint).await;
        test.settle().await;
        test.assert_settled().await;
        test.patch(&shop_kind(), "paint", json!({"spec": {"turn": 2}})).await;
        test.settle().await;
        let live = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(
            live["metadata"]["annotations"],
            json!({"example.com/theirs": "x", "example.com/turn": "2"})
        );
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_over_is_deleted_with_its_children() {
    for_each_cluster(async |cluster| {
        let sync = |request: &SyncRequest| {
            let mut response = SyncResponse::from_status(json!({"phase": "Done"}))?;
            response.add_child(config_map("one", json!({})))?;
            let is_over = request.parent_json()["spec"]["over"] == true;
            Ok::<_, Error>(if is_over { response.delete_parent() } else { response })
        };
        let test = step_through(&cluster, maps().writes_parents().sync(sync)).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "one").await);
        test.patch(&shop_kind(), "paint", json!({"spec": {"over": true}})).await;
        test.settle().await;
        mainstay_testkit::eventually("both are gone", async || {
            let gone = !test.exists(&shop_kind(), "paint").await && !test.exists(&config_maps(), "one").await;
            gone.then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_released_child_outlives_its_parent() {
    for_each_cluster(async |cluster| {
        let sync = |request: &SyncRequest| {
            if request.parent_json()["spec"]["release"] == true {
                return Ok(SyncResponse::new().release(map_of(request, "one")));
            }
            SyncResponse::new().with_child(config_map("one", json!({})))
        };
        let test = step_through(&cluster, maps().sync(sync)).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", json!({"spec": {"release": true}})).await;
        test.settle().await;
        test.assert_settled().await;
        let released = test.get(&config_maps(), "one").await.unwrap();
        assert_eq!(released["metadata"]["ownerReferences"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_child_that_is_going_is_let_go_once_it_is_counted() {
    for_each_cluster(async |cluster| {
        const COUNTED: &str = "example.com/counted";
        let sync = |request: &SyncRequest| {
            let seen = request.children_of(&config_maps()).get("one").map(|child| child.is_deleting());
            let counted = request.parent_json()["status"]["counted"].as_i64().unwrap_or(0);
            let mut response = match seen {
                Some(true) => SyncResponse::from_status(json!({"counted": 1}))?.status_first(),
                _ => SyncResponse::from_status(json!({"counted": counted}))?,
            };
            if seen == Some(true) {
                return Ok::<_, Error>(response.let_go(map_of(request, "one"), COUNTED));
            }
            if counted == 0 {
                let mut child = config_map("one", json!({}));
                child["metadata"]["finalizers"] = json!([COUNTED]);
                response.add_child(child)?;
            }
            Ok(response)
        };
        let test = step_through(&cluster, maps().sync(sync)).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        test.delete(&config_maps(), "one").await;
        assert!(test.exists(&config_maps(), "one").await, "its finalizer keeps it");
        test.settle().await;
        assert!(!test.exists(&config_maps(), "one").await);
        assert_eq!(test.get(&shop_kind(), "paint").await.unwrap()["status"]["counted"], 1);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn what_is_unowned_is_made_once_and_outlives_the_parent() {
    for_each_cluster(async |cluster| {
        let name = format!("{}-made", cluster.namespace());
        let wanted = name.clone();
        let sync = move |_: &SyncRequest| {
            SyncResponse::new().with_child(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": wanted, "labels": {"made": "here"}}}))
        };
        // A namespaced parent, and a child that is in no namespace.
        let controller = shops([ChildKind::of::<Namespace>().unowned()]).sync(sync);
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        let namespaces = Kind::of::<Namespace>();
        let made = test.get(&namespaces, &name).await.unwrap();
        assert_eq!(made["metadata"]["ownerReferences"], Value::Null);
        test.patch(&namespaces, &name, json!({"metadata": {"labels": {"made": "elsewhere"}}})).await;
        test.settle().await;
        test.assert_settled().await;
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        let left = test.get(&namespaces, &name).await.unwrap();
        assert_eq!(left["metadata"]["labels"]["made"], "elsewhere");
        test.delete(&namespaces, &name).await;
    })
    .await;
}

/// Ends pods that have been told to go, as a node does.
#[expect(clippy::unnecessary_wraps, reason = "it is a handler")]
fn end(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let response = SyncResponse::new();
    Ok(if request.is_deleting() { response.end_parent() } else { response })
}

#[tokio::test]
async fn a_parent_is_looked_after_until_it_is_gone() {
    for_each_cluster(async |cluster| {
        let controller = Controller::of::<Pod>().until_gone().writes_parents().sync(end);
        let test = OperatorTest::new(&cluster, "node", |operator| {
            operator.namespace(cluster.namespace()).controller(controller)
        });
        // Whoever is on a node goes with grace.
        test.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"nodeName": "somewhere", "containers": [{"name": "main", "image": "web"}]}}))
            .await;
        let pods = Kind::of::<Pod>();
        test.settle().await;
        test.delete(&pods, "web").await;
        assert!(test.exists(&pods, "web").await, "it has half a minute");
        test.settle().await;
        assert!(!test.exists(&pods, "web").await);
    })
    .await;
}
