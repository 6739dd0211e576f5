//! Webhooks register themselves, write nothing when there is nothing to write, and mend what others break.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::Api;
use mainstay::webhook::{Hook, Pending, Serving, Webhooks};
use mainstay::{Kind, Scope};
use mainstay_testkit::{Cluster, eventually, for_each_cluster};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::operator_webhooks::{Running, clear, configurations, here, read, secret};

fn webhooks(cluster: &Cluster) -> Webhooks {
    Webhooks::new(cluster.namespace()).with(here(cluster, Hook::validate::<ConfigMap>(|_| Ok(()))))
}

fn serving(cluster: &Cluster) -> Serving {
    Serving::on_loopback().certificate_secret(secret(cluster)).look_every(Duration::from_millis(100))
}

async fn send(cluster: &Cluster, method: &str, path: &str, body: &Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/merge-patch+json")
        .body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
        .unwrap();
    let (status, answer) = cluster.send(request).await;
    assert!(status.is_success(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_registered_is_written_once_and_mended_when_it_changes() {
    for_each_cluster(async |cluster| {
        let mut running = Running::start(&cluster, webhooks(&cluster), serving(&cluster)).await;
        running.ready().await;
        let [validating, mutating] = configurations(&cluster);
        assert_eq!(cluster.get(&mutating).await.0, 404);
        let registered = read(&cluster, &validating).await;
        // It writes for certain when something is different, so by then it has looked and not written before.
        send(&cluster, "PATCH", &validating, &json!({"metadata": {"labels": {"theirs": "kept"}}})).await;
        let labelled = read(&cluster, &validating).await;
        assert_eq!(labelled["webhooks"], registered["webhooks"]);
        let mut broken = registered["webhooks"].clone();
        broken[0]["failurePolicy"] = json!("Ignore");
        send(&cluster, "PATCH", &validating, &json!({"webhooks": broken})).await;
        let mended = eventually("the change is undone", async || {
            let now = read(&cluster, &validating).await;
            (now["webhooks"] == registered["webhooks"]).then_some(now)
        })
        .await;
        assert_eq!(mended["metadata"]["labels"]["theirs"], "kept");
        // Created, labelled, broken, mended: what was written in between would have raised it.
        assert_eq!(mended["metadata"]["generation"], 3);
        send(&cluster, "DELETE", &validating, &Value::Null).await;
        eventually("it is registered again", async || {
            cluster.get(&validating).await.0.is_success().then_some(())
        })
        .await;
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_without_hooks_is_removed() {
    for_each_cluster(async |cluster| {
        let mut running = Running::start(&cluster, webhooks(&cluster), serving(&cluster)).await;
        running.ready().await;
        running.end().await;
        let [validating, mutating] = configurations(&cluster);
        assert!(cluster.get(&validating).await.0.is_success());
        let next =
            Webhooks::new(cluster.namespace()).with(here(&cluster, Hook::mutate::<ConfigMap>(|_, _| Ok(()))));
        let mut running = Running::start(&cluster, next, serving(&cluster)).await;
        running.ready().await;
        assert_eq!(cluster.get(&validating).await.0, 404);
        assert!(cluster.get(&mutating).await.0.is_success());
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_one_certificate_and_only_the_leader_registers() {
    for_each_cluster(async |cluster| {
        let [validating, _] = configurations(&cluster);
        let (lead, leads) = watch::channel(false);
        let standby = serving(&cluster).registering_while(leads);
        let mut waiting = Running::start(&cluster, webhooks(&cluster), standby).await;
        let state = waiting.state.wait_for(|state| state.serving).await.unwrap().clone();
        assert_eq!(cluster.get(&validating).await.0, 404);
        let mut leading = Running::start(&cluster, webhooks(&cluster), serving(&cluster)).await;
        leading.ready().await;
        assert_eq!(leading.state.borrow().expires_at, state.expires_at);
        assert!(cluster.get(&validating).await.0.is_success());
        leading.end().await;
        clear(&cluster).await;
        lead.send(true).unwrap();
        eventually("the new leader registers", async || {
            cluster.get(&validating).await.0.is_success().then_some(())
        })
        .await;
        let secrets: Api<Secret> = Api::namespaced(cluster.client(), cluster.namespace());
        let kept = secrets.get(secret(&cluster).name()).await.unwrap();
        let list: Value = serde_json::from_slice(&kept.data.unwrap()["certificates.json"].0).unwrap();
        assert_eq!(list.as_array().unwrap().len(), 1);
        waiting.end().await;
        clear(&cluster).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_missing_is_named() {
    for_each_cluster(async |cluster| {
        let kind = Kind::new("none.example.com/v1", "None", "nones", Scope::Namespaced);
        let webhooks = webhooks(&cluster).convert(kind, |object, _| Ok(object));
        let mut running = Running::start(&cluster, webhooks, serving(&cluster)).await;
        let state = running.state.wait_for(|state| state.serving).await.unwrap().clone();
        let problem = "CustomResourceDefinition nones.none.example.com is not there yet".to_owned();
        assert_eq!(state.pending, [Pending::Registration { problem }]);
        // The rest is registered all the same.
        assert!(cluster.get(&configurations(&cluster)[0]).await.0.is_success());
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}
