//! Whose turn it is, as a running operator shows it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay::{Controller, Error, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::operator::fixtures::{
    Count, Door, OpenAtLast, Switch, for_ever, key, maps_after, maps_of, shops, until,
};
use crate::operator::kinds::{config_map, config_maps, define_shop, run, shop, shop_kind, step_through};
use crate::operator::seam::Seam;

#[tokio::test]
async fn what_a_user_changed_comes_before_what_was_merely_found() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        for name in ["a", "b", "c", "d", "e"] {
            cluster.create(shop(name, json!({}))).await;
        }
        let controller = shops().sync(maps_of);
        let test = step_through(&cluster, controller).await;
        let first = test.step().await.unwrap();
        assert_eq!(first.key.name(), "a");
        test.patch(&shop_kind(), "e", json!({"spec": {"maps": {"e": {}}}})).await;
        assert_eq!(test.step().await.unwrap().key.name(), "e");
        test.create(shop("new", json!({}))).await;
        assert_eq!(test.step().await.unwrap().key.name(), "new");
        test.settle().await;
        assert!(test.exists(&config_maps(), "e").await);
    })
    .await;
}

#[tokio::test]
async fn a_backoff_ends_with_a_change_of_the_parent_and_with_nothing_less() {
    for_each_cluster(async |cluster| {
        let failing = Switch::default();
        let fails = failing.clone();
        let (calls, sync) =
            Count::calls_of(
                move |request| {
                    if fails.is_on() { Err(Error::new("no luck")) } else { maps_of(request) }
                },
            );
        let test = step_through(&cluster, shops().backoff(for_ever()).sync(sync)).await;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        failing.set(true);
        test.patch(&config_maps(), "a", json!({"data": {"other": "1"}})).await;
        test.settle().await;
        let called = calls.get();
        let report = || test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        assert_eq!((report().failures, report().error.as_deref()), (1, Some("no luck")));

        test.patch(&config_maps(), "a", json!({"data": {"other": "2"}})).await;
        test.delete(&config_maps(), "a").await;
        test.cluster().patch_status(&shop_kind(), "paint", json!({"status": {"x": 1}})).await;
        test.patch(&shop_kind(), "paint", json!({"metadata": {"labels": {"x": "1"}}})).await;
        assert!(test.settle().await.is_empty());
        assert_eq!((calls.get(), report().failures), (called, 1), "neither bypassed nor raised");

        failing.set(false);
        test.patch(&shop_kind(), "paint", json!({"spec": {"size": 2}})).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "a").await);
        assert_eq!(report().failures, 0);
    })
    .await;
}

/// Runs this until a shop has the map that it wants.
async fn comes_to_a_map(cluster: &Cluster, controller: Controller) {
    let running = run(cluster, controller).await;
    cluster.create(shop("paint", json!({"maps": {"a": {}}}))).await;
    until(cluster, &config_maps(), "a", |_| true).await;
    running.stop().await;
}

#[tokio::test]
async fn a_failing_parent_is_tried_again_by_itself() {
    for_each_cluster(async |cluster| {
        comes_to_a_map(&cluster, shops().sync(maps_after(2, || Error::new("not yet")))).await;
    })
    .await;
}

#[tokio::test]
async fn a_terminal_error_rests_until_the_parent_changes() {
    for_each_cluster(async |cluster| {
        let (calls, sync) = Count::calls_of(|request| {
            let hopeless = request.parent_json()["spec"]["hopeless"] == true;
            if hopeless { Err(Error::terminal("no hope")) } else { maps_of(request) }
        });
        let test = step_through(&cluster, shops().sync(sync)).await;
        test.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", json!({"spec": {"hopeless": true}})).await;
        test.settle().await;
        let called = calls.get();
        let report = || test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        assert!(report().queue.contains("rests until it is changed"), "{}", report().queue);
        test.delete(&config_maps(), "a").await;
        assert!(test.settle().await.is_empty());
        assert_eq!(calls.get(), called);
        // Labels and annotations are part of the parent.
        for part in ["labels", "annotations"] {
            test.patch(&shop_kind(), "paint", json!({"metadata": {part: {"seen": "yes"}}})).await;
            test.settle().await;
        }
        assert_eq!(calls.get(), called + 2);
        test.patch(&shop_kind(), "paint", json!({"spec": {"hopeless": false}})).await;
        test.settle().await;
        assert!(test.exists(&config_maps(), "a").await);
    })
    .await;
}

#[tokio::test]
async fn a_sync_that_asks_for_another_gets_it() {
    for_each_cluster(async |cluster| {
        let again = SyncResponse::new().requeue_after(Duration::from_millis(5));
        let (calls, sync) = Count::calls_of(move |_| Ok(again.clone()));
        let running = run(&cluster, shops().sync(sync)).await;
        cluster.create(shop("paint", json!({}))).await;
        eventually("five syncs", async || (calls.get() >= 5).then_some(())).await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_error_with_a_time_of_its_own_is_tried_again_then() {
    for_each_cluster(async |cluster| {
        let soon = || Error::retry_after(Duration::from_millis(5), "soon");
        comes_to_a_map(&cluster, shops().backoff(for_ever()).sync(maps_after(3, soon))).await;
    })
    .await;
}

#[tokio::test]
async fn only_so_many_parents_are_synced_at_once() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (gate, present, most) =
            (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(0_usize)), Arc::new(Mutex::new(0_usize)));
        let (entered, peak, open) = (present.clone(), most.clone(), gate.clone());
        let controller = shops().sync_async(move |request: SyncRequest| {
            let (entered, peak, open) = (entered.clone(), peak.clone(), open.clone());
            async move {
                {
                    let mut entered = entered.lock().unwrap();
                    *entered += 1;
                    let mut peak = peak.lock().unwrap();
                    *peak = (*peak).max(*entered);
                }
                open.acquire().await?.forget();
                *entered.lock().unwrap() -= 1;
                maps_of(&request)
            }
        });
        let names: Vec<_> = (0..10).map(|number| format!("shop-{number}")).collect();
        for name in &names {
            cluster.create(shop(name, json!({"maps": {name: {}}}))).await;
        }
        let operator = Seam::new(&cluster).builder("bounded").controller(controller).concurrency(3);
        let running = RunningOperator::start(operator.build().unwrap());
        eventually("three syncs at once", async || (*present.lock().unwrap() == 3).then_some(())).await;
        gate.add_permits(1_000);
        for name in &names {
            until(&cluster, &config_maps(), name, |_| true).await;
        }
        assert_eq!(*most.lock().unwrap(), 3);
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_resync_comes_by_itself() {
    for_each_cluster(async |cluster| {
        let (calls, counted) = Count::calls_of(|request: &SyncRequest| {
            // A requeue is not asked for, and nothing changes.
            SyncResponse::from_status(json!({"maps": request.all_children().count()}))
        });
        let running = run(&cluster, shops().resync(Duration::from_millis(20)).sync(counted)).await;
        cluster.create(shop("paint", json!({}))).await;
        eventually("several resyncs", async || (calls.get() > 5).then_some(())).await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_never_answers_is_given_up_at_its_deadline() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let controller = shops().deadline(Duration::from_secs(2)).backoff(for_ever()).sync_async(
            |request: SyncRequest| async move {
                if request.name() == "slow" {
                    std::future::pending::<()>().await;
                }
                maps_of(&request)
            },
        );
        let operator = Seam::new(&cluster).builder("deadlines").controller(controller).concurrency(1);
        let running = RunningOperator::start(operator.build().unwrap());
        cluster.create(shop("slow", json!({}))).await;
        let report = eventually("the slow one to be given up", async || {
            let report = running.operator().explain(&shop_kind(), &key(&cluster, "slow"))?;
            report.error.is_some().then_some(report)
        })
        .await;
        assert_eq!(report.error.as_deref(), Some("the handler did not answer within 2 s"));
        cluster.create(shop("swift", json!({"maps": {"a": {}}}))).await;
        until(&cluster, &config_maps(), "a", |_| true).await;
        running.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_or_panic_harm_only_their_own_parents() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let door = Door::default();
        let (blocking, entered) = (door.clone(), Count::default());
        let inside = entered.clone();
        let controller = shops().deadline(Duration::from_secs(2)).backoff(for_ever()).sync(
            move |request: &SyncRequest| match request.name() {
                "blocks" => {
                    inside.add();
                    blocking.wait();
                    Ok(SyncResponse::new().with_child(config_map("at-last", json!({})))?)
                }
                "panics" => panic!("by intent"),
                _ => maps_of(request),
            },
        );
        // With one place only, a handler that kept it would stop all others.
        let operator = Seam::new(&cluster).builder("harmless").controller(controller).concurrency(1);
        let running = RunningOperator::start(operator.build().unwrap());
        let _open = OpenAtLast(door.clone());
        cluster.create(shop("blocks", json!({}))).await;
        eventually("it to block", async || (entered.get() == 1).then_some(())).await;
        cluster.create(shop("panics", json!({}))).await;
        for name in ["a", "b", "c"] {
            cluster.create(shop(name, json!({"maps": {name: {"key": "1"}}}))).await;
        }
        for name in ["a", "b", "c"] {
            until(&cluster, &config_maps(), name, |_| true).await;
        }
        let error = |name: &str| running.operator().explain(&shop_kind(), &key(&cluster, name))?.error;
        eventually("the panic to be told", async || error("panics")).await;
        assert_eq!(error("panics").as_deref(), Some("the handler panicked: by intent"));
        // It is never called twice at once, however often it is asked for.
        cluster.patch(&shop_kind(), "blocks", json!({"spec": {"again": true}})).await;
        cluster.patch(&shop_kind(), "a", json!({"spec": {"maps": {"a": {"key": "2"}}}})).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["key"] == "2").await;
        assert_eq!(entered.get(), 1);
        door.open();
        until(&cluster, &config_maps(), "at-last", |_| true).await;
        running.stop().await;
    })
    .await;
}
