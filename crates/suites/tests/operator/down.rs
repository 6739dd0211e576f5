//! Parents that are deleted while nobody runs their operator.

use std::sync::{Arc, Mutex};

use mainstay::{Controller, Finalized, SyncRequest};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::json;

use crate::operator::fixtures::{maps_of, shops, until, until_gone};
use crate::operator::kinds::{config_maps, define_shop, shop, shop_kind, until_ready};
use crate::operator::seam::Seam;

/// What an operator was told, from one run to the next: `finalize paint`, `gone paint`.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn note(&self, what: &str, name: &str) {
        self.0.lock().unwrap().push(format!("{what} {name}"));
    }

    fn has(&self, what: &str) -> bool {
        self.0.lock().unwrap().iter().any(|told| told == what)
    }

    /// A controller of shops, with a finalizer or without.
    fn controller(&self, finalizes: bool) -> Controller {
        let (told, finalized) = (self.clone(), self.clone());
        let shops = shops().when_gone(move |key, _| told.note("gone", key.name()));
        if !finalizes {
            return shops.sync(maps_of);
        }
        let finalize = move |request: &SyncRequest| {
            finalized.note("finalize", request.name());
            Ok(Finalized::Done)
        };
        shops.finalize(finalize).sync(maps_of)
    }
}

/// Runs an operator until a shop has its map, and ends it.
async fn run_once(cluster: &Cluster, controller: Controller) {
    define_shop(cluster).await;
    let running = Seam::new(cluster).running("shops", controller);
    cluster.create(shop("paint", json!({"maps": {"a": {}}}))).await;
    until(cluster, &config_maps(), "a", |_| true).await;
    running.stop().await;
}

/// Runs it again, until it has looked after another shop.
async fn run_again(cluster: &Cluster, controller: Controller) -> (Seam, RunningOperator) {
    let seam = Seam::new(cluster);
    let running = seam.running("shops", controller);
    until_ready(running.operator()).await;
    cluster.create(shop("other", json!({"maps": {"b": {}}}))).await;
    until(cluster, &config_maps(), "b", |_| true).await;
    (seam, running)
}

#[tokio::test]
async fn a_finalizer_is_called_once_the_operator_is_back() {
    for_each_cluster(async |cluster| {
        let told = Told::default();
        run_once(&cluster, told.controller(true)).await;
        cluster.delete(&shop_kind(), "paint").await;
        let waits = cluster.find(&shop_kind(), "paint").await.expect("it waits for its finalizer");
        assert!(waits["metadata"]["deletionTimestamp"].is_string());
        assert!(cluster.find(&config_maps(), "a").await.is_some(), "its children wait with it");
        assert!(!told.has("finalize paint"));

        let (_, running) = run_again(&cluster, told.controller(true)).await;
        until_gone(&cluster, &shop_kind(), "paint").await;
        assert!(told.has("finalize paint"));
        eventually("when_gone to be called", async || told.has("gone paint").then_some(())).await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_gone_when_the_operator_is_back_is_nobodys_business() {
    for_each_cluster(async |cluster| {
        let told = Told::default();
        run_once(&cluster, told.controller(false)).await;
        cluster.delete(&shop_kind(), "paint").await;
        until_gone(&cluster, &shop_kind(), "paint").await;

        let (seam, running) = run_again(&cluster, told.controller(false)).await;
        let about_it = seam.writes().into_iter().filter(|sent| ["a", "paint"].contains(&sent.object()));
        assert_eq!(about_it.count(), 0, "its children are the garbage collector's");
        assert!(!told.has("gone paint"), "nobody saw it go: what must be done then needs a finalizer");
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_parent_made_again_meanwhile_gets_children_of_its_own() {
    for_each_cluster(async |cluster| {
        let told = Told::default();
        run_once(&cluster, told.controller(false)).await;
        cluster.delete(&shop_kind(), "paint").await;
        until_gone(&cluster, &shop_kind(), "paint").await;
        let paint = cluster.create(shop("paint", json!({"maps": {"c": {}}}))).await;
        let (_, running) = run_again(&cluster, told.controller(false)).await;
        let made = until(&cluster, &config_maps(), "c", |_| true).await;
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], paint["metadata"]["uid"]);
        running.stop().await;
    })
    .await;
}
