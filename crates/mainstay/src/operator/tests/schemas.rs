//! Kinds that change while an operator runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::{run, server};
use crate::controller::Controller;
use crate::handler::{SyncRequest, SyncResponse};
use crate::kind::{Key, Kind, Scope};
use crate::operator::Operator;

fn shops() -> Kind {
    Kind::new("test.mainstay.dev/v1", "Shop", "shops", Scope::Namespaced)
}

/// The CRD of shops, with or without a status subresource.
fn definition(has_status: bool) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    });
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.test.mainstay.dev"},
        "spec": {"group": "test.mainstay.dev", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Shop", "plural": "shops", "singular": "shop", "listKind": "ShopList"}},
    })
}

/// Sends a request as a user.
async fn send(client: &Client, method: http::Method, path: &str, body: &Value) -> Value {
    let content =
        if method == http::Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHOPS: &str = "/apis/test.mainstay.dev/v1/namespaces/default/shops";

async fn define(client: &Client, has_status: bool) {
    send(client, http::Method::POST, DEFINITIONS, &definition(has_status)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let shop = json!({"apiVersion": "test.mainstay.dev/v1", "kind": "Shop", "metadata": {"name": "paint"}, "spec": {}});
    send(client, http::Method::POST, SHOPS, &shop).await;
}

async fn redefine(client: &Client, has_status: bool) {
    let versions = definition(has_status)["spec"]["versions"].clone();
    let path = format!("{DEFINITIONS}/shops.test.mainstay.dev");
    send(client, http::Method::PATCH, &path, &json!({"spec": {"versions": versions}})).await;
}

async fn status_of_paint(client: &Client) -> Value {
    send(client, http::Method::GET, &format!("{SHOPS}/paint"), &json!({})).await["status"].clone()
}

/// An operator whose shops have their generation as a status.
fn operator(client: Client) -> Operator {
    let controller = Controller::for_kind(shops())
        .sync(|request: &SyncRequest| SyncResponse::from_status(json!({"size": request.generation()})));
    Operator::builder("shops", client).namespace("default").controller(controller).build().unwrap()
}

fn error_of_paint(operator: &Operator) -> Option<String> {
    operator.runner.report(&shops(), &Key::namespaced("default", "paint")).and_then(|report| report.error)
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_once_its_kind_has_a_place_for_it() {
    let client = Client::new(server(), "default");
    define(&client, false).await;
    let operator = operator(client.clone());
    let running = run(&operator);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(status_of_paint(&client).await, Value::Null);
    assert!(error_of_paint(&operator).unwrap().contains("no status subresource"));
    redefine(&client, true).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(status_of_paint(&client).await["size"], 1, "{:?}", error_of_paint(&operator));
    assert_eq!(error_of_paint(&operator), None);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_status_subresource_that_goes_away_is_noticed() {
    let client = Client::new(server(), "default");
    define(&client, true).await;
    let operator = operator(client.clone());
    let running = run(&operator);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(status_of_paint(&client).await["size"], 1);
    redefine(&client, false).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    send(&client, http::Method::PATCH, &format!("{SHOPS}/paint"), &json!({"spec": {"new": true}})).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let error = error_of_paint(&operator).unwrap_or_default();
    assert!(error.contains("the kind has no status subresource; return null"), "{error}");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn schemas_that_cannot_be_read_at_first_are_read_later() {
    let (inner, down) = (Client::new(server(), "default"), Arc::new(AtomicBool::new(true)));
    define(&inner, true).await;
    let (server, is_down) = (inner.clone(), Arc::clone(&down));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let refused = is_down.load(Ordering::SeqCst) && request.uri().path().starts_with("/openapi/");
        let server = server.clone();
        async move {
            if !refused {
                return server.send(request).await;
            }
            let body = Body::from(json!({"kind": "Status", "code": 503}).to_string().into_bytes());
            Ok(http::Response::builder().status(503).body(body).expect("a valid response"))
        }
    });
    let operator = operator(Client::new(service, "default"));
    let running = run(&operator);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(status_of_paint(&inner).await["size"], 1, "it works without them");
    let knows = || {
        let knowledge = operator.runner.active(&shops()).and_then(|active| active.knowledge());
        knowledge.is_some_and(|known| known.rules.contains_key(&shops()))
    };
    assert!(!knows());
    down.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(knows(), "nothing but time has passed");
    running.abort();
}
