//! An operator in plain JSON: every `EchoServer` gets a Pod that answers with its message, and a Service in front of it.

pub mod kinds;

use mainstay::readiness::Readiness;
use mainstay::{ChildKind, Controller, Error, OperatorBuilder, Strategy, SyncRequest, SyncResponse};
use serde_json::{Value, json};

/// The operator's name in the cluster.
pub const NAME: &str = "echo-server";
/// Where the container listens.
const CONTAINER_PORT: u16 = 5678;

/// All that the operator consists of.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    operator.controller(
        Controller::for_kind(kinds::echo_server())
            // Most fields of a Pod cannot be changed, so one that differs makes room for another.
            .child(ChildKind::new(kinds::pod()).strategy(Strategy::Recreate))
            .child(ChildKind::new(kinds::service()))
            .sync(sync),
    )
}

/// What should exist for one `EchoServer`.
pub fn sync(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let spec = &request.parent_json()["spec"];
    let labels = json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": request.name()});
    SyncResponse::from_status(status(request))?
        .with_child(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": request.name(), "labels": labels},
            "spec": {"containers": [{
                "name": "echo",
                "image": "hashicorp/http-echo:1.0",
                "args": [format!("-listen=:{CONTAINER_PORT}"), format!("-text={}", text(&spec["message"]))],
                "ports": [{"name": "http", "containerPort": CONTAINER_PORT}],
            }]},
        }))?
        .with_child(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": request.name(), "labels": labels},
            "spec": {"selector": labels, "ports": [{"port": spec["port"], "targetPort": "http"}]},
        }))
}

/// How it stands, from what is there.
fn status(request: &SyncRequest) -> Value {
    let pod = kinds::pod();
    let readiness = request.children_of(&pod).get(request.name()).map(|pod| pod.readiness());
    let phase = if readiness == Some(Readiness::Ready) { "Ready" } else { "Starting" };
    let namespace = request.namespace().unwrap_or_default();
    let port = &request.parent_json()["spec"]["port"];
    json!({"phase": phase, "url": format!("http://{}.{namespace}.svc:{port}", request.name())})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
