//! Events: what a parent's owner reads in `kubectl describe`.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::events::Event;
use mainstay::queue::Backoff;
use mainstay::{Controller, Error, Key, Kind, Operator, Scope, SyncRequest, SyncResponse};
use mainstay_testkit::binaries::find_program;
use mainstay_testkit::cluster::report_missing;
use mainstay_testkit::{Cluster, RunningOperator, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator::kinds::{config_map, define_shop, shop, shop_kind};
use crate::operator::own_kinds::{object, own_kind, undefine};

fn fail(request: &SyncRequest) -> Result<SyncResponse, Error> {
    match request.parent_json()["spec"]["fail"].as_str() {
        Some(why) => Err(Error::new(why.to_owned())),
        None => Ok(SyncResponse::new().with_child(config_map(request.name(), json!({"a": "1"})))?),
    }
}

/// Tries again at once.
fn hasty() -> Backoff {
    let pause = Duration::from_millis(10);
    Backoff { initial: pause, max: pause, ..Backoff::default() }
}

fn start(cluster: &Cluster, name: &str, kind: Kind) -> RunningOperator {
    let controller = Controller::for_kind(kind).owns::<ConfigMap>().backoff(hasty()).sync(fail);
    let operator = Operator::builder(name, cluster.client()).namespace(cluster.namespace());
    RunningOperator::start(operator.controller(controller).build().unwrap())
}

/// Waits until a parent has failed so often.
async fn failed(operator: &Operator, kind: &Kind, key: &Key, times: u64) {
    eventually("failures", async || {
        let report = operator.explain(kind, key)?;
        (report.errors >= times).then_some(())
    })
    .await;
}

/// The events about an object, found as kubectl finds them.
async fn events_of(cluster: &Cluster, namespace: &str, object: &Value) -> Vec<Value> {
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid%3D{uid}");
    let (status, list) = cluster.get(&path).await;
    assert!(status.is_success(), "{list}");
    list["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn repetition_is_one_event_that_counts() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let paint = cluster.create(shop("paint", json!({"fail": "no paint left"}))).await;
        let running = start(&cluster, "shops", shop_kind());
        let (operator, key) = (running.operator().clone(), Key::namespaced(cluster.namespace(), "paint"));
        failed(&operator, &shop_kind(), &key, 10).await;
        running.stop().await;
        let errors = operator.explain(&shop_kind(), &key).map(|report| report.errors);

        let events = events_of(&cluster, cluster.namespace(), &paint).await;
        assert_eq!(events.len(), 1, "{events:?}");
        let event = &events[0];
        assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("SyncFailed")));
        assert_eq!(event["message"], "no paint left");
        assert_eq!(event["reportingComponent"], "shops");
        assert_eq!(event["involvedObject"]["kind"], "Shop");
        assert_eq!(event["involvedObject"]["name"], "paint");
        // What was counted last is written when the operator stops.
        let counted = event["series"]["count"].as_u64();
        assert!(counted >= Some(10) && (errors.is_none() || counted == errors), "{counted:?} of {errors:?}");
    })
    .await;
}

#[tokio::test]
async fn another_reason_is_another_event_and_success_is_none() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let books = cluster.create(shop("books", json!({}))).await;
        let paint = cluster.create(shop("paint", json!({"fail": "no paint left"}))).await;
        let running = start(&cluster, "shops", shop_kind());
        let key = Key::namespaced(cluster.namespace(), "paint");
        failed(running.operator(), &shop_kind(), &key, 2).await;
        cluster.patch(&shop_kind(), "paint", json!({"spec": {"fail": "no brush either"}})).await;
        eventually("the second event", async || {
            let events = events_of(&cluster, cluster.namespace(), &paint).await;
            let mut told: Vec<_> = events.iter().filter_map(|event| event["message"].as_str()).collect();
            told.sort_unstable();
            (told == ["no brush either", "no paint left"]).then_some(())
        })
        .await;
        running.stop().await;
        assert!(events_of(&cluster, cluster.namespace(), &books).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn events_of_cluster_scoped_parents_are_in_the_default_namespace() {
    for_each_cluster(async |cluster| {
        let (stalls, definition) = own_kind("Stall", Scope::Cluster);
        cluster.define(definition).await;
        let created = cluster.create(object(&stalls, "paint", json!({"fail": "no paint left"}))).await;
        let running = start(&cluster, "stalls", stalls.clone());
        eventually("an event", async || events_of(&cluster, "default", &created).await.pop()).await;
        running.stop().await;
        undefine(&cluster, &stalls).await;
    })
    .await;
}

#[tokio::test]
async fn kubectl_describe_shows_the_event_with_its_count() {
    let kubectl = match find_program("kubectl") {
        Ok(kubectl) => kubectl,
        Err(missing) => return report_missing("kubectl describe of a failing parent", &missing),
    };
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        cluster.create(shop("paint", json!({"fail": "no paint left"}))).await;
        let running = start(&cluster, "shops", shop_kind());
        let key = Key::namespaced(cluster.namespace(), "paint");
        failed(running.operator(), &shop_kind(), &key, 5).await;
        running.stop().await;
        let kubeconfig = cluster.kubeconfig().await;
        let shown = tokio::process::Command::new(&kubectl)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["-n", cluster.namespace(), "describe", "shops.test.mainstay.dev", "paint"])
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&shown.stdout);
        let line = text.lines().find(|line| line.contains("SyncFailed")).unwrap_or_else(|| panic!("{text}"));
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[..2], ["Warning", "SyncFailed"], "{line}");
        assert!(line.contains("(x") && line.contains(" over "), "{line}");
        assert!(line.ends_with("shops  no paint left"), "{line}");
    })
    .await;
}

#[tokio::test]
async fn a_handler_can_tell_of_what_happened() {
    for_each_cluster(async |cluster| {
        define_shop(&cluster).await;
        let paint = cluster.create(shop("paint", json!({}))).await;
        let controller = Controller::for_kind(shop_kind()).sync(|_: &SyncRequest| {
            Ok(SyncResponse::new().with_event(Event::normal("Painted", "the walls are blue")))
        });
        let operator = Operator::builder("painters", cluster.client()).namespace(cluster.namespace());
        let running = RunningOperator::start(operator.controller(controller).build().unwrap());
        let event = eventually("the event", async || {
            events_of(&cluster, cluster.namespace(), &paint).await.into_iter().next()
        });
        let event = event.await;
        assert_eq!((&event["reason"], &event["type"]), (&json!("Painted"), &json!("Normal")));
        assert_eq!(event["message"], "the walls are blue");
        running.stop().await;
    })
    .await;
}
