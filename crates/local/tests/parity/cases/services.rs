//! Services and what is behind them.

use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use mainstay::Kind;
use serde_json::json;

use super::super::case::Case;
use super::{pods, template};

pub(crate) async fn has_endpoints(mut case: Case) -> Case {
    let (slices, endpoints) = (Kind::of::<EndpointSlice>(), Kind::of::<Endpoints>());
    for name in ["web-a", "web-b"] {
        let mut template = template("web:1", &json!({}));
        template["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080}]);
        template["spec"]["hostname"] = json!(name);
        template["spec"]["subdomain"] = json!("peers");
        case.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": template["spec"]}))
            .await;
        case.until(&pods(), name, "ready", |pod| {
            pod["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|known| known["type"] == "Ready" && known["status"] == "True")
        })
        .await;
    }
    case.create(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"of": "shop"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}),
    )
    .await;
    case.create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peers"},
        "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 7000}]}}))
        .await;
    case.create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "nobody"},
        "spec": {"selector": {"app": "nobody"}, "ports": [{"port": 80}]}}))
        .await;
    case.show("two services", &[&slices, &endpoints]).await;
    case.patch(&pods(), "web-b", json!({"metadata": {"labels": {"app": "other"}}})).await;
    case.show("with one pod less", &[&slices, &endpoints]).await;
    case
}
