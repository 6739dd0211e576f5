//! Documents are made once for all servers of a process that have the same kinds, and each server shows its own.

use crate::seams::{request, succeed};
use http_body_util::BodyExt as _;
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;

/// The bytes and the tag of a document.
async fn document(server: &ApiServer, path: &str) -> (String, String) {
    let response = server.handle(request("GET", path, &Value::Null)).await;
    assert_eq!(response.status(), 200, "{path}");
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    (String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap(), tag)
}

/// Defines a kind with one property, and waits until it is served.
async fn define(server: &ApiServer, group: &str, plural: &str, kind: &str) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, an experiment"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"colour": {"type": "string"}}}},
            }}}],
        },
    });
    succeed(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    // The clock is paused: this lets the server's controllers come to rest, and waits for nobody.
    tokio::time::sleep(Duration::from_secs(5)).await;
    succeed(server, "GET", &format!("/apis/{group}/v1/{plural}"), Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn two_servers_give_the_same_document_of_built_in_kinds() {
    let servers = [ApiServer::builder().build().unwrap(), ApiServer::builder().build().unwrap()];
    for path in ["/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"] {
        let (first, second) = (document(&servers[0], path).await, document(&servers[1], path).await);
        assert_eq!(first, second, "{path}");
    }
    let core = document(&servers[0], "/openapi/v3/api/v1").await;
    let apps = document(&servers[0], "/openapi/v3/apis/apps/v1").await;
    assert!(core.0.contains("io.k8s.api.core.v1.Pod\"") && core.1 != apps.1);
    assert!(!core.0.contains("io.k8s.api.apps.v1.Deployment\""));
}

#[tokio::test(start_paused = true)]
async fn known_document_is_not_sent_again_by_another_server() {
    let (one, other) = (ApiServer::builder().build().unwrap(), ApiServer::builder().build().unwrap());
    let (_, tag) = document(&one, "/openapi/v3/api/v1").await;
    let mut conditional = request("GET", "/openapi/v3/api/v1", &Value::Null);
    conditional.headers_mut().insert("if-none-match", tag.parse().unwrap());
    assert_eq!(other.handle(conditional).await.status(), 304);
}

#[tokio::test(start_paused = true)]
async fn custom_kind_in_a_group_of_its_own_is_shown_at_once_and_only_by_its_server() {
    let (server, other) = (ApiServer::builder().build().unwrap(), ApiServer::builder().build().unwrap());
    define(&server, "example.com", "paints", "Paint").await;
    let path = "/openapi/v3/apis/example.com/v1";
    let (first, tag) = document(&server, path).await;
    assert!(first.contains("com.example.v1.Paint\"") && first.contains("colour"));
    assert_eq!(other.handle(request("GET", path, &Value::Null)).await.status(), 404);
    define(&server, "example.com", "brushes", "Brush").await;
    let (second, other_tag) = document(&server, path).await;
    assert!(second.contains("com.example.v1.Paint\"") && second.contains("com.example.v1.Brush\""));
    assert_ne!(tag, other_tag);
}

#[tokio::test(start_paused = true)]
async fn servers_whose_kinds_of_one_name_differ_each_show_their_own() {
    let (server, other) = (ApiServer::builder().build().unwrap(), ApiServer::builder().build().unwrap());
    define(&server, "example.com", "lamps", "Lamp").await;
    define(&other, "example.com", "lamps", "Lamp").await;
    let path = "/openapi/v3/apis/example.com/v1";
    let usual = document(&other, path).await;
    assert_eq!(document(&server, path).await, usual);
    let index = async |server| {
        let index = succeed(server, "GET", "/openapi/v3", Value::Null).await;
        index["paths"]["apis/example.com/v1"].to_string()
    };
    assert_eq!(index(&server).await, index(&other).await);

    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lamps.example.com";
    let mut changed = succeed(&server, "GET", definition, Value::Null).await;
    changed["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.colour"}]);
    succeed(&server, "PUT", definition, changed).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(document(&server, path).await.0.contains("x-kubernetes-selectable-fields"));
    assert_ne!(index(&server).await, index(&other).await);
    assert_eq!(document(&other, path).await, usual);
}

#[tokio::test(start_paused = true)]
async fn custom_kind_in_a_built_in_group_is_in_the_document_of_that_group_of_its_server_only() {
    let (server, other) = (ApiServer::builder().build().unwrap(), ApiServer::builder().build().unwrap());
    let path = "/openapi/v3/apis/networking.k8s.io/v1";
    let usual = document(&other, path).await;
    assert_eq!(document(&server, path).await, usual);
    define(&server, "networking.k8s.io", "tunnels", "Tunnel").await;
    let (text, tag) = document(&server, path).await;
    assert!(text.contains("io.k8s.networking.v1.Tunnel\""));
    assert!(text.contains("io.k8s.api.networking.v1.Ingress\""), "beside what was there");
    assert_ne!(tag, usual.1);
    assert_eq!(document(&other, path).await, usual, "what another server has defined is not its own");
    let fresh = ApiServer::builder().build().unwrap();
    assert_eq!(document(&fresh, path).await, usual);
    // Gone again, it is as usual.
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    succeed(&server, "DELETE", &format!("{definitions}/tunnels.networking.k8s.io"), Value::Null).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(document(&server, path).await, usual);
}
