//! What is done outside of the cluster: told in plans, and done once the cluster is as the answer says.

use std::sync::{Arc, Mutex};

use mainstay::events::Event;
use mainstay::{Controller, Effect, Error, SyncRequest};
use mainstay_testkit::for_each_cluster;
use serde_json::json;

use crate::operator::fixtures::{for_ever, key, maps_of, shops};
use crate::operator::kinds::{config_maps, define_shop, shop, shop_kind, step_through};

/// What was done, in order.
type Done = Arc<Mutex<Vec<String>>>;

/// Makes the shop's maps, and tells the world its colour as long as the status has another one told.
fn telling(done: &Done) -> Controller {
    let done = Arc::clone(done);
    shops().backoff(for_ever()).sync(move |request: &SyncRequest| {
        let colour = request.parent_json()["spec"]["colour"].as_str().unwrap_or("none").to_owned();
        let mut response = maps_of(request)?;
        response.set_status(json!({"about": colour}))?;
        let done = Arc::clone(&done);
        Ok(response.with_effect(Effect::new(format!("tell that it is {colour}"), move || {
            let (done, colour) = (Arc::clone(&done), colour.clone());
            async move {
                if colour == "black" {
                    return Err(Error::new("nobody listens"));
                }
                assert!(colour != "infrared", "that cannot be seen");
                done.lock().unwrap().push(colour);
                Ok(vec![Event::normal("Told", "the world knows")])
            }
        })))
    })
}

#[tokio::test]
async fn an_effect_is_had_once_the_cluster_is_as_the_answer_says() {
    for_each_cluster(async |cluster| {
        let done = Done::default();
        let test = step_through(&cluster, telling(&done)).await;
        test.create(shop("paint", json!({"colour": "red", "maps": {"a": {}}}))).await;
        while done.lock().unwrap().is_empty() {
            let step = test.step().await.expect("it comes to it").sync.unwrap();
            assert_eq!(step.plan.effects, ["tell that it is red"], "{}", step.plan);
            if !step.plan.writes_nothing() {
                assert!(done.lock().unwrap().is_empty(), "not before all is written: {}", step.plan);
            }
        }
        assert!(test.exists(&config_maps(), "a").await);
        let live = test.get(&shop_kind(), "paint").await.unwrap();
        assert_eq!(live["status"]["about"], "red");
    })
    .await;
}

#[tokio::test]
async fn a_plan_tells_of_effects_and_has_none() {
    for_each_cluster(async |cluster| {
        let done = Done::default();
        let test = step_through(&cluster, telling(&done)).await;
        test.create(shop("paint", json!({"colour": "red"}))).await;
        test.settle().await;
        done.lock().unwrap().clear();
        let plan = test.operator().plan(&shop_kind(), &key(test.cluster(), "paint")).await.unwrap();
        assert!(plan.writes_nothing() && !plan.is_settled());
        assert!(plan.to_string().ends_with("\n  outside: tell that it is red"), "{plan}");
        assert!(done.lock().unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_effect_that_fails_or_panics_is_a_failed_sync() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let done = Done::default();
        let test = step_through(&cluster, telling(&done)).await;
        for (name, why) in [("black", "nobody listens"), ("infrared", "it panicked")] {
            test.create(shop(name, json!({"colour": name}))).await;
            test.settle().await;
            let report = test.operator().explain(&shop_kind(), &key(test.cluster(), name)).unwrap();
            assert_eq!((report.failures, report.error.as_deref()), (1, Some(why)));
            let last = report.history.last().unwrap();
            assert_eq!(last["outcomes"][0], format!("failed: {why}"), "{last}");
        }
        assert!(done.lock().unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_handler_knows_when_only_a_plan_is_asked_for() {
    for_each_cluster(async |cluster| {
        let asked = Done::default();
        let noted = Arc::clone(&asked);
        let controller = shops().sync(move |request: &SyncRequest| {
            noted.lock().unwrap().push(request.only_plans().to_string());
            maps_of(request)
        });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        assert!(asked.lock().unwrap().iter().all(|only_plans| only_plans == "false"));
        asked.lock().unwrap().clear();
        test.operator().plan(&shop_kind(), &key(test.cluster(), "paint")).await.unwrap();
        assert_eq!(*asked.lock().unwrap(), ["true"]);
    })
    .await;
}
