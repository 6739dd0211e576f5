//! Objects are had in every version of their kind. On the real cluster only: the embedded one refuses conversion webhooks
//! by name (D14 in DIFFERENCES.md), and that this is told is a test here.

use std::time::Duration;

use mainstay::webhook::{ConvertError, Pending, Serving, WebhookState, Webhooks};
use mainstay::{Kind, Scope};
use mainstay_testkit::{Cluster, ClusterKind, eventually, for_each_cluster};
use serde_json::{Value, json};

use crate::operator_webhooks::{Running, secret};

/// A kind that says `size` in v1 and `replicas` in v2.
fn definition(group: &str) -> Value {
    let version = |name: &str, stored: bool, field: &str| {
        json!({
            "name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object", "properties": {(field): {"type": "integer"}},
            }}}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("apps.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "apps", "singular": "app", "kind": "App"},
            "versions": [version("v1", true, "size"), version("v2", false, "replicas")],
        },
    })
}

fn convert(mut object: Value, to: &str) -> Result<Value, ConvertError> {
    let (from, into) = if to == "v2" { ("size", "replicas") } else { ("replicas", "size") };
    if let Some(spec) = object["spec"].as_object_mut() {
        let value = spec.remove(from).ok_or_else(|| ConvertError::new(format!("spec.{from} is missing")))?;
        spec.insert(into.to_owned(), value);
    }
    Ok(object)
}

async fn send(cluster: &Cluster, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
        .unwrap();
    let (status, answer) = cluster.send(request).await;
    (status.as_u16(), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_converted_between_versions() {
    for_each_cluster(async |cluster| {
        let group = format!("{}.example.com", cluster.namespace());
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = send(&cluster, "POST", definitions, &definition(&group)).await;
        assert_eq!(made.0, 201, "{}", made.1);
        let kind = Kind::new(&format!("{group}/v1"), "App", "apps", Scope::Namespaced);
        let webhooks = Webhooks::new(cluster.namespace()).convert(kind, convert);
        let serving = Serving::on_loopback()
            .certificate_secret(secret(&cluster))
            .look_every(Duration::from_millis(100));
        let mut running = Running::start(&cluster, webhooks, serving).await;
        if cluster.kind() == ClusterKind::Embedded {
            let refused = |state: &WebhookState| {
                state.pending.iter().any(|pending| {
                    matches!(pending, Pending::Registration { problem } if problem.contains("conversion"))
                })
            };
            running.state.wait_for(refused).await.unwrap();
        } else {
            running.ready().await;
            versions_are_shown(&cluster, &group).await;
        }
        running.end().await;
        send(&cluster, "DELETE", &format!("{definitions}/apps.{group}"), &Value::Null).await;
    })
    .await;
}

async fn versions_are_shown(cluster: &Cluster, group: &str) {
    let path = |version: &str| format!("/apis/{group}/{version}/namespaces/{}/apps", cluster.namespace());
    let app = |name: &str, spec: Value| json!({"apiVersion": format!("{group}/v1"), "kind": "App", "metadata": {"name": name}, "spec": spec});
    eventually("the kind is served", async || {
        (send(cluster, "GET", &path("v1"), &Value::Null).await.0 == 200).then_some(())
    })
    .await;
    for (name, size) in [("b", 2), ("a", 1)] {
        let made = send(cluster, "POST", &path("v1"), &app(name, json!({"size": size}))).await;
        assert_eq!(made.0, 201, "{}", made.1);
    }
    let list = eventually("conversion is in force", async || {
        let (code, list) = send(cluster, "GET", &path("v2"), &Value::Null).await;
        (code == 200 && list["items"][0]["spec"].get("replicas").is_some()).then_some(list)
    })
    .await;
    let shown = list["items"].as_array().unwrap().iter();
    let shown: Vec<_> = shown.map(|app| (app["metadata"]["name"].clone(), app["spec"].clone())).collect();
    assert_eq!(shown, [(json!("a"), json!({"replicas": 1})), (json!("b"), json!({"replicas": 2}))]);
    // There and back.
    let mut changed = list["items"][0].clone();
    changed["spec"]["replicas"] = json!(5);
    let put = send(cluster, "PUT", &format!("{}/a", path("v2")), &changed).await;
    assert_eq!(put.0, 200, "{}", put.1);
    let (_, stored) = send(cluster, "GET", &format!("{}/a", path("v1")), &Value::Null).await;
    assert_eq!(stored["spec"], json!({"size": 5}));
    // What cannot be converted is named.
    let made = send(cluster, "POST", &path("v1"), &app("empty", json!({}))).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let (code, failed) = send(cluster, "GET", &format!("{}/empty", path("v2")), &Value::Null).await;
    assert_eq!(code, 500, "{failed}");
    let message = failed["message"].as_str().unwrap();
    let named = format!("cannot convert App {}/empty from {group}/v1 to {group}/v2", cluster.namespace());
    assert!(message.contains(&named) && message.contains("spec.size is missing"), "{message}");
}
