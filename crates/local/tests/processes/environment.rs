//! What processes are given.

use std::collections::BTreeMap;

use mainstay_local::node::process::INHERITED;
use mainstay_local::node::runtime::Runtime as _;
use mainstay_testkit::eventually;
use serde_json::{Value, json};

use crate::processes::world::World;

/// The variables that a container of this kind sees.
async fn variables(world: &World, name: &str, mut container: Value, spec: Value) -> BTreeMap<String, String> {
    container["args"] = json!(["env"]);
    let pod = world.pod(name, container, spec).await;
    let id = world.start(&pod, 0).await.unwrap();
    world.ended(&id).await;
    let log = world.log(&id, 0);
    log.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

#[tokio::test]
async fn variables_come_from_everywhere_but_not_from_the_nodes_own() {
    let world = World::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    world.create(maps, json!({"metadata": {"name": "settings"}, "data": {"COLOUR": "blue"}})).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    world.create(secrets, json!({"metadata": {"name": "keys"}, "stringData": {"password": "hunter2"}})).await;
    let container = json!({
        "envFrom": [{"prefix": "S_", "configMapRef": {"name": "settings"}}],
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
            {"name": "WHERE", "value": "$(NAME)@$(IP)"},
        ],
    });
    let seen = variables(&world, "web", container, json!({"enableServiceLinks": false})).await;
    let value = |name: &str| seen.get(name).map(String::as_str);
    assert_eq!(
        (value("S_COLOUR"), value("PASSWORD"), value("NAME")),
        (Some("blue"), Some("hunter2"), Some("web"))
    );
    let address = &world.processes.address(&world.processes.pods()[0]);
    assert_eq!(value("POD_IP"), Some(address.as_str()));
    assert_eq!(value("WHERE"), Some(format!("web@{address}").as_str()));
    assert_eq!((value("HOSTNAME"), value("KUBERNETES_SERVICE_PORT")), (Some("web"), Some("6443")));
    // What the process is given besides, and what a shell sets for itself.
    let other = ["HOME", "TMPDIR", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_"];
    let own = std::env::vars().map(|(name, _)| name).filter(|name| !name.starts_with("KUBERNETES_"));
    let mut own = own.filter(|name| !INHERITED.contains(&name.as_str()) && !other.contains(&name.as_str()));
    assert_eq!(own.find(|name| seen.contains_key(name)), None);
    assert_eq!(value("KUBECONFIG"), None);
}

#[tokio::test]
async fn only_own_images_are_told_how_to_reach_the_cluster() {
    let world = World::new().await;
    let own = || json!({"image": "mainstay:1"});
    let told = variables(&world, "a", own(), json!({})).await;
    assert_eq!(told.get("KUBECONFIG").map(String::as_str), Some("/the/kubeconfig"));
    let untold = variables(&world, "b", own(), json!({"automountServiceAccountToken": false})).await;
    assert_eq!(untold.get("KUBECONFIG"), None);
}

/// A service with one endpoint.
async fn service(world: &World, name: &str, ip: Option<&str>, address: &str, hostname: Option<&str>) {
    let mut spec = json!({"ports": [{"port": 80, "targetPort": 8080}]});
    if let Some(ip) = ip {
        spec["clusterIP"] = ip.into();
    }
    let services = "/api/v1/namespaces/default/services";
    world.create(services, json!({"metadata": {"name": name}, "spec": spec})).await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let mut endpoint = json!({"addresses": [address], "conditions": {"ready": true}});
    if let Some(hostname) = hostname {
        endpoint["hostname"] = hostname.into();
    }
    world
        .create(
            slices,
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4", "endpoints": [endpoint], "ports": [{"port": 8080}],
            }),
        )
        .await;
}

#[tokio::test]
async fn service_with_a_process_behind_it_is_that_process() {
    let world = World::new().await;
    service(&world, "my-db", None, "127.9.8.7", None).await;
    let seen = variables(&world, "web", json!({}), json!({})).await;
    let value = |name: &str| seen.get(name).map(String::as_str);
    assert_eq!((value("MY_DB_SERVICE_HOST"), value("MY_DB_SERVICE_PORT")), (Some("127.9.8.7"), Some("8080")));
    let without = variables(&world, "alone", json!({}), json!({"enableServiceLinks": false})).await;
    assert_eq!(without.get("MY_DB_SERVICE_HOST"), None);
}

#[tokio::test]
async fn hosts_file_follows_the_endpoints() {
    let world = World::new().await;
    let script = "until grep -q peer-0.peers.default.svc.cluster.local $MAINSTAY_HOSTS; do sleep 0.05; done; \
                  grep peer-0 $MAINSTAY_HOSTS";
    let pod = world.pod("web", json!({"args": [script]}), json!({})).await;
    let id = world.start(&pod, 0).await.unwrap();
    service(&world, "peers", Some("None"), "127.9.8.7", Some("peer-0")).await;
    assert_eq!(world.ended(&id).await.0, 0);
    let expected =
        "peer-0.peers.default.svc.cluster.local peer-0.peers.default.svc peer-0.peers.default peer-0.peers";
    assert_eq!(world.log(&id, 0), format!("127.9.8.7 {expected}\n"));
    // What is over is let alone; nothing waits for it.
    eventually("it is over", async || world.was_told_of("web").then_some(())).await;
}
