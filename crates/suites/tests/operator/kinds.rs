//! What all of these tests use: a parent kind that takes anything, a handler that does what the parent says, and
//! looks at what came of it.

#![expect(clippy::needless_pass_by_value, reason = "tests write `json!` where they call")]

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::queue::Backoff;
use mainstay::{
    ChildKind, Controller, ControllerBuilder, Error, Kind, Operator, Scope, Stepped, SyncRequest,
    SyncResponse,
};
use mainstay_testkit::{Cluster, OperatorTest, RunningOperator, eventually};
use serde_json::{Value, json};

const GROUP: &str = "test.mainstay.dev";

/// The namespaced parent of these tests: `shops.test.mainstay.dev/v1`.
pub(crate) fn shop_kind() -> Kind {
    Kind::new("test.mainstay.dev/v1", "Shop", "shops", Scope::Namespaced)
}

pub(crate) fn config_maps() -> Kind {
    Kind::of::<ConfigMap>()
}

pub(crate) fn secrets() -> Kind {
    Kind::of::<Secret>()
}

/// Defines the parent kind that all tests share: `Shop`.
pub(crate) async fn define_shop(cluster: &Cluster) {
    cluster.define(definition("Shop", "shops", "Namespaced")).await;
}

/// The definition of a kind that takes anything in its spec and status.
pub(crate) fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

/// A shop of this name and spec.
pub(crate) fn shop(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "test.mainstay.dev/v1", "kind": "Shop", "metadata": {"name": name}, "spec": spec})
}

/// A config map of this name and data.
pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A handler whose parents say what they want: `spec.children` and `spec.status`.
pub(crate) fn as_spec_says(request: &SyncRequest) -> Result<SyncResponse, Error> {
    let spec = &request.parent_json()["spec"];
    let mut response = SyncResponse::new();
    response.set_status(&spec["status"])?;
    for child in spec["children"].as_array().into_iter().flatten() {
        response.add_child(child)?;
    }
    Ok(response)
}

/// A controller of shops with these children, without its handler.
pub(crate) fn shops(children: impl IntoIterator<Item = ChildKind>) -> ControllerBuilder {
    children.into_iter().fold(Controller::for_kind(shop_kind()), ControllerBuilder::child)
}

/// A controller of shops whose specs say what they want, with these child kinds kept by server-side apply.
pub(crate) fn obedient(children: impl IntoIterator<Item = Kind>) -> Controller {
    shops(children.into_iter().map(ChildKind::new)).sync(as_spec_says)
}

/// Steps through an operator of one controller.
pub(crate) async fn step_through(cluster: &Cluster, controller: Controller) -> OperatorTest {
    define_shop(cluster).await;
    OperatorTest::new(cluster, "shops", |operator| operator.controller(controller))
}

/// Runs an operator of one controller.
pub(crate) async fn run(cluster: &Cluster, controller: Controller) -> RunningOperator {
    define_shop(cluster).await;
    let operator = Operator::builder("shops", cluster.client()).namespace(cluster.namespace());
    RunningOperator::start(operator.controller(controller).build().unwrap())
}

/// A backoff that no test waits for long.
pub(crate) fn short_backoff() -> Backoff {
    Backoff { initial: Duration::from_millis(20), max: Duration::from_millis(100), ..Backoff::default() }
}

/// Waits until a running operator syncs the parents of its controllers.
pub(crate) async fn until_ready(operator: &Operator) {
    eventually("the controllers to be ready", async || {
        let controllers = operator.controllers();
        (!controllers.is_empty() && controllers.iter().all(|controller| controller.ready)).then_some(())
    })
    .await;
}

/// How many writes these steps made.
pub(crate) fn writes(steps: &[Stepped]) -> usize {
    steps.iter().map(Stepped::writes).sum()
}

/// The condition by which the framework speaks, from an object.
pub(crate) fn reconciled(object: &Value) -> Option<&Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Reconciled")
}

/// The framework's condition on a shop: its status, reason and message.
pub(crate) async fn told(cluster: &Cluster, name: &str) -> (String, String, String) {
    let shop = cluster.find(&shop_kind(), name).await.expect("the shop is there");
    let condition = reconciled(&shop).unwrap_or_else(|| panic!("no condition on {shop}"));
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// Whether the framework tells of no problem on a shop.
pub(crate) async fn is_well(cluster: &Cluster, name: &str) -> bool {
    let shop = cluster.find(&shop_kind(), name).await.expect("the shop is there");
    reconciled(&shop).is_none()
}

/// Waits for a warning of this reason about an object, and returns what it says.
pub(crate) async fn warning(cluster: &Cluster, object: &str, reason: &str) -> String {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", cluster.namespace());
    eventually(&format!("a warning {reason} about {object}"), async || {
        let (_, events) = cluster.get(&path).await;
        let found = events["items"].as_array()?.iter().find(|event| {
            event["type"] == "Warning" && event["reason"] == reason && event["regarding"]["name"] == object
        })?;
        Some(found["note"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

/// The version of an object: it changes with every write that has an effect.
pub(crate) async fn version(cluster: &Cluster, kind: &Kind, name: &str) -> String {
    let object = cluster.find(kind, name).await.unwrap_or_else(|| panic!("there is no {kind} {name}"));
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}
