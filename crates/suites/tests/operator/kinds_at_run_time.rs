//! Kinds that come and go while the operator runs.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use mainstay::{
    ChildKind, Controller, ControllerState, Error, Kind, Operator, Scope, SyncRequest, SyncResponse,
};
use mainstay_testkit::{Cluster, OperatorTest, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{Count, is_watched, maps_of, shops, until};
use crate::operator::kinds::{config_map, config_maps, define_shop, secrets, shop, shop_kind, step_through};
use crate::operator::own_kinds::{object, own_kind, undefine};
use crate::operator::seam::Seam;

fn state(operator: &Operator, kind: &Kind) -> Option<ControllerState> {
    operator.controllers().into_iter().find(|state| state.parent == kind.to_string())
}

/// How the watch of a kind is doing, as the controller tells it.
fn told(state: &ControllerState, kind: &Kind) -> String {
    let found = state.kinds.iter().find(|(name, _)| *name == kind.to_string());
    found.map(|(_, told)| told.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_controller_is_added_to_a_running_operator_and_taken_away() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let test = OperatorTest::new(&cluster, "come-and-go", |operator| operator);
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        assert!(test.settle().await.is_empty());
        assert!(test.operator().caches().is_empty());

        test.operator().add(shops().sync(maps_of)).unwrap();
        test.settle().await;
        assert!(test.exists(&config_maps(), "a").await);
        let now = state(test.operator(), &shop_kind()).unwrap();
        assert!(now.ready && now.parents == 1, "{now:?}");

        assert!(test.operator().remove(&shop_kind()));
        assert!(!test.operator().remove(&shop_kind()), "it is gone");
        eventually("the watches to end", async || test.operator().caches().is_empty().then_some(())).await;
        assert!(test.operator().controllers().is_empty());
        test.patch(&shop_kind(), "paint", json!({"spec": {"maps": {"a": {"key": "2"}}}})).await;
        assert!(test.settle().await.is_empty());
        assert_eq!(
            test.get(&config_maps(), "a").await.unwrap()["data"]["key"],
            "1",
            "children stay as they are"
        );

        test.operator().add(shops().sync(maps_of)).unwrap();
        test.settle().await;
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["data"]["key"], "2");
    })
    .await;
}

#[tokio::test]
async fn a_child_kind_is_added_and_dropped_by_replacing_the_controller() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, shops().sync(maps_of)).await;
        test.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        test.settle().await;

        let both = shops().owns::<Secret>().sync(|request: &SyncRequest| {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
            maps_of(request)?.with_child(secret)
        });
        test.operator().add(both).unwrap();
        test.settle().await;
        assert!(test.exists(&secrets(), "s").await, "its parents are looked at anew");
        let lists = |kind: &Kind| {
            test.operator().caches().iter().find(|report| report.kind == *kind).map(|report| report.lists)
        };
        assert_eq!(lists(&config_maps()), Some(1), "what is watched already is not listed again");

        test.operator().add(shops().sync(maps_of)).unwrap();
        test.settle().await;
        assert_eq!(lists(&secrets()), None);
        assert!(test.exists(&secrets(), "s").await, "what is no longer looked after stays");
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn parents_that_rested_are_shown_to_a_new_handler() {
    for_each_cluster(async |cluster| {
        let hopeless = shops().sync(|_: &SyncRequest| Err(Error::terminal("no hope")));
        let test = step_through(&cluster, hopeless).await;
        test.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        test.settle().await;
        assert!(!test.exists(&config_maps(), "a").await);
        test.operator().add(shops().sync(maps_of)).unwrap();
        test.settle().await;
        assert!(test.exists(&config_maps(), "a").await);
    })
    .await;
}

#[tokio::test]
async fn a_kind_is_watched_once_however_many_use_it() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        // Shops own config maps, Secrets own config maps, and both look at others.
        let twice = Controller::of::<Secret>().owns::<ConfigMap>().reads::<ConfigMap>().sync(
            |request: &SyncRequest| {
                request.select::<ConfigMap>("")?;
                SyncResponse::new().with_child(config_map(request.name(), json!({})))
            },
        );
        let operator = seam.builder("one-watch").controller(shops().sync(maps_of)).controller(twice);
        let test = OperatorTest::stepping(&cluster, &operator.build().unwrap());
        test.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        test.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}})).await;
        eventually("both to be there", async || {
            test.settle().await;
            (test.exists(&config_maps(), "a").await && test.exists(&config_maps(), "b").await).then_some(())
        })
        .await;
        let reports = test.operator().caches();
        let of_maps: Vec<_> = reports.iter().filter(|report| report.kind == config_maps()).collect();
        assert_eq!(of_maps.len(), 1);
        assert!(of_maps[0].users >= 3, "{}", of_maps[0].users);
        assert_eq!(seam.requests("/configmaps? watch=true").len(), 1);
        test.operator().remove(&shop_kind());
        assert!(is_watched(test.operator(), &config_maps()), "the other one still needs it");
        test.delete(&config_maps(), "b").await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "b").await);
    })
    .await;
}

#[tokio::test]
async fn a_missing_kind_is_waited_for_and_holds_up_nobody_else() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (kind, definition) = own_kind("Kiosk", Scope::Namespaced);
        let kiosks = Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(maps_of);
        let operator =
            Seam::new(&cluster).builder("waits").controller(shops().sync(maps_of)).controller(kiosks);
        let running = RunningOperator::start(operator.build().unwrap());
        cluster.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        until(&cluster, &config_maps(), "a", |_| true).await;
        let waiting = eventually("the state to be told", async || {
            state(running.operator(), &kind).filter(|state| told(state, &kind).contains("no such kind"))
        })
        .await;
        assert!(!waiting.ready);
        assert!(state(running.operator(), &shop_kind()).unwrap().ready);

        cluster.define(definition).await;
        cluster.create(object(&kind, "corner", json!({"maps": {"b": {}}}))).await;
        until(&cluster, &config_maps(), "b", |_| true).await;
        assert!(state(running.operator(), &kind).unwrap().ready);
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_goes_and_comes_back_is_taken_up_again() {
    for_each_cluster(async |cluster| {
        let (kind, definition) = own_kind("Kiosk", Scope::Namespaced);
        cluster.define(definition.clone()).await;
        let with_status =
            Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(|request: &SyncRequest| {
                let mut response = maps_of(request)?;
                response.set_status(json!({"maps": request.all_children().count()}))?;
                Ok(response)
            });
        let running = Seam::new(&cluster).running("comes-back", with_status);
        cluster.create(object(&kind, "corner", json!({"maps": {"a": {}}}))).await;
        until(&cluster, &kind, "corner", |kiosk| kiosk["status"]["maps"] == 1).await;

        undefine(&cluster, &kind).await;
        eventually("its absence to be told", async || {
            let now = state(running.operator(), &kind)?;
            (!now.ready && now.parents == 0 && told(&now, &kind).contains("no such kind")).then_some(())
        })
        .await;
        cluster.define(definition).await;
        cluster.create(object(&kind, "corner", json!({"maps": {"b": {}}}))).await;
        until(&cluster, &kind, "corner", |kiosk| kiosk["status"]["maps"] == 1).await;
        assert!(cluster.find(&config_maps(), "b").await.is_some());
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn parents_wait_while_a_child_kind_is_missing_and_are_told_no_nonsense() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (kind, definition) = own_kind("Shelf", Scope::Namespaced);
        let (shelves, calls) = (kind.clone(), Count::default());
        let counted = calls.clone();
        let controller = Controller::for_kind(shop_kind()).child(ChildKind::new(kind.clone())).sync(
            move |request: &SyncRequest| {
                counted.add();
                let shelf = object(&shelves, "top", json!({"of": request.name()}));
                SyncResponse::new().with_child(shelf)
            },
        );
        let running = Seam::new(&cluster).running("child-kinds", controller);
        cluster.create(shop("paint", json!({}))).await;
        eventually("the state to be told", async || {
            let now = state(running.operator(), &shop_kind())?;
            (!now.ready && told(&now, &kind).contains("no such kind")).then_some(())
        })
        .await;
        assert_eq!(calls.get(), 0, "nothing is decided without the children");
        cluster.define(definition.clone()).await;
        until(&cluster, &kind, "top", |_| true).await;

        undefine(&cluster, &kind).await;
        eventually("its absence to be told", async || {
            (!state(running.operator(), &shop_kind())?.ready).then_some(())
        })
        .await;
        cluster.define(definition).await;
        until(&cluster, &kind, "top", |_| true).await;
        assert_eq!(cluster.find(&shop_kind(), "paint").await.unwrap()["status"], serde_json::Value::Null);
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn children_of_a_kind_that_is_not_served_for_a_while_are_not_taken_for_gone() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (kind, definition) = own_kind("Shelf", Scope::Namespaced);
        cluster.define(definition.clone()).await;
        let (shelves, lost, changes) = (kind.clone(), Count::default(), Count::default());
        let (losing, counted) = (lost.clone(), changes.clone());
        let controller = Controller::for_kind(shop_kind()).child(ChildKind::new(kind.clone())).sync(
            move |request: &SyncRequest| {
                if request.all_children().is_empty() && counted.get() > 0 {
                    losing.add();
                }
                let shelf = object(&shelves, "top", json!({"size": request.parent_json()["spec"]["size"]}));
                SyncResponse::new().with_child(shelf)
            },
        );
        let running = Seam::new(&cluster).running("unserved", controller);
        cluster.create(shop("paint", json!({"size": 1}))).await;
        let child = until(&cluster, &kind, "top", |_| true).await;
        eventually("the operator to have seen it", async || {
            let reports = running.operator().caches();
            reports.iter().any(|report| report.kind == kind && report.objects == 1).then_some(())
        })
        .await;
        changes.add();

        serve(&cluster, &definition, false).await;
        eventually("its absence to be told", async || {
            (!state(running.operator(), &shop_kind())?.ready).then_some(())
        })
        .await;
        cluster.patch(&shop_kind(), "paint", json!({"spec": {"size": 2}})).await;
        serve(&cluster, &definition, true).await;
        let after = until(&cluster, &kind, "top", |shelf| shelf["spec"]["size"] == 2).await;
        assert_eq!(after["metadata"]["uid"], child["metadata"]["uid"]);
        assert_eq!(lost.get(), 0, "a handler was shown a parent without its child");
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

/// Has the server serve a kind, or not, without touching its objects.
async fn serve(cluster: &Cluster, definition: &Value, served: bool) {
    let name = definition["metadata"]["name"].as_str().unwrap();
    let mut versions = definition["spec"]["versions"].clone();
    versions[0]["served"] = json!(served);
    cluster
        .patch(&Kind::of::<CustomResourceDefinition>(), name, json!({"spec": {"versions": versions}}))
        .await;
}
