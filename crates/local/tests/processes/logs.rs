//! `pods/log`, through the API server.

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use mainstay_local::node::process::LogEndpoint;
use serde_json::{Value, json};

use crate::processes::world::World;

async fn ask(world: &World, pod: &str, query: &str) -> (u16, String) {
    let uri = format!("/api/v1/namespaces/default/pods/{pod}/log?{query}");
    let request = http::Request::get(uri).body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
    let response = world.server.handle(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn refusal(world: &World, pod: &str, query: &str) -> (u16, String) {
    let (code, body) = ask(world, pod, query).await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status["kind"].as_str(), status["code"].as_u64()), (Some("Status"), Some(code.into())));
    (code, status["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn log_has_what_the_process_printed() {
    let world = World::new().await;
    let id = world.run("web", "echo one; echo two >&2; printf three").await;
    world.ended(&id).await;
    assert_eq!(ask(&world, "web", "stream=Stdout").await, (200, "one\nthree".into()));
    assert_eq!(ask(&world, "web", "stream=Stderr").await, (200, "two\n".into()));
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "default");
    let params = LogParams { limit_bytes: Some(2), ..LogParams::default() };
    assert_eq!(pods.logs("web", &params).await.unwrap().len(), 2);
}

#[tokio::test]
async fn log_is_followed_until_the_container_ends() {
    let world = World::new().await;
    let script = "echo first; until test -e $MAINSTAY_ROOT/go; do sleep 0.05; done; echo last";
    let id = world.run("web", script).await;
    let uri = "/api/v1/namespaces/default/pods/web/log?follow=true";
    let request = http::Request::get(uri).body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
    let response = world.server.handle(request).await;
    assert_eq!(response.headers()["content-type"], "text/plain");
    let mut pieces = response.into_body().into_data_stream();
    assert_eq!(pieces.next().await.unwrap().unwrap(), "first\n");
    std::fs::write(world.pod_directory(&id).join("roots/main/go"), "").unwrap();
    assert_eq!(pieces.next().await.unwrap().unwrap(), "last\n");
    assert!(pieces.next().await.is_none());
}

/// Sets the status of a pod's only container.
async fn status(world: &World, pod: &str, restarts: u32, state: Value, last: Value) {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/status");
    let status = json!({
        "name": "main", "image": "shell:1", "imageID": "", "ready": false, "restartCount": restarts,
        "state": state, "lastState": last,
    });
    world.patch(&path, json!({"status": {"containerStatuses": [status]}})).await;
}

#[tokio::test]
async fn previous_attempt_has_its_log() {
    let world = World::new().await;
    let pod =
        world.pod("web", json!({"args": ["ls $MAINSTAY_ROOT/../../logs/main; exit 1"]}), json!({})).await;
    for attempt in 0..2 {
        let id = world.start(&pod, attempt).await.unwrap();
        world.ended(&id).await;
    }
    let ended = json!({"terminated": {"exitCode": 1}});
    status(&world, "web", 1, ended.clone(), ended).await;
    assert_eq!(ask(&world, "web", "").await, (200, "0.log\n1.log\n".into()));
    assert_eq!(ask(&world, "web", "previous=true").await, (200, "0.log\n".into()));
}

#[tokio::test]
async fn without_a_log_the_answer_says_why() {
    let world = World::new().await;
    world.pod("web", json!({"args": ["true"]}), json!({})).await;
    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
    let unavailable = "container \"main\" in pod \"web\" is not available";
    assert_eq!(refusal(&world, "web", "").await, (400, unavailable.into()));
    status(&world, "web", 0, waiting, json!({})).await;
    let creating = "container \"main\" in pod \"web\" is waiting to start: ContainerCreating";
    assert_eq!(refusal(&world, "web", "").await, (400, creating.into()));
    let previous = "previous terminated container \"main\" in pod \"web\" not found";
    assert_eq!(refusal(&world, "web", "previous=true").await, (400, previous.into()));
    let other = "container other is not valid for pod web";
    assert_eq!(refusal(&world, "web", "container=other").await, (400, other.into()));
    let invalid =
        "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(refusal(&world, "web", "tailLines=-1").await, (422, invalid.into()));
    assert_eq!(refusal(&world, "absent", "").await, (404, "pods \"absent\" not found".into()));
}

#[tokio::test]
async fn pod_that_runs_nowhere_has_the_log_that_it_is_given() {
    let world = World::new().await;
    world.logs.simulate(|pod, container| {
        format!("{} of {}\nsecond line\n", container, pod.metadata.name.as_deref().unwrap_or_default())
    });
    world.pod("web", json!({"image": "nginx"}), json!({})).await;
    status(&world, "web", 0, json!({"running": {}}), json!({})).await;
    assert_eq!(ask(&world, "web", "").await, (200, "main of web\nsecond line\n".into()));
    assert_eq!(ask(&world, "web", "tailLines=1").await, (200, "second line\n".into()));
    world.pod("unbound", json!({"image": "nginx"}), json!({"nodeName": null})).await;
    assert_eq!(ask(&world, "unbound", "").await, (204, String::new()));
}

#[tokio::test]
async fn endpoint_without_a_node_says_so() {
    let world = World::new().await;
    let alone = mainstay_apiserver::ApiServer::builder();
    let server = alone.subresource("", "pods", "log", LogEndpoint::default()).build().unwrap();
    let world = World { client: kube::Client::new(server.clone(), "default"), server, ..world };
    world.pod("web", json!({"args": ["true"]}), json!({})).await;
    assert_eq!(refusal(&world, "web", "").await, (503, "logs cannot be read: the node does not run".into()));
}
