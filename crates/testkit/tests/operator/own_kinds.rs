//! Kinds of a single test's own: for definitions that come late, and for parents in no namespace, which other tests' operators
//! must not meet.

use mainstay::{Kind, Scope};
use mainstay_testkit::Cluster;
use mainstay_testkit::cluster::unique_name;
use serde_json::{Value, json};

use crate::kinds::definition;

/// The name of a kind that no other test has, not yet defined: for what other tests must not see or meet.
pub(crate) fn kind_of_ones_own(scope: Scope) -> Kind {
    let name = unique_name("stall");
    let kind = format!("Stall{}", name.replace("stall-", ""));
    Kind::new("test.mainstay.dev/v1", &kind, &name, scope)
}

/// Defines such a kind.
pub(crate) async fn define_own(cluster: &Cluster, kind: &Kind) {
    let scope = if kind.scope() == Scope::Namespaced { "Namespaced" } else { "Cluster" };
    cluster.define(definition(kind.kind(), kind.plural(), scope)).await;
}

/// Removes its definition again, and all of its objects.
pub(crate) async fn remove_own(cluster: &Cluster, kind: &Kind) {
    let root = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request =
        http::Request::delete(format!("{root}/{}.test.mainstay.dev", kind.plural())).body(Vec::new());
    let (status, answer) = cluster.send(request.unwrap()).await;
    assert!(status.is_success(), "removing {kind}: {status} {answer}");
}

/// An object of any kind.
pub(crate) fn object(kind: &Kind, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": name}, "spec": spec})
}
