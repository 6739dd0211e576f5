//! Probes of real processes. What answers to HTTP and TCP is the test itself, on the pod's address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use k8s_openapi::api::core::v1::Pod;
use mainstay_local::node::runtime::{Observed, Runtime as _};
use mainstay_testkit::eventually;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::processes::world::{World, id};

/// A pod that sleeps, with these probes. Every second one of them is tried.
async fn pod(world: &World, probes: Value) -> Pod {
    let mut container =
        json!({"args": ["echo up; sleep 1000"], "ports": [{"name": "web", "containerPort": 8080}]});
    let fields = container.as_object_mut().unwrap();
    for (name, probe) in probes.as_object().unwrap() {
        let mut probe = probe.clone();
        probe["periodSeconds"] = 1.into();
        fields.insert(name.clone(), probe);
    }
    world.pod("web", container, json!({"terminationGracePeriodSeconds": 1})).await
}

/// Answers all requests on the pod's address with a code that can be changed.
async fn answer(world: &World, pod: &Pod, code: u16) -> Arc<AtomicU16> {
    let listener = TcpListener::bind((world.processes.address(&id(pod)), 8080)).await.unwrap();
    let code = Arc::new(AtomicU16::new(code));
    let current = code.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let count = stream.read(&mut request).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&request[..count]).into_owned();
            let known = asked.starts_with("GET /healthz?x=1 HTTP/1.1") && asked.contains("x-probe: yes");
            let code = if known { current.load(Ordering::SeqCst) } else { 404 };
            let _ =
                stream.write_all(format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
        }
    });
    code
}

fn http() -> Value {
    let headers = json!([{"name": "x-probe", "value": "yes"}]);
    json!({"httpGet": {"path": "/healthz?x=1", "port": "web", "httpHeaders": headers}})
}

#[tokio::test]
async fn readiness_follows_the_answers() {
    let world = World::new().await;
    let mut probe = http();
    probe["failureThreshold"] = 1.into();
    let pod = pod(&world, json!({"readinessProbe": probe})).await;
    let code = answer(&world, &pod, 503).await;
    let id = world.start(&pod, 0).await.unwrap();
    assert!(!world.is_ready(&id));
    code.store(204, Ordering::SeqCst);
    eventually("it is ready", async || world.is_ready(&id).then_some(())).await;
    assert!(world.was_told_of("web"));
    code.store(500, Ordering::SeqCst);
    eventually("it is not ready", async || (!world.is_ready(&id)).then_some(())).await;
    assert!(matches!(world.observe(&id), Observed::Running { started: true, .. }));
}

#[tokio::test]
async fn open_port_makes_a_container_ready() {
    let world = World::new().await;
    let pod = pod(&world, json!({"readinessProbe": {"tcpSocket": {"port": 8080}}})).await;
    let id = world.start(&pod, 0).await.unwrap();
    assert!(!world.is_ready(&id));
    let _listener = TcpListener::bind((world.processes.address(&id), 8080)).await.unwrap();
    eventually("it is ready", async || world.is_ready(&id).then_some(())).await;
}

#[tokio::test]
async fn failed_liveness_ends_the_container_and_says_why() {
    let world = World::new().await;
    let probe = json!({"exec": {"command": ["sh", "-c", "exit 1"]}, "failureThreshold": 1});
    let pod = pod(&world, json!({"livenessProbe": probe})).await;
    let id = world.start(&pod, 0).await.unwrap();
    let (code, message) = world.ended(&id).await;
    assert_eq!(message.as_deref(), Some("Container main failed liveness probe, will be restarted"));
    assert_eq!(code, 143);
}

#[tokio::test]
async fn nothing_else_is_probed_before_a_container_has_started() {
    let world = World::new().await;
    let started = "test -e $MAINSTAY_ROOT/started";
    let probes = json!({
        "startupProbe": {"exec": {"command": ["sh", "-c", started]}, "failureThreshold": 1000},
        "livenessProbe": {"exec": {"command": ["sh", "-c", started]}, "failureThreshold": 1},
        "readinessProbe": {"exec": {"command": ["true"]}},
    });
    let pod = pod(&world, probes).await;
    let id = world.start(&pod, 0).await.unwrap();
    world.line(&id, "up").await;
    assert!(matches!(world.observe(&id), Observed::Running { started: false, ready: false, .. }));
    std::fs::write(world.pod_directory(&id).join("roots/main/started"), "").unwrap();
    eventually("it is ready", async || world.is_ready(&id).then_some(())).await;
}

#[tokio::test]
async fn container_that_does_not_start_is_ended() {
    let world = World::new().await;
    let probe = json!({"tcpSocket": {"port": 1}, "failureThreshold": 1, "terminationGracePeriodSeconds": 1});
    let pod = pod(&world, json!({"startupProbe": probe})).await;
    let id = world.start(&pod, 0).await.unwrap();
    let (_, message) = world.ended(&id).await;
    assert_eq!(message.as_deref(), Some("Container main failed startup probe, will be restarted"));
}

#[tokio::test]
async fn probe_that_hangs_is_a_failure_and_ends() {
    let world = World::new().await;
    let command = "echo $$ > $MAINSTAY_ROOT/pid; sleep 1000";
    let probe =
        json!({"exec": {"command": ["sh", "-c", command]}, "timeoutSeconds": 1, "failureThreshold": 1});
    let pod = pod(&world, json!({"livenessProbe": probe})).await;
    let id = world.start(&pod, 0).await.unwrap();
    let (_, message) = world.ended(&id).await;
    assert!(message.is_some());
    let pid = std::fs::read_to_string(world.pod_directory(&id).join("roots/main/pid")).unwrap();
    eventually("the probe is gone", async || (!crate::processes::world::is_alive(pid.trim())).then_some(()))
        .await;
}
