//! What is done before a parent goes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::plan::Action;
use mainstay::{AsyncFinalize, ChildKind, Error, Finalize, Finalized, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{
    as_spec_says, config_map, config_maps, shop, shop_kind, shops, step_through, writes,
};

const FINALIZER: &str = "shops.mainstay.dev/finalizer";

fn of_maps() -> mainstay::ControllerBuilder {
    shops([ChildKind::of::<ConfigMap>()])
}

fn with_map() -> Value {
    shop("paint", json!({"children": [config_map("one", json!({}))]}))
}

async fn finalizers(test: &OperatorTest) -> Value {
    test.get(&shop_kind(), "paint").await.expect("the shop is there")["metadata"]["finalizers"].clone()
}

#[tokio::test]
async fn without_finalize_there_is_no_finalizer() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, of_maps().sync(as_spec_says)).await;
        test.create(with_map()).await;
        test.settle().await;
        assert_eq!(finalizers(&test).await, Value::Null);
        test.delete(&shop_kind(), "paint").await;
        assert!(!test.exists(&shop_kind(), "paint").await);
    })
    .await;
}

#[tokio::test]
async fn finalizer_is_set_before_anything_is_made_and_taken_off_when_done() {
    for_each_cluster(async |cluster| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let controller = of_maps()
            .finalize(move |_: &SyncRequest| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(Finalized::Done)
            })
            .sync(as_spec_says);
        let test = step_through(&cluster, controller).await;
        test.create(with_map()).await;
        let steps = test.settle().await;
        let actions: Vec<_> = steps.iter().filter_map(|step| step.sync.as_ref()).collect();
        let actions: Vec<_> =
            actions.iter().flat_map(|sync| &sync.plan.steps).map(|step| step.action).collect();
        assert_eq!(actions, [Action::AddFinalizer, Action::Create]);
        assert_eq!(finalizers(&test).await, json!([FINALIZER]));
        test.assert_settled().await;
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        assert!(!test.exists(&shop_kind(), "paint").await);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    })
    .await;
}

#[tokio::test]
async fn whoever_asked_is_told_of_parents_that_are_gone() {
    for_each_cluster(async |cluster| {
        let gone = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&gone);
        let controller = of_maps()
            .when_gone(move |key, uid| told.lock().unwrap().push((key.name().to_owned(), uid.to_owned())))
            .sync(as_spec_says);
        let test = step_through(&cluster, controller).await;
        let uid = test.create(with_map()).await["metadata"]["uid"].as_str().unwrap().to_owned();
        test.settle().await;
        assert!(gone.lock().unwrap().is_empty());
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        assert_eq!(*gone.lock().unwrap(), [("paint".to_owned(), uid)]);
    })
    .await;
}

/// Cleans up with a child, and is done when somebody has marked it.
struct CleanUp {
    seen: Mutex<Vec<usize>>,
}

impl Finalize for CleanUp {
    fn finalize(&self, request: &SyncRequest) -> Result<Finalized, Error> {
        let maps = config_maps();
        let children = request.children_of(&maps);
        self.seen.lock().unwrap().push(children.count());
        let done = children.get("broom").is_some_and(|broom| broom.json()["data"]["done"] == "yes");
        if done {
            return Ok(Finalized::Done);
        }
        let status = json!({"closing": true});
        Ok(Finalized::NotYet(SyncResponse::from_status(status)?.with_child(config_map("broom", json!({})))?))
    }
}

#[tokio::test]
async fn parent_stays_until_the_finalizer_is_done() {
    for_each_cluster(async |cluster| {
        let clean_up = Arc::new(CleanUp { seen: Mutex::default() });
        let controller = of_maps().finalize(Arc::clone(&clean_up)).sync(as_spec_says);
        let test = step_through(&cluster, controller).await;
        test.create(with_map()).await;
        test.settle().await;
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        let going = test.get(&shop_kind(), "paint").await.expect("it is not done yet");
        assert_eq!(going["status"]["closing"], true);
        assert!(test.exists(&config_maps(), "broom").await);
        assert!(
            test.exists(&config_maps(), "one").await,
            "what the finalizer does not name stays until it is done"
        );
        assert_eq!(writes(&test.settle().await), 0);
        test.patch(&config_maps(), "broom", json!({"data": {"done": "yes"}})).await;
        test.settle().await;
        assert!(!test.exists(&shop_kind(), "paint").await);
        assert_eq!(clean_up.seen.lock().unwrap()[0], 1, "the first call sees the child that is there");
    })
    .await;
}

struct Remote {
    fails: AtomicBool,
}

impl AsyncFinalize for Remote {
    async fn finalize(&self, request: SyncRequest) -> Result<Finalized, Error> {
        tokio::task::yield_now().await;
        if self.fails.swap(false, Ordering::Relaxed) {
            return Err(Error::new(format!("{} cannot be reached", request.name())));
        }
        Ok(Finalized::Done)
    }
}

#[tokio::test]
async fn finalizer_that_waits_and_fails_is_called_again() {
    for_each_cluster(async |cluster| {
        let controller = of_maps().finalize_async(Remote { fails: AtomicBool::new(true) }).sync(as_spec_says);
        let test = step_through(&cluster, controller).await;
        test.create(with_map()).await;
        test.settle().await;
        test.delete(&shop_kind(), "paint").await;
        let steps = test.settle().await;
        assert_eq!(writes(&steps), 0);
        let error = steps.last().and_then(|step| step.sync.as_ref()?.error.clone());
        assert_eq!(error.as_deref(), Some("paint cannot be reached"));
        assert_eq!(finalizers(&test).await, json!([FINALIZER]));
        test.operator().reconcile_now(&shop_kind(), &mainstay::Key::namespaced(cluster.namespace(), "paint"));
        test.settle().await;
        assert!(!test.exists(&shop_kind(), "paint").await);
    })
    .await;
}

#[tokio::test]
async fn finalizers_of_others_are_left_alone_and_waited_for() {
    for_each_cluster(async |cluster| {
        let controller = of_maps().finalize(|_: &SyncRequest| Ok(Finalized::Done)).sync(as_spec_says);
        let test = step_through(&cluster, controller).await;
        let mut parent = with_map();
        parent["metadata"]["finalizers"] = json!(["example.com/theirs"]);
        test.create(parent).await;
        test.settle().await;
        assert_eq!(finalizers(&test).await, json!(["example.com/theirs", FINALIZER]));
        test.delete(&shop_kind(), "paint").await;
        test.settle().await;
        assert_eq!(finalizers(&test).await, json!(["example.com/theirs"]));
        assert_eq!(writes(&test.settle().await), 0, "ours is not put back on a parent that goes");
        test.patch(&shop_kind(), "paint", json!({"metadata": {"finalizers": null}})).await;
        test.settle().await;
        assert!(!test.exists(&shop_kind(), "paint").await);
    })
    .await;
}

#[tokio::test]
async fn finalizer_of_an_earlier_version_of_the_operator_is_taken_off() {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, of_maps().sync(as_spec_says)).await;
        let mut parent = with_map();
        parent["metadata"]["finalizers"] = json!([FINALIZER]);
        test.create(parent).await;
        test.settle().await;
        assert_eq!(finalizers(&test).await, Value::Null);
        test.assert_settled().await;
        // Even from one that goes already.
        let mut parent = shop("late", json!({}));
        parent["metadata"]["finalizers"] = json!([FINALIZER]);
        test.create(parent).await;
        test.delete(&shop_kind(), "late").await;
        test.settle().await;
        assert!(!test.exists(&shop_kind(), "late").await);
    })
    .await;
}
