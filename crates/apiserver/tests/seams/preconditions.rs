//! What a write depends on holds at the moment of the write, not only when it was looked at: a webhook holds writes in between.

use crate::seams::{MAPS, map, send, succeed};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mainstay_apiserver::{ApiServer, WebhookTransport};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Holds every review until it is let through.
#[derive(Clone)]
struct Gate {
    arrived: Arc<Semaphore>,
    let_through: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Gate { arrived: Arc::new(Semaphore::new(0)), let_through: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until so many reviews wait.
    async fn wait_for(&self, reviews: u32) {
        let arrived = tokio::time::timeout(Duration::from_mins(1), self.arrived.acquire_many(reviews));
        arrived.await.expect("in time").unwrap().forget();
    }

    /// Lets all reviews through, those to come too.
    fn open(&self) {
        self.let_through.add_permits(1_000_000);
    }
}

impl WebhookTransport for Gate {
    fn post<'a>(&'a self, _: &'a str, review: Bytes) -> BoxFuture<'a, Result<Bytes, String>> {
        async move {
            let review: Value = serde_json::from_slice(&review).unwrap();
            self.arrived.add_permits(1);
            self.let_through.acquire().await.unwrap().forget();
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            Ok(answer.to_string().into())
        }
        .boxed()
    }
}

async fn gated(
    resource: &str,
    operations: &[&str],
    directory: Option<&std::path::Path>,
) -> (ApiServer, Gate) {
    let gate = Gate::new();
    let mut builder = ApiServer::builder().webhook_transport(gate.clone());
    if let Some(directory) = directory {
        builder = builder.directory(directory);
    }
    let server = builder.build().unwrap();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "gate.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://hooks.example.com/"}, "timeoutSeconds": 30,
            "rules": [{"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]}],
            "matchConditions": [{"name": "users", "expression": "!request.userInfo.username.startsWith('system:serviceaccount')"}],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    succeed(&server, "POST", path, configuration).await;
    (server, gate)
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
}

#[tokio::test]
async fn two_updates_do_not_get_one_node_port() {
    let directory = tempfile::tempdir().unwrap();
    for directory in [None, Some(directory.path())] {
        let (server, gate) = gated("services", &["UPDATE"], directory).await;
        for name in ["a", "b"] {
            succeed(&server, "POST", SERVICES, service(name)).await;
        }
        let expose = json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30100}]}});
        let update = |name: &str| {
            let (server, path, body) = (server.clone(), format!("{SERVICES}/{name}"), expose.clone());
            tokio::spawn(async move { send(&server, "PATCH", &path, body).await })
        };
        let updates = [update("a"), update("b")];
        gate.wait_for(2).await;
        gate.open();
        let mut codes = Vec::new();
        for update in updates {
            let (code, answer) = update.await.unwrap();
            if code != 200 {
                assert!(
                    answer["message"].as_str().unwrap().contains("provided port is already allocated"),
                    "{answer}"
                );
            }
            codes.push(code);
        }
        codes.sort_unstable();
        assert_eq!(codes, [200, 422]);
        // The one that is free again can be had.
        let list = succeed(&server, "GET", SERVICES, Value::Null).await;
        let holder = list["items"].as_array().unwrap().iter().find(|item| item["spec"]["type"] == "NodePort");
        let holder = holder.unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
        let other = if holder == "a" { "b" } else { "a" };
        succeed(&server, "DELETE", &format!("{SERVICES}/{holder}"), Value::Null).await;
        succeed(&server, "PATCH", &format!("{SERVICES}/{other}"), expose.clone()).await;
    }
}

#[tokio::test]
async fn two_creations_do_not_get_one_cluster_ip() {
    let (server, gate) = gated("services", &["CREATE"], None).await;
    let create = |name: &str| {
        let mut body = service(name);
        body["spec"]["clusterIP"] = json!("10.96.7.7");
        let server = server.clone();
        tokio::spawn(async move { send(&server, "POST", SERVICES, body).await })
    };
    let creations = [create("a"), create("b")];
    gate.wait_for(2).await;
    gate.open();
    let mut codes = Vec::new();
    for creation in creations {
        codes.push(creation.await.unwrap().0);
    }
    codes.sort_unstable();
    assert_eq!(codes, [201, 422]);
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_began_to_end_meanwhile() {
    let (server, gate) = gated("configmaps", &["CREATE"], None).await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "finalizers": ["example.com/hold"]},
    });
    succeed(&server, "POST", "/api/v1/namespaces", namespace).await;
    let late = server.clone();
    let creation = tokio::spawn(async move {
        send(&late, "POST", "/api/v1/namespaces/shop/configmaps", map("late", "1")).await
    });
    gate.wait_for(1).await;
    succeed(&server, "DELETE", "/api/v1/namespaces/shop", Value::Null).await;
    gate.open();
    let (code, answer) = creation.await.unwrap();
    assert_eq!(
        (code, &answer["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating")),
        "{answer}"
    );
    succeed(&server, "POST", MAPS, map("elsewhere", "1")).await;
}

#[tokio::test]
async fn nothing_is_created_of_a_kind_that_began_to_end_meanwhile() {
    let (server, gate) = gated("things", &["CREATE"], None).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
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
    succeed(&server, "POST", definitions, definition).await;
    let things = "/apis/example.com/v1/namespaces/default/things";
    while send(&server, "GET", things, Value::Null).await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let late = server.clone();
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "late"}});
    let creation = tokio::spawn(async move { send(&late, "POST", things, thing).await });
    gate.wait_for(1).await;
    succeed(&server, "DELETE", &format!("{definitions}/things.example.com"), Value::Null).await;
    gate.open();
    let (code, answer) = creation.await.unwrap();
    assert!(code == 403 || code == 404, "{code} {answer}");
}
