//! What would happen, what happened and why, and the same decision made again elsewhere; and conditions by the helper.

use mainstay::conditions::{Conditions, State};
use mainstay::plan::PAUSED;
use mainstay::{Error, Finalized, PlanError, Recording, ReplayError, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{Count, for_ever, key, maps, maps_of, shops};
use crate::operator::kinds::{
    config_map, config_maps, define_shop, secrets, shop, shop_kind, step_through, version,
};
use crate::operator::seam::Seam;

/// Waits until what was done is seen, and takes no step.
async fn look(test: &OperatorTest, name: &str) -> Result<mainstay::plan::Plan, PlanError> {
    test.catch_up().await;
    test.operator().plan(&shop_kind(), &key(test.cluster(), name)).await
}

#[tokio::test]
async fn a_plan_changes_nothing_and_is_what_the_next_sync_does() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let test = seam.stepping(&cluster, "plans", shops().sync(maps_of));
        let all = json!({"maps": {"changed": {"key": "1"}, "drifted": {"key": "1"}, "dropped": {}}});
        test.create(shop("paint", all)).await;
        test.settle().await;
        test.patch(&config_maps(), "drifted", json!({"data": {"key": "theirs"}})).await;
        test.create(config_map("foreign", json!({}))).await;
        let change = maps(json!({"changed": {"key": "2"}, "dropped": null, "new": {}, "foreign": {}}));
        test.patch(&shop_kind(), "paint", change).await;

        let (writes, before) = (seam.writes().len(), version(&cluster, &shop_kind(), "paint").await);
        let plan = look(&test, "paint").await.unwrap();
        assert_eq!(plan.to_string(), look(&test, "paint").await.unwrap().to_string());
        assert_eq!((seam.writes().len(), version(&cluster, &shop_kind(), "paint").await), (writes, before));
        let text = plan.to_string().replace(cluster.namespace(), "ns");
        expect_test::expect![[r#"
            Shop.test.mainstay.dev/v1 ns/paint (generation 2)
              apply ConfigMap.v1 ns/changed: what is desired has changed
                data.key: "1" → "2"
              apply ConfigMap.v1 ns/drifted: it was changed by somebody else
                data.key: "theirs" → "1"
              create ConfigMap.v1 ns/new: it is desired and missing
              delete ConfigMap.v1 ns/dropped: it is no longer desired
              waiting: ConfigMap.v1 ns/foreign exists and was not made for this parent; it was not touched"#]]
        .assert_eq(&text);

        let step = test.step().await.unwrap().sync.unwrap();
        let planned = serde_json::to_value(&plan).unwrap();
        let done = serde_json::to_value(&step.plan).unwrap();
        let steps = planned["steps"].as_array().unwrap().len();
        assert_eq!(
            planned["steps"].as_array(),
            done["steps"].as_array().map(|all| all[..steps].to_vec()).as_ref()
        );
        assert_eq!(planned["waiting"], done["waiting"]);
        test.settle().await;
        assert!(look(&test, "paint").await.unwrap().writes_nothing());
    })
    .await;
}

#[tokio::test]
async fn there_is_no_plan_for_what_nobody_looks_after() {
    for_each_cluster(async |cluster| {
        let controller = shops().backoff(for_ever()).sync(|_: &SyncRequest| Err(Error::new("no luck")));
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        let (operator, paint) = (test.operator(), key(&cluster, "paint"));
        assert!(matches!(operator.plan(&secrets(), &paint).await, Err(PlanError::NoController(_))));
        let nobody = operator.plan(&shop_kind(), &key(&cluster, "nobody")).await;
        assert!(matches!(nobody, Err(PlanError::NoParent { .. })));
        let failed = operator.plan(&shop_kind(), &paint).await.unwrap_err();
        assert_eq!(failed.to_string(), "the handler failed: no luck");
    })
    .await;
}

#[tokio::test]
async fn the_plan_of_a_paused_or_leaving_parent_is_to_wait() {
    for_each_cluster(async |cluster| {
        let (finalized, finalize) = Count::calls_of(|_| Ok(Finalized::Done));
        let controller = shops().finalize(finalize).sync(maps_of);
        let test = step_through(&cluster, controller).await;
        let mut paused = shop("paused", json!({"maps": {"a": {}}}));
        paused["metadata"]["annotations"] = json!({PAUSED: "true"});
        test.create(paused).await;
        let plan = look(&test, "paused").await.unwrap();
        assert!(plan.writes_nothing());
        assert_eq!(plan.waiting[0].reason(), "Paused");
        let recording = test.operator().record(&shop_kind(), &key(&cluster, "paused")).await.unwrap();
        let controller = shops().finalize(|_: &SyncRequest| Ok(Finalized::Done)).sync(maps_of);
        assert_eq!(recording.replay(&controller).await.unwrap().to_string(), plan.to_string());

        // Somebody else holds it, and it goes without us.
        let mut going = shop("going", json!({"maps": {"b": {}}}));
        going["metadata"]["finalizers"] = json!(["test.mainstay.dev/theirs"]);
        test.create(going).await;
        test.delete(&shop_kind(), "going").await;
        let plan = look(&test, "going").await.unwrap();
        assert!(plan.writes_nothing(), "{plan}");
        assert_eq!(plan.waiting[0].reason(), "ParentGoing");
        test.settle().await;
        assert_eq!(finalized.get(), 0, "it was never ours to clean up");
        test.patch(&shop_kind(), "going", json!({"metadata": {"finalizers": null}})).await;
    })
    .await;
}

#[tokio::test]
async fn the_last_plans_are_kept_with_their_triggers_and_outcomes() {
    for_each_cluster(async |cluster| {
        let controller = shops().history(2).sync(|request: &SyncRequest| {
            if request.parent_json()["spec"]["mode"] == "hopeless" {
                return Err(Error::terminal("no hope"));
            }
            maps_of(request)
        });
        let test = step_through(&cluster, controller).await;
        let history = || test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap().history;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}}}))).await;
        test.settle().await;
        assert_eq!(history().len(), 1, "a sync with nothing to do is not worth a line");
        assert_eq!(history()[0]["outcomes"], json!(["done"]));
        assert_eq!(history()[0]["plan"]["steps"][0]["reason"], "Missing");

        test.delete(&config_maps(), "a").await;
        test.settle().await;
        let triggers = history().last().unwrap()["triggers"].to_string();
        assert!(
            triggers.contains(&format!("its child ConfigMap.v1 {}/a changed", cluster.namespace())),
            "{triggers}"
        );
        test.patch(&shop_kind(), "paint", json!({"spec": {"mode": "hopeless"}})).await;
        test.settle().await;
        let kept = history();
        assert_eq!(kept.len(), 2, "only so many are kept");
        assert_eq!(kept[1]["triggers"], json!(["it was changed"]));
        assert_eq!(kept[1]["error"], "no hope");
        assert!(kept[0]["triggers"].to_string().contains("its child"), "the oldest went");
        let report = test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        assert_eq!((report.errors, report.error.as_deref()), (1, Some("no hope")));
        assert!(test.operator().explain(&shop_kind(), &key(&cluster, "nobody")).is_none());
    })
    .await;
}

/// Looks at all that a decision may rest on: parent, children, another object, the time.
fn curious(request: &SyncRequest) -> Result<SyncResponse, Error> {
    use k8s_openapi::api::core::v1::Secret;
    let secret = request.get::<Secret>("key")?;
    let mut response = SyncResponse::from_status(json!({
        "children": request.all_children().count(), "secret": secret.is_some(), "at": request.now().to_string(),
    }))?
    .status_first();
    for (name, data) in request.parent_json()["spec"]["maps"].as_object().into_iter().flatten() {
        response.add_child(config_map(name, data.clone()))?;
    }
    Ok(response)
}

#[tokio::test]
async fn a_recorded_decision_is_made_again_without_a_cluster() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let reads = || shops().reads::<k8s_openapi::api::core::v1::Secret>();
        let test = OperatorTest::new(&cluster, "records", |operator| {
            operator.controller(reads().sync(|request: &SyncRequest| {
                // Until the recording is made, nothing unstable is written.
                if request.parent_json()["spec"]["curious"] == true {
                    curious(request)
                } else {
                    maps_of(request)
                }
            }))
        });
        test.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}})).await;
        test.create(shop("paint", json!({"maps": {"a": {"key": "1"}, "b": {"key": "1"}}}))).await;
        test.settle().await;
        test.create(config_map("foreign", json!({}))).await;
        let change =
            json!({"spec": {"curious": true, "maps": {"a": {"key": "2"}, "b": null, "foreign": {}}}});
        test.patch(&shop_kind(), "paint", change).await;
        let recording = loop {
            test.catch_up().await;
            // The first question for a Secret starts its watch.
            let paint = key(&cluster, "paint");
            if test.operator().plan(&shop_kind(), &paint).await.is_ok() {
                break test.operator().record(&shop_kind(), &paint).await.unwrap();
            }
        };
        let plan = test.operator().plan(&shop_kind(), &key(&cluster, "paint")).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        recording.save(directory.path().join("paint.json")).unwrap();

        let read = Recording::load(directory.path().join("paint.json")).unwrap();
        let replayed = read.replay(&reads().sync(curious)).await.unwrap();
        // All but the time of the decision, which is the recording's own.
        let without_time = |plan: &mainstay::plan::Plan| {
            let mut plan = serde_json::to_value(plan).unwrap();
            plan["steps"].as_array_mut().unwrap().retain(|step| step["action"] != "WriteStatus");
            plan
        };
        assert_eq!(without_time(&replayed), without_time(&plan));
        assert_eq!(replayed.steps.len(), plan.steps.len());
        assert_eq!(replayed.steps.len(), 3, "{replayed}");
        assert_eq!(replayed.waiting.len(), 1, "{replayed}");
        let again = read.replay(&reads().sync(curious)).await.unwrap();
        assert_eq!(again.to_string(), replayed.to_string(), "the same, however often");

        let other = mainstay::Controller::of::<k8s_openapi::api::core::v1::Pod>().sync(maps_of);
        assert!(matches!(read.replay(&other).await, Err(ReplayError::OtherKind { .. })));
        let failing = reads().sync(|_: &SyncRequest| Err(Error::new("no luck")));
        assert_eq!(read.replay(&failing).await.unwrap_err().to_string(), "the handler failed: no luck");
    })
    .await;
}

#[tokio::test]
async fn a_decision_that_failed_can_be_recorded_and_replayed() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let fail = |request: &SyncRequest| Err(Error::new(format!("no {} today", request.name())));
        let test = OperatorTest::new(&cluster, "records", |operator| operator.controller(shops().sync(fail)));
        test.create(shop("paint", json!({"maps": {"a": {}}}))).await;
        test.settle().await;
        let paint = key(&cluster, "paint");
        test.operator().plan(&shop_kind(), &paint).await.unwrap_err();
        let recording = test.operator().record(&shop_kind(), &paint).await.unwrap();
        let again = recording.replay(&shops().sync(fail)).await.unwrap_err();
        assert_eq!(again.to_string(), "the handler failed: no paint today");
        // A mended handler shows what it would have done.
        let plan = recording.replay(&shops().sync(maps_of)).await.unwrap();
        assert_eq!(plan.steps.len(), 1, "{plan}");
    })
    .await;
}

#[tokio::test]
async fn conditions_set_by_the_helper_move_their_time_only_with_their_state() {
    for_each_cluster(async |cluster| {
        let controller = shops().sync(|request: &SyncRequest| {
            let mut conditions = Conditions::of_status(&request.parent_json()["status"]);
            let open = request.parent_json()["spec"]["open"] == true;
            let reason = request.parent_json()["spec"]["reason"].as_str().unwrap_or("Unknown").to_owned();
            let generation = Some(request.generation());
            conditions.set(
                "Open",
                State::from(open),
                &reason,
                "as the spec says",
                generation,
                request.now(),
            )?;
            SyncResponse::from_status(json!({"conditions": conditions}))
        });
        let clock = TestClock::default();
        define_shop(&cluster).await;
        let test = OperatorTest::new(&cluster, "conditions", |operator| {
            operator.controller(controller).clock(clock.clone())
        });
        let condition =
            async || test.get(&shop_kind(), "paint").await.unwrap()["status"]["conditions"][0].clone();
        test.create(shop("paint", json!({"open": true, "reason": "Morning"}))).await;
        test.settle().await;
        let first: Value = condition().await;
        assert_eq!(
            (&first["status"], &first["lastTransitionTime"]),
            (&json!("True"), &json!("2030-01-01T00:00:00Z"))
        );

        clock.set("2030-01-01T01:00:00Z");
        test.assert_settled().await;
        test.patch(&shop_kind(), "paint", json!({"spec": {"reason": "Noon"}})).await;
        test.settle().await;
        let second = condition().await;
        assert_eq!((&second["reason"], &second["observedGeneration"]), (&json!("Noon"), &json!(2)));
        assert_eq!(second["lastTransitionTime"], first["lastTransitionTime"], "it is as open as before");

        test.patch(&shop_kind(), "paint", json!({"spec": {"open": false}})).await;
        test.settle().await;
        let third = condition().await;
        assert_eq!(
            (&third["status"], &third["lastTransitionTime"]),
            (&json!("False"), &json!("2030-01-01T01:00:00Z"))
        );
        test.assert_settled().await;
    })
    .await;
}

/// A clock that stands still until it is set.
#[derive(Debug, Clone)]
struct TestClock(std::sync::Arc<std::sync::Mutex<jiff::Timestamp>>);

impl Default for TestClock {
    fn default() -> Self {
        Self(std::sync::Arc::new(std::sync::Mutex::new("2030-01-01T00:00:00Z".parse().unwrap())))
    }
}

impl TestClock {
    fn set(&self, time: &str) {
        *self.0.lock().unwrap() = time.parse().unwrap();
    }
}

impl mainstay::clock::Clock for TestClock {
    fn now(&self) -> jiff::Timestamp {
        *self.0.lock().unwrap()
    }
}
