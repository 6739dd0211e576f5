//! A handler in all its forms, what it is given, and what follows from its errors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{
    AsyncHandler, ChildKind, Controller, Error, Handler, Key, Operator, Scope, SyncRequest, SyncResponse,
};
use mainstay_testkit::{RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::Count;
use crate::operator::kinds::{
    as_spec_says, config_map, config_maps, define_shop, obedient, run, secrets, shop, shop_kind, shops,
    short_backoff, step_through, version, warning, writes,
};
use crate::operator::own_kinds::{everywhere, object, own_kind, undefine};
use crate::operator::seam::Seam;

fn one_map(request: &SyncRequest) -> Result<SyncResponse, Error> {
    SyncResponse::new().with_child(config_map(request.name(), json!({"a": "1"})))
}

/// Shows that a controller's handler is called and what it answers is done.
async fn makes_a_map(controller: impl Fn() -> Controller) {
    for_each_cluster(async |cluster| {
        let test = step_through(&cluster, controller()).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        let made = test.get(&config_maps(), "paint").await.expect("the child is made");
        assert_eq!(made["data"]["a"], "1");
        test.assert_settled().await;
    })
    .await;
}

fn of_maps() -> mainstay::ControllerBuilder {
    shops([ChildKind::of::<ConfigMap>()])
}

#[tokio::test]
async fn function_is_a_handler() {
    makes_a_map(|| of_maps().sync(one_map)).await;
}

#[tokio::test]
async fn closure_is_a_handler() {
    makes_a_map(|| {
        let value = "1".to_owned();
        of_maps().sync(move |request: &SyncRequest| {
            SyncResponse::new().with_child(config_map(request.name(), json!({"a": value})))
        })
    })
    .await;
}

/// A handler with state of its own, in both forms.
struct Counting {
    calls: AtomicUsize,
}

impl Handler for Counting {
    fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, Error> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        one_map(request)
    }
}

#[tokio::test]
async fn struct_with_state_is_a_handler() {
    let handler = Arc::new(Counting { calls: AtomicUsize::new(0) });
    makes_a_map(|| of_maps().sync(Arc::clone(&handler))).await;
    assert!(handler.calls.load(Ordering::Relaxed) > 1);
}

struct Waiting {
    value: String,
}

impl AsyncHandler for Waiting {
    async fn sync(&self, request: SyncRequest) -> Result<SyncResponse, Error> {
        tokio::task::yield_now().await;
        SyncResponse::new().with_child(config_map(request.name(), json!({"a": self.value})))
    }
}

#[tokio::test]
async fn struct_that_waits_is_a_handler() {
    makes_a_map(|| of_maps().sync_async(Waiting { value: "1".into() })).await;
}

#[tokio::test]
async fn async_function_is_a_handler() {
    makes_a_map(|| {
        of_maps().sync_async(async |request: SyncRequest| {
            tokio::task::yield_now().await;
            one_map(&request)
        })
    })
    .await;
}

#[tokio::test]
async fn typed_children_are_sent_as_they_are_serialised() {
    for_each_cluster(async |cluster| {
        let controller = of_maps().sync(|request: &SyncRequest| {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(request.name().to_owned());
            map.data = Some(BTreeMap::from([("colour".to_owned(), "red".to_owned())]));
            SyncResponse::new().with_child(map)
        });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.assert_settled().await;
        let made = test.get(&config_maps(), "paint").await.expect("the child is made");
        assert_eq!(made["data"], json!({"colour": "red"}));
    })
    .await;
}

/// What a handler was shown, as it can be asked for.
fn look(request: &SyncRequest) -> Result<Value, Error> {
    let (maps, typed) = (config_maps(), request.children::<ConfigMap>());
    let raw = request.children_of(&maps);
    let names = raw.iter().map(|child| child.name().to_owned()).collect::<Vec<_>>();
    let parsed: Option<ConfigMap> = typed.get("one")?;
    Ok(json!({
        "all": request.all_children().count(),
        "maps": raw.count(),
        "names": names,
        "typed": typed.count(),
        "exists": [raw.exists("one"), raw.exists("other"), typed.exists("two"), typed.exists("other")],
        "json": raw.get("one").map(|child| child.json()["data"].clone()),
        "parsed": parsed.and_then(|map| map.data),
        "secrets": request.children::<Secret>().count(),
        "first": request.children::<Secret>().first()?.and_then(|secret| secret.metadata.name),
        "owner": [request.name(), request.namespace().unwrap_or_default(), request.kind().kind()],
        "generation": request.generation(),
    }))
}

#[tokio::test]
async fn request_shows_the_parent_and_all_of_its_children_and_no_others() {
    for_each_cluster(async |cluster| {
        let seen = Arc::new(Mutex::new(Value::Null));
        let shared = Arc::clone(&seen);
        let controller = shops([ChildKind::of::<ConfigMap>(), ChildKind::of::<Secret>()]).sync(
            move |request: &SyncRequest| {
                *shared.lock().unwrap() = look(request)?;
                as_spec_says(request)
            },
        );
        let test = step_through(&cluster, controller).await;
        // Somebody's own object of a child kind is nobody's child.
        test.create(config_map("other", json!({}))).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}});
        let children = [config_map("two", json!({})), config_map("one", json!({"a": "1"})), secret];
        test.create(shop("paint", json!({"children": children}))).await;
        test.settle().await;
        let expected = json!({
            "all": 3, "maps": 2, "names": ["one", "two"], "typed": 2, "exists": [true, false, true, false],
            "json": {"a": "1"}, "parsed": {"a": "1"}, "secrets": 1, "first": "key",
            "owner": ["paint", cluster.namespace(), "Shop"], "generation": 1,
        });
        assert_eq!(*seen.lock().unwrap(), expected);
    })
    .await;
}

#[tokio::test]
async fn a_child_outside_of_the_operators_only_namespace_is_refused() {
    for_each_cluster(async |cluster| {
        let (kind, definition) = own_kind("Kiosk", Scope::Cluster);
        cluster.define(definition).await;
        let controller = Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(as_spec_says);
        let operator = Operator::builder("kiosks", everywhere(&cluster).await)
            .namespace(cluster.namespace())
            .controller(controller)
            .build()
            .unwrap();
        let running = RunningOperator::start(operator);
        let child = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sign", "namespace": "default"},
        });
        cluster.create(object(&kind, "corner", json!({"children": [child]}))).await;
        eventually("the refusal", async || {
            let parent = cluster.find(&kind, "corner").await?;
            let condition = parent["status"]["conditions"][0].clone();
            (condition["reason"] == "BadAnswer").then(|| {
                let message = condition["message"].as_str().unwrap_or_default().to_owned();
                assert!(message.contains("limited to namespace"), "{message}");
            })
        })
        .await;
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn cluster_scoped_parent_spreads_its_children_over_namespaces() {
    for_each_cluster(async |cluster| {
        let ((kind, definition), other) = (own_kind("Mall", Scope::Cluster), cluster.again().await);
        cluster.define(definition).await;
        let controller = Controller::for_kind(kind.clone()).owns::<ConfigMap>().sync(as_spec_says);
        let operator = Operator::builder("malls", everywhere(&cluster).await).controller(controller).build().unwrap();
        let running = RunningOperator::start(operator);
        let children = [cluster.namespace(), other.namespace()].map(|namespace| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sign", "namespace": namespace}})
        });
        let made = cluster.create(object(&kind, "centre", json!({"children": children}))).await;
        for place in [&cluster, &other] {
            let child = eventually("the child", async || place.find(&config_maps(), "sign").await).await;
            assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"]);
        }
        cluster.patch(&kind, "centre", json!({"spec": {"children": [children[0]]}})).await;
        eventually("the dropped child to go", async || {
            other.find(&config_maps(), "sign").await.is_none().then_some(())
        })
        .await;
        assert!(cluster.find(&config_maps(), "sign").await.is_some());
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn handler_error_changes_nothing_and_is_counted_and_told() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let controller = shops([ChildKind::of::<ConfigMap>()])
            .finalize(|_: &SyncRequest| Ok(mainstay::Finalized::Done))
            .sync(|request: &SyncRequest| {
                if request.parent_json()["spec"]["fail"] == true {
                    return Err(Error::new("the paint has run out"));
                }
                as_spec_says(request)
            });
        let seam = Seam::new(&cluster);
        let test = seam.stepping(&cluster, "shops", controller);
        let spec = json!({"children": [config_map("paint", json!({"a": "1"}))], "status": {"open": true}});
        test.create(shop("paint", spec)).await;
        test.settle().await;
        let child = version(&cluster, &config_maps(), "paint").await;
        let spec = json!({"spec": {"fail": true, "children": [], "status": {"open": false}}});
        let patched = test.patch(&shop_kind(), "paint", spec).await;
        seam.take_writes();

        let steps = test.settle().await;
        assert_eq!(steps.len(), 1, "it is tried once and then waits");
        let sync = steps[0].sync.as_ref().expect("it failed");
        assert_eq!(sync.error.as_deref(), Some("the paint has run out"));
        assert_eq!(seam.take_writes(), Vec::<String>::new());
        assert_eq!(version(&cluster, &config_maps(), "paint").await, child);
        let shop = patched["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        assert_eq!(version(&cluster, &shop_kind(), "paint").await, shop);

        let key = Key::namespaced(cluster.namespace(), "paint");
        let report = test.operator().explain(&shop_kind(), &key).expect("it is known");
        assert_eq!((report.failures, report.errors), (1, 1));
        assert!(report.queue.starts_with("failed 1 times, tried again in"), "{}", report.queue);
        let metrics = test.operator().metrics();
        let counted =
            |line: &str| line.starts_with("mainstay_sync_errors_total") && line.contains("SyncFailed");
        assert!(metrics.lines().any(counted), "{metrics}");
        let failing = |line: &str| line.starts_with("mainstay_parents_failing{") && line.ends_with(" 1");
        assert!(metrics.lines().any(failing), "{metrics}");
        assert_eq!(warning(&cluster, "paint", "SyncFailed").await, "the paint has run out");
    })
    .await;
}

#[tokio::test]
async fn failing_parent_is_tried_again_after_a_backoff_until_it_succeeds() {
    for_each_cluster(async |cluster| {
        let calls = AtomicUsize::new(0);
        let controller = shops([ChildKind::of::<ConfigMap>()]).backoff(short_backoff()).sync(
            move |request: &SyncRequest| {
                if calls.fetch_add(1, Ordering::Relaxed) < 3 {
                    return Err(Error::new("not yet"));
                }
                one_map(request)
            },
        );
        let running = run(&cluster, controller).await;
        cluster.create(shop("paint", json!({}))).await;
        eventually("the child", async || cluster.find(&config_maps(), "paint").await).await;
        let key = Key::namespaced(cluster.namespace(), "paint");
        eventually("the failures to be forgotten", async || {
            let report = running.operator().explain(&shop_kind(), &key)?;
            (report.errors == 3 && report.failures == 0 && report.error.is_none()).then_some(())
        })
        .await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn answer_can_ask_to_be_called_again() {
    for_each_cluster(async |cluster| {
        let again = SyncResponse::new().requeue_after(Duration::from_millis(20));
        let (calls, sync) = Count::calls_of(move |_| Ok(again.clone()));
        let running = run(&cluster, shops([]).sync(sync)).await;
        cluster.create(shop("paint", json!({}))).await;
        eventually("more calls", async || (calls.get() > 3).then_some(())).await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn one_create_per_child_and_one_status_write_and_nothing_when_converged() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        let test = seam.stepping(&cluster, "shops", obedient([config_maps(), secrets()]));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"a": "b"}});
        let children = [config_map("one", json!({"a": "1"})), config_map("two", json!({})), secret];
        test.create(shop("paint", json!({"children": children, "status": {"open": true}}))).await;
        let steps = test.settle().await;
        assert_eq!(writes(&steps), 4);
        assert_eq!(seam.take_writes().len(), 4);
        test.assert_settled().await;
        assert_eq!(seam.take_writes(), Vec::<String>::new());
    })
    .await;
}
