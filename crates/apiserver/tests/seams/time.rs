//! Time and identity that a test decides: nothing happens by the machine's clock, and nothing by chance.

use crate::seams::{Events, MAPS, bytes, map, request, succeed, watch_path};
use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use mainstay_apiserver::{ApiServer, SeededIdentities, TokioClock};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

fn virtual_server() -> ApiServer {
    let clock = TokioClock::starting_at("2001-01-01T00:00:00Z".parse().unwrap());
    ApiServer::builder().clock(clock).identities(SeededIdentities::new(7)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_stamped_by_the_paused_clock() {
    let server = virtual_server();
    let first = succeed(&server, "POST", MAPS, map("a", "1")).await;
    assert_eq!(first["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert_eq!(first["metadata"]["managedFields"][0]["time"], "2001-01-01T00:00:00Z");
    tokio::time::advance(Duration::from_hours(25)).await;
    let second = succeed(&server, "POST", MAPS, map("b", "1")).await;
    assert_eq!(second["metadata"]["creationTimestamp"], "2001-01-02T01:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn watch_ends_after_its_seconds_and_is_told_of_progress_every_minute() {
    let server = virtual_server();
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    let (begin, real) = (Instant::now(), std::time::Instant::now());
    let path = watch_path("&timeoutSeconds=150&allowWatchBookmarks=true");
    let mut events = Events::of(&server, &path).await;
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push((begin.elapsed().as_secs(), crate::seams::describe(&event)));
    }
    // The runtime moves the paused clock whenever nothing else is left to do.
    let expected = [(0, "ADDED a=1"), (60, "BOOKMARK"), (120, "BOOKMARK"), (150, "BOOKMARK")];
    assert_eq!(seen, expected.map(|(second, event)| (second, event.to_owned())));
    assert_eq!(begin.elapsed().as_secs(), 150);
    assert!(real.elapsed() < Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn watch_without_bookmarks_is_silent_until_it_ends() {
    let server = virtual_server();
    let begin = Instant::now();
    let mut events = Events::of(&server, &watch_path("&timeoutSeconds=600")).await;
    assert_eq!(events.line().await, "(end)");
    assert_eq!(begin.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn bookmark_tells_the_newest_revision_though_nothing_was_sent() {
    let server = virtual_server();
    let mut events =
        Events::of(&server, "/api/v1/namespaces/default/secrets?watch=true&allowWatchBookmarks=true").await;
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], server.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn pod_is_granted_its_period_by_the_paused_clock() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let server = virtual_server();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 40, "containers": [{"name": "c", "image": "i"}]},
    });
    succeed(&server, "POST", PODS, pod).await;
    tokio::time::advance(Duration::from_mins(1)).await;
    let marked = succeed(&server, "DELETE", &format!("{PODS}/a"), Value::Null).await;
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2001-01-01T00:01:40Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 40);
    tokio::time::advance(Duration::from_secs(10)).await;
    let shortened = succeed(&server, "DELETE", &format!("{PODS}/a"), json!({"gracePeriodSeconds": 20})).await;
    assert_eq!(shortened["metadata"]["deletionTimestamp"], "2001-01-01T00:01:20Z");
    // To end the pod is the node's business, however much time goes by.
    tokio::time::advance(Duration::from_hours(1)).await;
    succeed(&server, "GET", &format!("{PODS}/a"), Value::Null).await;
    succeed(&server, "DELETE", &format!("{PODS}/a"), json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(crate::seams::send(&server, "GET", &format!("{PODS}/a"), Value::Null).await.0, 404);
}

/// Requests that between them reach most of what chooses something.
fn requests() -> Vec<(&'static str, String, Value)> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generateName": "t-"}});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    });
    let mut generated = map("", "1");
    generated["metadata"] = json!({"generateName": "g-"});
    let mut requests = vec![
        ("POST", "/api/v1/namespaces".into(), namespace("one")),
        ("POST", "/api/v1/namespaces".into(), namespace("two")),
        ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(), definition),
        ("POST", "/api/v1/namespaces/one/services".into(), service),
        ("GET", "/apis".into(), Value::Null),
        ("GET", "/openapi/v3".into(), Value::Null),
        ("GET", "/apis/example.com/v1".into(), Value::Null),
    ];
    for _ in 0..5 {
        requests.push(("POST", "/api/v1/namespaces/one/configmaps".into(), generated.clone()));
        requests.push(("POST", "/apis/example.com/v1/namespaces/two/things".into(), thing.clone()));
    }
    requests.extend([
        ("GET", "/api/v1/configmaps?limit=3".into(), Value::Null),
        ("DELETE", "/api/v1/namespaces/one".into(), Value::Null),
        (
            "DELETE",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com".into(),
            Value::Null,
        ),
    ]);
    requests
}

/// Everything a server says: the answers, and what watches of it show.
async fn record() -> Vec<Bytes> {
    let server = virtual_server();
    let mut said = Vec::new();
    let mut watches = Vec::new();
    for resource in ["configmaps", "namespaces", "serviceaccounts", "services"] {
        let path = format!("/api/v1/{resource}?watch=true&timeoutSeconds=300&allowWatchBookmarks=true");
        let response = server.handle(request("GET", &path, &Value::Null)).await;
        watches.push(response.into_body().into_data_stream());
    }
    for (method, path, body) in requests() {
        let response = server.handle(request(method, &path, &body)).await;
        let (head, body) = response.into_parts();
        said.push(format!("{method} {path} {} {:?}", head.status, head.headers).into());
        said.push(bytes(http::Response::new(body)).await.1);
        // Lets the controllers do what follows from it.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for mut watch in watches {
        while let Some(piece) = watch.next().await {
            said.push(piece.unwrap());
        }
    }
    said
}

#[tokio::test(start_paused = true)]
async fn same_seed_clock_and_requests_give_the_same_bytes() {
    let (first, second) = (record().await, record().await);
    assert!(first.len() > 60, "{}", first.len());
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first, second);
    }
    assert_eq!(first.len(), second.len());
}

#[tokio::test(start_paused = true)]
async fn another_seed_gives_other_uids() {
    let uid = async |seed| {
        let server = ApiServer::builder().identities(SeededIdentities::new(seed)).build().unwrap();
        succeed(&server, "POST", MAPS, map("a", "1")).await["metadata"]["uid"].clone()
    };
    assert_ne!(uid(1).await, uid(2).await);
    assert_eq!(uid(1).await, uid(1).await);
}

/// A pod that is bound to a node, with the longest grace that can be written down.
async fn patient_pod(server: &ApiServer, namespace: &str) -> String {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": i64::MAX, "containers": [{"name": "c", "image": "i"}]},
    });
    succeed(server, "POST", &pods, pod).await;
    format!("{pods}/p")
}

#[tokio::test(start_paused = true)]
async fn grace_that_lasts_beyond_the_end_of_time_ends_with_it() {
    let server = virtual_server();
    let path = patient_pod(&server, "default").await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": i64::MAX});
    let deleted = succeed(&server, "DELETE", &path, options).await;
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], i64::MAX);
    assert!(
        deleted["metadata"]["deletionTimestamp"].as_str().unwrap().starts_with("9999-12-30"),
        "{deleted}"
    );
    // It can be shortened like any other.
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
    succeed(&server, "DELETE", &path, options).await;
    assert_eq!(crate::seams::send(&server, "GET", &path, Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn namespace_with_a_patient_pod_terminates_and_controllers_go_on() {
    let server = virtual_server();
    succeed(&server, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    // Its service account, which pods need, comes a moment later.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let path = patient_pod(&server, "other").await;
    succeed(&server, "DELETE", "/api/v1/namespaces/other", Value::Null).await;
    let mut marked = Value::Null;
    for _ in 0..100 {
        marked = succeed(&server, "GET", &path, Value::Null).await;
        if !marked["metadata"]["deletionTimestamp"].is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], i64::MAX, "{marked}");
    // Those who delete what is left go on: they see that the pod is gone.
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
    succeed(&server, "DELETE", &path, options).await;
    for _ in 0..100 {
        if crate::seams::send(&server, "GET", "/api/v1/namespaces/other", Value::Null).await.0 == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the namespace is still there");
}

/// Tries until it holds. For tests with a disk, where time is real.
async fn until<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = std::time::Instant::now();
    loop {
        if let Some(done) = attempt().await {
            return done;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn directory_with_a_patient_pod_in_a_terminating_namespace_is_served_again() {
    let directory = tempfile::tempdir().unwrap();
    // The one before may still be closing it.
    let start = async || {
        until("it starts", async || ApiServer::builder().directory(directory.path()).build().ok()).await
    };
    let found = async |server: &ApiServer, path: &str| {
        crate::seams::send(server, "GET", path, Value::Null).await.0 == 200
    };
    let server = start().await;
    succeed(&server, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    let account = "/api/v1/namespaces/other/serviceaccounts/default";
    until("pods can be made", async || found(&server, account).await.then_some(())).await;
    let path = patient_pod(&server, "other").await;
    succeed(&server, "DELETE", "/api/v1/namespaces/other", Value::Null).await;
    drop(server);
    for _ in 0..2 {
        let server = start().await;
        until("the pod is marked", async || {
            let pod = succeed(&server, "GET", &path, Value::Null).await;
            (pod["metadata"]["deletionGracePeriodSeconds"] == i64::MAX).then_some(())
        })
        .await;
        let (_, health) = crate::seams::send(&server, "GET", "/readyz?verbose", Value::Null).await;
        assert!(health.as_str().unwrap().contains("[+]controllers ok\n"), "{health}");
    }
    let server = start().await;
    succeed(&server, "DELETE", &path, json!({"gracePeriodSeconds": 0})).await;
    until("the namespace ends", async || (!found(&server, "/api/v1/namespaces/other").await).then_some(()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_to_last_for_ever_lasts() {
    let server = virtual_server();
    for seconds in [i64::MAX.to_string(), (i64::MAX - 1).to_string(), "4611686018427387904".to_owned()] {
        let mut events = Events::of(&server, &watch_path(&format!("&timeoutSeconds={seconds}"))).await;
        let name = format!("m{seconds}");
        succeed(&server, "POST", MAPS, map(&name, "1")).await;
        while events.line().await != format!("ADDED {name}=1") {}
    }
}
