//! The controllers that belong to the API: what follows from a deletion, and that nothing stops them.

use crate::seams::{Events, MAPS, map, send, succeed};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mainstay_apiserver::{
    ApiServer, Change, Clock, Observer, SeededIdentities, TokioClock, WebhookTransport,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

const START: &str = "2001-01-01T00:00:00Z";

/// Lets the controllers do what they have to. The clock is paused, so this waits for nobody.
async fn rest() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

fn owner(of: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": true,
        "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
    })
}

fn owned(name: &str, by: &Value) -> Value {
    let mut child = map(name, "1");
    child["metadata"]["ownerReferences"] = json!([owner(by)]);
    child
}

async fn exists(server: &ApiServer, name: &str) -> bool {
    send(server, "GET", &format!("{MAPS}/{name}"), Value::Null).await.0 == 200
}

fn path(name: &str) -> String {
    format!("{MAPS}/{name}")
}

/// Objects that own each other in a circle: each the next one, and the last the first.
async fn circle(server: &ApiServer, names: &[&str]) {
    let mut made = Vec::new();
    for name in names {
        made.push(succeed(server, "POST", MAPS, map(name, "1")).await);
    }
    for (index, name) in names.iter().enumerate() {
        let owners = json!({"metadata": {"ownerReferences": [owner(&made[(index + 1) % names.len()])]}});
        succeed(server, "PATCH", &path(name), owners).await;
    }
}

#[tokio::test(start_paused = true)]
async fn owners_in_a_circle_end_in_the_foreground() {
    for names in [&["a"][..], &["a", "b"], &["a", "b", "c", "d"]] {
        for also in [None, Some(names[names.len() - 1])] {
            let server = ApiServer::builder().build().unwrap();
            circle(&server, names).await;
            for name in [Some(names[0]), also].into_iter().flatten() {
                let (code, answer) =
                    send(&server, "DELETE", &path(name), json!({"propagationPolicy": "Foreground"})).await;
                assert!(code < 300 || code == 404, "{answer}");
            }
            rest().await;
            for name in names {
                assert!(!exists(&server, name).await, "{name} of {names:?}, deleted with {also:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_in_the_foreground_goes_from_its_end() {
    let server = ApiServer::builder().build().unwrap();
    let a = succeed(&server, "POST", MAPS, map("a", "1")).await;
    let b = succeed(&server, "POST", MAPS, owned("b", &a)).await;
    let mut held = owned("c", &b);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    succeed(&server, "POST", MAPS, held).await;
    for name in ["a", "b"] {
        succeed(&server, "DELETE", &path(name), json!({"propagationPolicy": "Foreground"})).await;
    }
    rest().await;
    assert!(exists(&server, "a").await && exists(&server, "b").await && exists(&server, "c").await);
    succeed(&server, "PATCH", &path("c"), json!({"metadata": {"finalizers": null}})).await;
    rest().await;
    assert!(!exists(&server, "a").await && !exists(&server, "b").await && !exists(&server, "c").await);
}

/// Answers reviews of deletions, after doing what a test wants.
#[derive(Clone, Default)]
struct Meddler {
    server: Arc<OnceLock<ApiServer>>,
    asked: Arc<AtomicUsize>,
    /// Never answers.
    dead: bool,
}

impl WebhookTransport for Meddler {
    fn post<'a>(&'a self, _: &'a str, review: Bytes) -> BoxFuture<'a, Result<Bytes, String>> {
        async move {
            let review: Value = serde_json::from_slice(&review).unwrap();
            let count = self.asked.fetch_add(1, Ordering::SeqCst);
            if self.dead {
                std::future::pending::<()>().await;
            }
            let name = review["request"]["name"].as_str().unwrap();
            if let (Some(server), "child", 0) = (self.server.get(), name, count) {
                // Somebody changes it at the very moment at which it is deleted.
                succeed(server, "PATCH", &path("child"), json!({"data": {"key": "2"}})).await;
            }
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            Ok(answer.to_string().into())
        }
        .boxed()
    }
}

async fn with_deletions_reviewed(hooks: &Meddler) -> ApiServer {
    let server = ApiServer::builder().webhook_transport(hooks.clone()).build().unwrap();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "maps.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://hooks.example.com/"}, "timeoutSeconds": 10,
            "rules": [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "objectSelector": {"matchLabels": {"reviewed": "yes"}},
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    succeed(&server, "POST", path, configuration).await;
    assert!(hooks.server.set(server.clone()).is_ok());
    server
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_changes_while_it_is_collected_is_collected_later() {
    let hooks = Meddler::default();
    let server = with_deletions_reviewed(&hooks).await;
    let made = succeed(&server, "POST", MAPS, map("owner", "1")).await;
    let mut child = owned("child", &made);
    child["metadata"]["labels"] = json!({"reviewed": "yes"});
    succeed(&server, "POST", MAPS, child).await;
    succeed(&server, "DELETE", &path("owner"), Value::Null).await;
    rest().await;
    assert!(hooks.asked.load(Ordering::SeqCst) >= 2, "it was refused once");
    assert!(!exists(&server, "child").await);
}

/// A dead webhook is asked about this many objects, and each stays; those that it is not asked about go.
async fn check_dead_webhook(stuck: usize) {
    let hooks = Meddler { dead: true, ..Meddler::default() };
    let server = with_deletions_reviewed(&hooks).await;
    for (name, reviewed, count) in [("stuck", "yes", stuck), ("free", "no", 10)] {
        let made = succeed(&server, "POST", MAPS, map(name, "1")).await;
        for number in 0..count {
            let mut child = owned(&format!("{name}-{number}"), &made);
            child["metadata"]["labels"] = json!({"reviewed": reviewed});
            succeed(&server, "POST", MAPS, child).await;
        }
    }
    let begin = Instant::now();
    succeed(&server, "DELETE", &path("stuck"), Value::Null).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    succeed(&server, "DELETE", &path("free"), Value::Null).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    succeed(&server, "POST", "/api/v1/namespaces", namespace).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    succeed(&server, "GET", "/api/v1/namespaces/new/serviceaccounts/default", Value::Null).await;
    // Within the time that the webhook has for its first answer.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for number in 0..10 {
        assert!(!exists(&server, &format!("free-{number}")).await);
    }
    for number in 0..stuck {
        assert!(exists(&server, &format!("stuck-{number}")).await);
    }
    assert_eq!(hooks.asked.load(Ordering::SeqCst), stuck, "each once");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_dead_webhook_holds_up_only_what_it_is_asked_about() {
    check_dead_webhook(10).await;
    check_dead_webhook(100).await;
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_cannot_be_emptied_hold_up_no_others() {
    let hooks = Meddler { dead: true, ..Meddler::default() };
    let server = with_deletions_reviewed(&hooks).await;
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    for number in 0..100 {
        let name = format!("stuck-{number}");
        succeed(&server, "POST", "/api/v1/namespaces", namespace(&name)).await;
        let mut reviewed = map("reviewed", "1");
        reviewed["metadata"]["labels"] = json!({"reviewed": "yes"});
        succeed(&server, "POST", &format!("/api/v1/namespaces/{name}/configmaps"), reviewed).await;
    }
    succeed(&server, "POST", "/api/v1/namespaces", namespace("free")).await;
    rest().await;
    let begin = Instant::now();
    for number in 0..100 {
        succeed(&server, "DELETE", &format!("/api/v1/namespaces/stuck-{number}"), Value::Null).await;
    }
    succeed(&server, "DELETE", "/api/v1/namespaces/free", Value::Null).await;
    succeed(&server, "POST", "/api/v1/namespaces", namespace("new")).await;
    rest().await;
    assert_eq!(send(&server, "GET", "/api/v1/namespaces/free", Value::Null).await.0, 404);
    succeed(&server, "GET", "/api/v1/namespaces/new/serviceaccounts/default", Value::Null).await;
    succeed(&server, "GET", "/api/v1/namespaces/stuck-0", Value::Null).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_while_the_store_changes_all_the_time() {
    let server = ApiServer::builder().build().unwrap();
    let made = succeed(&server, "POST", MAPS, map("owner", "1")).await;
    succeed(&server, "POST", MAPS, owned("child", &made)).await;
    succeed(&server, "POST", MAPS, map("busy", "1")).await;
    succeed(&server, "DELETE", &path("owner"), Value::Null).await;
    for number in 0..200 {
        if !exists(&server, "child").await {
            return;
        }
        succeed(&server, "PATCH", &path("busy"), json!({"data": {"key": number.to_string()}})).await;
        // Whoever was woken by that has its turn, once.
        tokio::task::yield_now().await;
    }
    panic!("the child is still there after 200 writes");
}

/// Panics once, in whatever task removes `child`.
#[derive(Clone, Default)]
struct Trap(Arc<AtomicBool>);

impl Observer for Trap {
    fn committed(&self, change: &Change<'_>) {
        if change.name == "child" && change.after.is_none() {
            assert!(self.0.swap(true, Ordering::SeqCst), "on purpose");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_panics_goes_on_and_is_reported() {
    let trap = Trap::default();
    let server = ApiServer::builder().observer(trap.clone()).build().unwrap();
    for (name, child) in [("owner", "child"), ("other", "other-child")] {
        let made = succeed(&server, "POST", MAPS, map(name, "1")).await;
        succeed(&server, "POST", MAPS, owned(child, &made)).await;
    }
    let (code, healthy) = send(&server, "GET", "/readyz?verbose", Value::Null).await;
    assert!(code == 200 && healthy.as_str().unwrap().contains("[+]controllers ok\n"), "{healthy}");
    succeed(&server, "DELETE", &path("owner"), Value::Null).await;
    rest().await;
    assert!(trap.0.load(Ordering::SeqCst), "it panicked");
    succeed(&server, "DELETE", &path("other"), Value::Null).await;
    rest().await;
    assert!(!exists(&server, "child").await && !exists(&server, "other-child").await);
    let (code, reported) = send(&server, "GET", "/readyz?verbose", Value::Null).await;
    let reported = reported.as_str().unwrap();
    assert!(
        code == 200 && reported.contains("garbage collection") && reported.contains("on purpose"),
        "{reported}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_loses_its_pods_before_what_they_use() {
    let server = ApiServer::builder().build().unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    succeed(&server, "POST", "/api/v1/namespaces", namespace).await;
    rest().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    succeed(&server, "POST", "/api/v1/namespaces/shop/pods", pod).await;
    succeed(&server, "POST", "/api/v1/namespaces/shop/configmaps", map("settings", "1")).await;
    succeed(&server, "DELETE", "/api/v1/namespaces/shop", Value::Null).await;
    rest().await;
    let pod = succeed(&server, "GET", "/api/v1/namespaces/shop/pods/p", Value::Null).await;
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let settings = succeed(&server, "GET", "/api/v1/namespaces/shop/configmaps/settings", Value::Null).await;
    assert!(settings["metadata"]["deletionTimestamp"].is_null());
    let release = json!({"metadata": {"finalizers": null}});
    succeed(&server, "PATCH", "/api/v1/namespaces/shop/pods/p", release).await;
    send(&server, "DELETE", "/api/v1/namespaces/shop/pods/p", json!({"gracePeriodSeconds": 0})).await;
    rest().await;
    assert_eq!(send(&server, "GET", "/api/v1/namespaces/shop", Value::Null).await.0, 404);
}

const EVENTS: &str = "/api/v1/namespaces/default/events";

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "Tested", "count": 1,
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"},
    })
}

#[tokio::test(start_paused = true)]
async fn events_go_an_hour_after_they_were_last_written() {
    let clock = TokioClock::starting_at(START.parse().unwrap());
    let server = ApiServer::builder().clock(clock).identities(SeededIdentities::new(7)).build().unwrap();
    succeed(&server, "POST", EVENTS, event("once")).await;
    succeed(&server, "POST", EVENTS, event("again")).await;
    let mut watch = Events::of(&server, &format!("{EVENTS}?watch=true&timeoutSeconds=20000")).await;
    for expected in ["ADDED again=", "ADDED once="] {
        assert_eq!(watch.line().await, expected);
    }
    let begin = Instant::now();
    tokio::time::sleep(Duration::from_mins(40)).await;
    succeed(&server, "PATCH", &format!("{EVENTS}/again"), json!({"count": 2})).await;
    assert_eq!(watch.line().await, "MODIFIED again=");
    assert_eq!(watch.line().await, "DELETED once=");
    assert_eq!(begin.elapsed().as_secs() / 60, 60);
    assert_eq!(watch.line().await, "DELETED again=");
    assert_eq!(begin.elapsed().as_secs() / 60, 100);
}

/// A clock that stands still.
struct Stopped(&'static str);

impl Clock for Stopped {
    fn now(&self) -> jiff::Timestamp {
        self.0.parse().unwrap()
    }
}

#[tokio::test]
async fn the_age_of_events_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let at = |time| ApiServer::builder().directory(directory.path()).clock(Stopped(time)).build().unwrap();
    succeed(&at(START), "POST", EVENTS, event("old")).await;
    let server = at("2001-01-01T00:50:00Z");
    succeed(&server, "POST", EVENTS, event("young")).await;
    assert_eq!(send(&server, "GET", &format!("{EVENTS}/old"), Value::Null).await.0, 200);
    drop(server);
    let server = at("2001-01-01T01:10:00Z");
    let begin = std::time::Instant::now();
    while send(&server, "GET", &format!("{EVENTS}/old"), Value::Null).await.0 == 200 {
        assert!(begin.elapsed() < Duration::from_secs(10), "it stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(send(&server, "GET", &format!("{EVENTS}/young"), Value::Null).await.0, 200);
    drop(server);
    let kept = ApiServer::builder().directory(directory.path()).clock(Stopped("2031-01-01T00:00:00Z"));
    let server = kept.event_ttl(Duration::ZERO).build().unwrap();
    assert_eq!(send(&server, "GET", &format!("{EVENTS}/young"), Value::Null).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn events_that_outlast_the_clock_stop_no_controller() {
    let before_the_end = Duration::from_secs(u64::MAX >> 2);
    for ttl in [Duration::MAX, Duration::from_secs(u64::MAX), before_the_end, Duration::from_nanos(1)] {
        let server = ApiServer::builder().event_ttl(ttl).build().unwrap();
        succeed(&server, "POST", EVENTS, event("kept")).await;
        let made = succeed(&server, "POST", MAPS, map("owner", "1")).await;
        succeed(&server, "POST", MAPS, owned("child", &made)).await;
        succeed(&server, "DELETE", &path("owner"), Value::Null).await;
        rest().await;
        assert!(!exists(&server, "child").await, "the controllers work with {ttl:?}");
        let (_, reported) = send(&server, "GET", "/readyz?verbose", Value::Null).await;
        assert!(reported.as_str().unwrap().contains("[+]controllers ok\n"), "{ttl:?}: {reported}");
    }
}
