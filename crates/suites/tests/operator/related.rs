//! Objects that a handler depends on without owning them.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Controller, Error, Operator, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::{OperatorTest, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::fixtures::{Count, is_watched, key, shops, until};
use crate::operator::kinds::{config_map, config_maps, define_shop, secrets, shop, shop_kind, step_through};
use crate::operator::own_kinds::{everywhere, object, own_kind, undefine};
use crate::operator::seam::Seam;

/// A Secret whose value is in an annotation, for all to see.
#[expect(clippy::needless_pass_by_value, reason = "made on the spot with json!")]
fn secret(name: &str, value: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "annotations": {"value": value}, "labels": labels}})
}

fn value_of(secret: &Secret) -> String {
    let annotations = secret.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get("value")).cloned().unwrap_or_default()
}

/// Copies the value of the Secret that the spec names, if it names one, into a config map of the parent's name.
fn copy_of_secret(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let Some(name) = request.parent_json()["spec"]["secret"].as_str() else {
        return SyncResponse::new().with_child(config_map(request.name(), json!({"value": "unasked"})));
    };
    let value = request.get::<Secret>(name)?.map_or("missing".into(), |secret| value_of(&secret));
    SyncResponse::new().with_child(config_map(request.name(), json!({"value": value})))
}

async fn copied(test: &OperatorTest, name: &str) -> Value {
    test.settle().await;
    test.get(&config_maps(), name).await.unwrap()["data"]["value"].clone()
}

#[tokio::test]
async fn an_object_asked_for_by_name_wakes_whoever_asked_when_it_comes_changes_and_goes() {
    for_each_cluster(async |cluster| {
        let controller = shops().reads::<Secret>().sync(copy_of_secret);
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({"secret": "key"}))).await;
        eventually("the answer that there is none", async || {
            test.settle().await;
            test.exists(&config_maps(), "paint").await.then_some(())
        })
        .await;
        assert_eq!(copied(&test, "paint").await, "missing");
        test.create(secret("key", "one", json!({}))).await;
        assert_eq!(copied(&test, "paint").await, "one");
        test.patch(&secrets(), "key", json!({"metadata": {"annotations": {"value": "two"}}})).await;
        assert_eq!(copied(&test, "paint").await, "two");
        let report = test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        let triggers = report.history.last().unwrap()["triggers"].to_string();
        assert!(triggers.contains("key, which it depends on, changed"), "{triggers}");
        test.create(secret("other", "three", json!({}))).await;
        assert!(test.settle().await.is_empty(), "nobody asked for this one");
        test.delete(&secrets(), "key").await;
        assert_eq!(copied(&test, "paint").await, "missing");
    })
    .await;
}

#[tokio::test]
async fn objects_asked_for_by_selector_wake_whoever_asked_when_they_come_change_and_go() {
    for_each_cluster(async |cluster| {
        let controller = shops().reads::<Secret>().sync(|request: &SyncRequest| {
            let selected = request.select::<Secret>(&format!("shop={}", request.name()))?;
            let values: Vec<_> = selected.iter().map(value_of).collect();
            SyncResponse::new().with_child(config_map(request.name(), json!({"value": values.join(",")})))
        });
        let test = step_through(&cluster, controller).await;
        test.create(secret("a", "1", json!({"shop": "paint"}))).await;
        test.create(secret("b", "2", json!({"shop": "other"}))).await;
        test.create(shop("paint", json!({}))).await;
        eventually("the first answer", async || {
            test.settle().await;
            test.exists(&config_maps(), "paint").await.then_some(())
        })
        .await;
        assert_eq!(copied(&test, "paint").await, "1");
        test.patch(&secrets(), "b", json!({"metadata": {"labels": {"shop": "paint"}}})).await;
        assert_eq!(copied(&test, "paint").await, "1,2");
        test.patch(&secrets(), "a", json!({"metadata": {"annotations": {"value": "3"}}})).await;
        assert_eq!(copied(&test, "paint").await, "3,2");
        test.patch(&secrets(), "a", json!({"metadata": {"labels": {"shop": "other"}}})).await;
        assert_eq!(copied(&test, "paint").await, "2");
        test.patch(&secrets(), "a", json!({"metadata": {"annotations": {"value": "4"}}})).await;
        assert!(test.settle().await.is_empty(), "it is selected no more");
        test.delete(&secrets(), "b").await;
        assert_eq!(copied(&test, "paint").await, "");
    })
    .await;
}

#[tokio::test]
async fn a_cluster_scoped_parent_asks_in_all_namespaces() {
    for_each_cluster(async |cluster| {
        let (kind, definition) = own_kind("Mall", Scope::Cluster);
        cluster.define(definition).await;
        let elsewhere = cluster.again().await;
        let label = format!("mall={}", kind.plural());
        let selector = label.clone();
        let (here, there) = (cluster.namespace().to_owned(), elsewhere.namespace().to_owned());
        let (from, to) = (here.clone(), there.clone());
        let controller = Controller::for_kind(kind.clone()).owns::<ConfigMap>().reads::<Secret>().sync(
            move |request: &SyncRequest| {
                let one = request
                    .get_in::<Secret>(&from, "key")?
                    .map_or("missing".into(), |secret| value_of(&secret));
                let all = request.select::<Secret>(&selector)?.len();
                let mut map = config_map("copy", json!({"one": one, "all": all.to_string()}));
                map["metadata"]["namespace"] = json!(to);
                SyncResponse::new().with_child(map)
            },
        );
        let operator =
            Operator::builder("malls", everywhere(&cluster).await).controller(controller).build().unwrap();
        let running = RunningOperator::start(operator);
        cluster.create(object(&kind, "big", json!({}))).await;
        let is = |one: &'static str, all: &'static str| {
            move |map: &Value| map["data"] == json!({"one": one, "all": all})
        };
        until(&elsewhere, &config_maps(), "copy", is("missing", "0")).await;
        let labels = json!({"mall": kind.plural()});
        cluster.create(secret("key", "found", labels.clone())).await;
        until(&elsewhere, &config_maps(), "copy", is("found", "1")).await;
        elsewhere.create(secret("another", "", labels)).await;
        until(&elsewhere, &config_maps(), "copy", is("found", "2")).await;
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn a_namespaced_parent_is_refused_what_is_outside_of_its_namespace() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let elsewhere = cluster.again().await;
        elsewhere.create(secret("key", "theirs", json!({}))).await;
        let other = elsewhere.namespace().to_owned();
        let controller = shops().reads::<Secret>().sync(move |request: &SyncRequest| {
            let found = request.get_in::<Secret>(&other, "key")?;
            SyncResponse::new().with_child(config_map("a", json!({"found": found.is_some().to_string()})))
        });
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({}))).await;
        test.settle().await;
        let report = test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        let error = report.error.unwrap();
        let told = format!("a namespaced parent can only depend on objects in {}", cluster.namespace());
        assert!(error.contains(&told), "{error}");
        assert!(!test.exists(&config_maps(), "a").await);
        assert!(!is_watched(test.operator(), &secrets()));
    })
    .await;
}

#[tokio::test]
async fn a_namespaced_parent_that_reads_everywhere_sees_and_follows_all_namespaces() {
    for_each_cluster(async |cluster| {
        // Of its own: this operator looks into all namespaces, and would meet the shops of other tests there.
        let (kind, definition) = own_kind("Chain", Scope::Namespaced);
        cluster.define(definition).await;
        let elsewhere = cluster.again().await;
        let label = format!("shared={}", cluster.namespace());
        let controller = Controller::for_kind(kind.clone())
            .owns::<ConfigMap>()
            .reads_everywhere::<Secret>()
            .sync(move |request: &SyncRequest| {
                let found = request.select_everywhere::<Secret>(&label)?.len();
                SyncResponse::new().with_child(config_map("a", json!({"found": found.to_string()})))
            });
        let operator =
            Operator::builder("wide", everywhere(&cluster).await).controller(controller).build().unwrap();
        let running = RunningOperator::start(operator);
        cluster.create(object(&kind, "paint", json!({}))).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "0").await;
        let labels = json!({"shared": cluster.namespace()});
        elsewhere.create(secret("theirs", "", labels.clone())).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "1").await;
        cluster.create(secret("ours", "", labels)).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "2").await;
        elsewhere.delete(&secrets(), "theirs").await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "1").await;
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_was_not_declared_is_refused() {
    for_each_cluster(async |cluster| {
        let controller = shops().sync(copy_of_secret);
        let test = step_through(&cluster, controller).await;
        test.create(shop("paint", json!({"secret": "key"}))).await;
        test.settle().await;
        let report = test.operator().explain(&shop_kind(), &key(&cluster, "paint")).unwrap();
        let error = report.error.unwrap();
        assert!(
            error.contains("Secret.v1 was asked for, but is not declared; declare it with `reads`"),
            "{error}"
        );
        assert!(!is_watched(test.operator(), &secrets()));
    })
    .await;
}

#[tokio::test]
async fn the_watch_of_a_kind_ends_with_the_last_reference_to_it() {
    for_each_cluster(async |cluster| {
        let controller = shops().reads::<Secret>().sync(copy_of_secret);
        let test = step_through(&cluster, controller).await;
        assert!(!is_watched(test.operator(), &secrets()), "nobody has asked yet");
        test.create(secret("key", "one", json!({}))).await;
        for name in ["paint", "glue"] {
            test.create(shop(name, json!({"secret": "key"}))).await;
        }
        eventually("both to have asked", async || {
            test.settle().await;
            (test.exists(&config_maps(), "paint").await && test.exists(&config_maps(), "glue").await)
                .then_some(())
        })
        .await;
        assert!(is_watched(test.operator(), &secrets()));
        test.patch(&shop_kind(), "paint", json!({"spec": {"secret": null}})).await;
        assert_eq!(copied(&test, "paint").await, "unasked");
        assert!(is_watched(test.operator(), &secrets()), "the other one still asks");
        test.delete(&shop_kind(), "glue").await;
        test.settle().await;
        assert!(!is_watched(test.operator(), &secrets()));
        test.patch(&shop_kind(), "paint", json!({"spec": {"secret": "key"}})).await;
        eventually("it to ask anew", async || (copied(&test, "paint").await == "one").then_some(())).await;
        assert!(is_watched(test.operator(), &secrets()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_waits_until_the_cache_is_filled_and_nobody_else_does() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let seam = Seam::new(&cluster);
        seam.hold_requests("/secrets");
        let running = seam.running("pending", shops().reads::<Secret>().sync(copy_of_secret));
        cluster.create(secret("key", "one", json!({}))).await;
        cluster.create(shop("asks", json!({"secret": "key"}))).await;
        cluster.create(shop("asks-not", json!({}))).await;
        until(&cluster, &config_maps(), "asks-not", |_| true).await;
        let report = || running.operator().explain(&shop_kind(), &key(&cluster, "asks")).unwrap();
        eventually("it to wait", async || {
            report().history.last()?["plan"]["waiting"].to_string().contains("CacheNotFilled").then_some(())
        })
        .await;
        assert_eq!((report().failures, report().error), (0, None), "waiting is no failure");
        assert!(cluster.find(&config_maps(), "asks").await.is_none());
        seam.let_go();
        until(&cluster, &config_maps(), "asks", |map| map["data"]["value"] == "one").await;
        running.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_the_filling_of_a_cache() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        cluster.create(secret("key", "one", json!({}))).await;
        // The cache is filled while the handler that asked first still thinks.
        let (asked, may_answer) = (Count::default(), Count::default());
        let (asking, answering) = (asked.clone(), may_answer.clone());
        let controller = shops().reads::<Secret>().sync_async(move |request: SyncRequest| {
            let (asking, answering) = (asking.clone(), answering.clone());
            async move {
                let answer = copy_of_secret(&request);
                asking.add();
                while answering.get() == 0 {
                    tokio::task::yield_now().await;
                }
                answer
            }
        });
        let running = Seam::new(&cluster).running("filled", controller);
        cluster.create(shop("paint", json!({"secret": "key"}))).await;
        eventually("the question", async || (asked.get() == 1).then_some(())).await;
        eventually("the cache to be filled", async || {
            let reports = running.operator().caches();
            reports.iter().any(|report| report.kind == secrets() && report.synced).then_some(())
        })
        .await;
        may_answer.add();
        until(&cluster, &config_maps(), "paint", |map| map["data"]["value"] == "one").await;
        running.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_is_asked_for_may_come_later_and_go_again() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let (kind, definition) = own_kind("Sign", Scope::Namespaced);
        let signs = kind.clone();
        let controller = shops().reads_kind(kind.clone()).sync(move |request: &SyncRequest| {
            let question = mainstay::Related::named(&signs, mainstay::Key::new(request.namespace(), "open"));
            let found = request.related(&question)?.len();
            SyncResponse::new().with_child(config_map("a", json!({"found": found.to_string()})))
        });
        let running = Seam::new(&cluster).running("late-kinds", controller);
        cluster.create(shop("paint", json!({}))).await;
        eventually("it to wait for the kind", async || {
            let report = running.operator().explain(&shop_kind(), &key(&cluster, "paint"))?;
            report.history.last()?.to_string().contains("CacheNotFilled").then_some(())
        })
        .await;
        cluster.define(definition).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "0").await;
        cluster.create(object(&kind, "open", json!({}))).await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "1").await;
        cluster.delete(&kind, "open").await;
        until(&cluster, &config_maps(), "a", |map| map["data"]["found"] == "0").await;
        running.stop().await;
        undefine(&cluster, &kind).await;
    })
    .await;
}

#[tokio::test]
async fn a_sync_runs_again_for_a_change_that_came_while_it_decided() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        cluster.create(secret("key", "one", json!({}))).await;
        let changed = Count::default();
        let (once, user) = (changed.clone(), cluster.clone());
        let controller = shops().reads::<Secret>().sync_async(move |request: SyncRequest| {
            let (once, user) = (once.clone(), user.clone());
            async move {
                let answer = copy_of_secret(&request)?;
                if once.get() == 0 {
                    once.add();
                    user.patch(&secrets(), "key", json!({"metadata": {"annotations": {"value": "two"}}}))
                        .await;
                }
                Ok(answer)
            }
        });
        let running = Seam::new(&cluster).running("meanwhile", controller);
        cluster.create(shop("paint", json!({"secret": "key"}))).await;
        until(&cluster, &config_maps(), "paint", |map| map["data"]["value"] == "two").await;
        running.stop().await;
    })
    .await;
}
