//! Defects that other frameworks have or had, and that no other topic's tests cover. `docs/defects.md` lists them all.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::{Controller, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{
    config_map, config_maps, define_shop, obedient, secrets, shop, shop_kind, step_through,
};
use crate::operator::seam::Seam;

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"})
}

#[tokio::test]
async fn child_goes_although_a_desired_one_of_another_kind_has_its_name() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([config_maps(), secrets()])).await;
        let map = config_map("paint", json!({"a": "1"}));
        test.create(shop("paint", json!({"children": [map, secret("paint")]}))).await;
        test.settle().await;
        assert!(test.exists(&secrets(), "paint").await);
        test.patch(&shop_kind(), "paint", json!({"spec": {"children": [map]}})).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "paint").await);
        assert!(!test.exists(&secrets(), "paint").await);
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn parent_is_left_as_it_is_but_for_its_status() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, obedient([config_maps()])).await;
        let children = json!([config_map("paint", json!({"a": "1"}))]);
        let mut made =
            test.create(shop("paint", json!({"children": children, "status": {"open": true}}))).await;
        test.settle().await;
        let mut found = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(found["status"], json!({"open": true, "observedGeneration": 1}));
        for shop in [&mut made, &mut found] {
            shop.as_object_mut().unwrap().remove("status");
            for field in ["managedFields", "resourceVersion"] {
                shop["metadata"].as_object_mut().unwrap().remove(field);
            }
        }
        assert_eq!(made, found);
    })
    .await;
}

/// An operator whose shops have a config map each.
fn one_map_each(seam: &Seam) -> RunningOperator {
    let sync =
        |request: &SyncRequest| SyncResponse::new().with_child(config_map(request.name(), json!({"a": "1"})));
    let controller = Controller::for_kind(shop_kind()).owns::<ConfigMap>().sync(sync);
    seam.running("shops", controller)
}

#[tokio::test]
async fn child_that_is_deleted_while_nothing_is_watched_is_made_again() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let _running = one_map_each(&seam);
        cluster.create(shop("paint", json!({}))).await;
        let made = eventually("the child", async || cluster.find(&config_maps(), "paint").await).await;
        seam.refuse("watch=true", 403);
        seam.cut_watches();
        cluster.delete(&config_maps(), "paint").await;
        if let Some(server) = cluster.embedded_server() {
            // Nobody can be told any more what happened.
            server.compact();
        }
        seam.allow();
        eventually("another child", async || {
            let found = cluster.find(&config_maps(), "paint").await?;
            (found["metadata"]["uid"] != made["metadata"]["uid"]).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn trouble_with_the_watch_of_one_kind_holds_up_no_other() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let _running = one_map_each(&seam);
        cluster.create(shop("paint", json!({}))).await;
        eventually("a child", async || cluster.find(&config_maps(), "paint").await).await;
        let watch = "/configmaps watch=true";
        seam.lose(watch);
        seam.cut_watches();
        eventually("the watch to be begun again in vain", async || {
            seam.requests(watch).iter().any(|sent| sent.answer.is_none()).then_some(())
        })
        .await;
        cluster.create(shop("books", json!({}))).await;
        eventually("the child of a shop that came meanwhile", async || {
            cluster.find(&config_maps(), "books").await
        })
        .await;
    })
    .await;
}

/// On the embedded server only: it is the number that counts.
#[tokio::test]
async fn relist_of_more_objects_than_any_buffer_holds_stops_nothing() {
    const SHOPS: usize = 1200;
    let Some(cluster) = Cluster::embedded().await else { return };
    define_shop(&cluster).await;
    for index in 0..SHOPS {
        cluster.create(shop(&format!("shop-{index}"), json!({}))).await;
    }
    let seam = Seam::new(&cluster);
    let synced: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = Arc::clone(&synced);
    let controller = Controller::for_kind(shop_kind()).sync(move |request: &SyncRequest| {
        let generation = request.generation();
        seen.lock().unwrap().insert(format!("{} {generation}", request.name()));
        Ok(SyncResponse::new())
    });
    let running = seam.running("shops", controller);
    let count = async |wanted: usize| {
        eventually(&format!("{wanted} syncs"), async || {
            (synced.lock().unwrap().len() == wanted).then_some(())
        })
        .await;
    };
    count(SHOPS).await;
    // All of them change while nothing is watched, and the server does not remember what happened.
    seam.refuse("watch=true", 403);
    seam.cut_watches();
    for index in 0..SHOPS {
        cluster.patch(&shop_kind(), &format!("shop-{index}"), json!({"spec": {"round": 2}})).await;
    }
    cluster.embedded_server().unwrap().compact();
    seam.allow();
    count(2 * SHOPS).await;
    running.stop().await;
}
