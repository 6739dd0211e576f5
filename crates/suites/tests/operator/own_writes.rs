//! What the operator wrote itself is seen at once, and what others do meanwhile is never swallowed nor overwritten.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::coordination::v1::Lease;
use mainstay::{ChildKind, Controller, DeletionBudget, Error, Kind, SyncRequest, SyncResponse};
use mainstay_testkit::{Cluster, OperatorTest, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{Count, events, for_ever, key, maps, maps_of, shops};
use crate::operator::kinds::{
    config_map, config_maps, define_shop, reconciled, shop, shop_kind, step_through, version,
};
use crate::operator::seam::Seam;

/// What a handler saw, call by call.
type Seen<T> = Arc<Mutex<Vec<T>>>;

#[tokio::test]
async fn a_decision_sees_the_last_ones_writes_while_the_watch_is_silent() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let seen: Seen<Option<Value>> = Seen::default();
        let log = seen.clone();
        let controller = shops().sync(move |request: &SyncRequest| {
            let child = request.all_children().first();
            log.lock().unwrap().push(child.map(|child| child.json()["data"]["key"].clone()));
            maps_of(request)
        });
        let test = seam.stepping(&cluster, "own-writes", controller);
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        seam.hold_events("/configmaps");
        let before = events(test.operator(), &config_maps());

        test.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "1"}}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "2"}}))).await;
        test.settle().await;
        let values = [None, None, Some(json!("1")), Some(json!("1")), Some(json!("2"))];
        assert_eq!(*seen.lock().unwrap(), values);

        seam.let_go();
        eventually("the late events", async || {
            (events(test.operator(), &config_maps()) >= before + 2).then_some(())
        })
        .await;
        assert!(test.settle().await.is_empty(), "old news and own writes wake nobody");
        test.assert_settled().await;
        assert_eq!(seen.lock().unwrap().last(), Some(&Some(json!("2"))), "the cache went back in time");
    })
    .await;
}

#[tokio::test]
async fn what_was_deleted_does_not_come_back_with_a_late_event() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let seen: Seen<usize> = Seen::default();
        let log = seen.clone();
        let controller = shops().sync(move |request: &SyncRequest| {
            log.lock().unwrap().push(request.all_children().count());
            maps_of(request)
        });
        let test = seam.stepping(&cluster, "late-events", controller);
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        seam.hold_events("/configmaps");
        let before = events(test.operator(), &config_maps());
        test.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "1"}}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", maps(json!({"a": null}))).await;
        test.settle().await;
        assert_eq!(seen.lock().unwrap().last(), Some(&0));

        seam.let_go();
        eventually("the late events", async || {
            (events(test.operator(), &config_maps()) >= before + 2).then_some(())
        })
        .await;
        assert!(test.settle().await.is_empty());
        test.assert_settled().await;
        assert_eq!(seen.lock().unwrap().last(), Some(&0));
    })
    .await;
}

#[tokio::test]
async fn a_change_of_a_child_between_our_read_and_our_write_leads_to_a_sync() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let controller = shops().sync(|request: &SyncRequest| {
            let child = request.all_children().get("a").map(|child| child.json());
            let mut response = maps_of(request)?;
            response.set_status(json!({"theirs": child.map(|child| child["data"]["theirs"].clone())}))?;
            Ok(response)
        });
        let test = seam.stepping(&cluster, "foreign-changes", controller);
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;

        // Only the answer to our own write tells of their change.
        seam.hold_events("/configmaps");
        let theirs = cluster.clone();
        seam.before("/configmaps/a?", async move {
            theirs.patch(&config_maps(), "a", json!({"data": {"theirs": "yes"}})).await;
        });
        test.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "2"}}))).await;
        test.settle().await;
        assert_eq!(test.get(&shop_kind(), "paint").await.unwrap()["status"]["theirs"], "yes");
        assert_eq!(
            test.get(&config_maps(), "a").await.unwrap()["data"],
            json!({"key": "2", "theirs": "yes"})
        );
    })
    .await;
}

#[tokio::test]
async fn a_change_that_only_a_check_before_a_write_brought_leads_to_a_sync() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let leases = Kind::of::<Lease>();
        let child = leases.clone();
        let controller = Controller::for_kind(shop_kind()).child(ChildKind::new(leases.clone())).sync(
            move |request: &SyncRequest| {
                let theirs = request.all_children().first().map(|lease| lease.json()["spec"]["holderIdentity"].clone());
                // The server writes this time without its zone.
                let lease = json!({"apiVersion": child.api_version(), "kind": "Lease", "metadata": {"name": "a"},
                    "spec": {"renewTime": "2030-01-01T01:00:00.000000+01:00"}});
                SyncResponse::from_status(json!({"theirs": theirs}))?.with_child(lease)
            },
        );
        let first = Seam::new(&cluster).stepping(&cluster, "checks", controller.clone());
        first.create(shop("paint", json!({}))).await;
        first.settle().await;
        let version = first.get(&leases, "a").await.unwrap()["metadata"]["resourceVersion"].clone();
        drop(first);

        // A new process does not know what the server makes of its times. It looks who wrote them, and finds more.
        let seam = Seam::new(&cluster);
        let second = seam.stepping(&cluster, "checks", controller);
        second.catch_up().await;
        seam.hold_events("/leases");
        let (theirs, kind) = (cluster.clone(), leases.clone());
        seam.before("/leases/a", async move {
            theirs.patch(&kind, "a", json!({"spec": {"holderIdentity": "them"}})).await;
        });
        second.settle().await;
        assert_eq!(seam.requests("/leases/a").len(), 1, "one look, and no write");
        assert_eq!(second.get(&shop_kind(), "paint").await.unwrap()["status"]["theirs"], "them");
        assert_ne!(second.get(&leases, "a").await.unwrap()["metadata"]["resourceVersion"], version);
    })
    .await;
}

#[tokio::test]
async fn a_status_change_between_our_read_and_our_write_leads_to_a_sync() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let seen: Seen<Value> = Seen::default();
        let log = seen.clone();
        let controller = shops().sync(move |request: &SyncRequest| {
            log.lock().unwrap().push(request.parent_json()["status"]["theirs"].clone());
            SyncResponse::from_status(json!({"phase": request.parent_json()["spec"]["phase"]}))
        });
        let test = seam.stepping(&cluster, "foreign-status", controller);
        test.create(shop("paint", json!({"phase": "one"}))).await;
        test.settle().await;

        let (theirs, holding) = (cluster.clone(), seam.clone());
        seam.before("/shops/paint/status", async move {
            holding.hold_events("/shops");
            theirs.patch_status(&shop_kind(), "paint", json!({"status": {"theirs": "yes"}})).await;
        });
        test.patch(&shop_kind(), "paint", json!({"spec": {"phase": "two"}})).await;
        // What was decided before their change is refused, and decided anew a moment later.
        eventually("the status to be written", async || {
            test.settle().await;
            (test.get(&shop_kind(), "paint").await?["status"]["phase"] == "two").then_some(())
        })
        .await;
        assert_eq!(seen.lock().unwrap().last(), Some(&json!("yes")), "nobody looked at their change");
    })
    .await;
}

/// A shop with a child, in whose place a user puts an object just before the operator's next such request.
async fn with_a_user_before(cluster: &Cluster, words: &str) -> (Seam, OperatorTest) {
    define_shop(cluster).await;
    let seam = Seam::new(cluster);
    let test = seam.stepping(cluster, "shops", shops().sync(maps_of));
    test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
    test.settle().await;
    let user = cluster.clone();
    seam.before(words, async move {
        user.delete(&config_maps(), "a").await;
        user.create(config_map("a", json!({"mine": "yes"}))).await;
    });
    (seam, test)
}

#[tokio::test]
async fn an_object_that_a_user_made_in_a_childs_place_is_not_deleted() {
    for_each_cluster(async |cluster| {
        let (seam, test) = with_a_user_before(&cluster, "DELETE").await;
        test.patch(&shop_kind(), "paint", maps(json!({"a": null}))).await;
        test.settle().await;
        assert_eq!(seam.requests("DELETE").len(), 1);
        assert_eq!(test.get(&config_maps(), "a").await.unwrap()["data"], json!({"mine": "yes"}));
        test.assert_settled().await;
    })
    .await;
}

#[tokio::test]
async fn an_object_that_a_user_made_in_a_childs_place_is_not_overwritten() {
    for_each_cluster(async |cluster| {
        let (_, test) = with_a_user_before(&cluster, "/configmaps/a?").await;
        test.patch(&shop_kind(), "paint", maps(json!({"a": {"key": "2"}}))).await;
        eventually("the conflict to be told", async || {
            test.settle().await;
            let shop = test.get(&shop_kind(), "paint").await?;
            (shop["status"]["conditions"][0]["reason"] == "ChildConflict").then_some(())
        })
        .await;
        let map = test.get(&config_maps(), "a").await.unwrap();
        assert_eq!(map["data"], json!({"mine": "yes"}));
        assert_eq!(map["metadata"]["ownerReferences"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn deletions_beyond_the_budget_are_put_off_and_told() {
    for_each_cluster(async |cluster| {
        let budget = DeletionBudget { burst: 2, per_minute: 0 };
        define_shop(&cluster).await;
        let test = OperatorTest::new(&cluster, "thrift", |operator| {
            operator.controller(shops().sync(maps_of)).deletion_budget(budget)
        });
        let all = json!({"a": {}, "b": {}, "c": {}, "d": {}, "e": {}});
        test.create(shop("paint", json!({"maps": all}))).await;
        test.settle().await;
        test.patch(&shop_kind(), "paint", json!({"spec": null})).await;
        let steps = test.settle().await;
        let mut left = 0;
        for name in ["a", "b", "c", "d", "e"] {
            left += usize::from(test.exists(&config_maps(), name).await);
        }
        assert_eq!(left, 3);
        let last = steps.iter().rev().find_map(|step| step.sync.as_ref()).unwrap();
        assert_eq!(last.plan.waiting[0].reason(), "DeletionBudget");
        assert!(last.plan.waiting[0].to_string().contains("3 deletions"), "{}", last.plan);
        let report = test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        assert!(report.queue.starts_with("due in"), "it is looked at again: {}", report.queue);
    })
    .await;
}

#[tokio::test]
async fn syncs_at_the_same_time_do_not_spend_the_same_deletion() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let budget = DeletionBudget { burst: 3, per_minute: 0 };
        let operator =
            seam.builder("thrift-together").controller(shops().sync(maps_of)).deletion_budget(budget);
        let running = RunningOperator::start(operator.build().unwrap());
        let names = ["a", "b", "c", "d", "e", "f"];
        for name in names {
            test_shop(&cluster, name).await;
        }
        for name in names {
            crate::operator::fixtures::until(&cluster, &config_maps(), name, |_| true).await;
        }
        seam.hold_requests("DELETE");
        for name in names {
            cluster.patch(&shop_kind(), name, json!({"spec": null})).await;
        }
        eventually("those without a deletion to be put off", async || {
            let put_off = names.iter().filter(|name| {
                let report = running.operator().explain(&shop_kind(), &key(&cluster, name));
                report.is_some_and(|report| {
                    report.history.iter().any(|sync| sync.to_string().contains("DeletionBudget"))
                })
            });
            (put_off.count() + seam.requests("DELETE").len() >= names.len()).then_some(())
        })
        .await;
        seam.let_go();
        eventually("the deletions to be made", async || {
            let mut left = 0;
            for name in names {
                left += usize::from(cluster.find(&config_maps(), name).await.is_some());
            }
            (left <= 3).then_some(())
        })
        .await;
        running.stop().await;
        assert_eq!(seam.requests("DELETE").len(), 3);
    })
    .await;
}

async fn test_shop(cluster: &Cluster, name: &str) {
    cluster.create(shop(name, json!({"maps": {name: {"key": "1"}}}))).await;
}

#[tokio::test]
async fn no_error_of_any_kind_deletes_or_changes_anything() {
    for_each_cluster(async |cluster| {
        let (calls, sync) = Count::calls_of(|request| match request.parent_json()["spec"]["mode"].as_str() {
            Some("error") => Err(Error::new("no luck")),
            Some("terminal") => Err(Error::terminal("no hope")),
            Some("later") => Err(Error::retry_after(std::time::Duration::from_hours(1), "not now")),
            Some("panic") => panic!("by intent"),
            _ => maps_of(request),
        });
        let test = step_through(&cluster, shops().backoff(for_ever()).sync(sync)).await;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}, "b": {"key": "1"}}}))).await;
        test.settle().await;
        let before =
            (version(&cluster, &config_maps(), "a").await, version(&cluster, &config_maps(), "b").await);
        for mode in ["error", "terminal", "later", "panic"] {
            let change = json!({"spec": {"mode": mode, "maps": null}});
            let shop = test.patch(&shop_kind(), "paint", change).await;
            let called = calls.get();
            test.settle().await;
            assert!(calls.get() > called, "{mode}");
            let after =
                (version(&cluster, &config_maps(), "a").await, version(&cluster, &config_maps(), "b").await);
            assert_eq!(after, before, "{mode}");
            let now = cluster.find(&shop_kind(), "paint").await.unwrap();
            // A terminal error is on the parent, by a condition; otherwise it is as it was.
            assert_eq!(reconciled(&now).is_some(), mode != "error", "{mode}");
            if mode != "terminal" {
                assert_eq!(shop["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"], "{mode}");
            }
            assert_eq!(shop["spec"], now["spec"], "{mode}");
        }
    })
    .await;
}
