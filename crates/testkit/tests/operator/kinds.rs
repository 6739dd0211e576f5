//! The parents of these tests: `Shop`, namespaced, and `Mall`, cluster-scoped. Both are plain JSON with a status
//! subresource; their spec and status take anything.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use mainstay::{Kind, Scope};
use mainstay_testkit::Cluster;
use serde_json::{Value, json};

const GROUP: &str = "test.mainstay.dev";

pub(crate) fn shop_kind() -> Kind {
    Kind::new("test.mainstay.dev/v1", "Shop", "shops", Scope::Namespaced)
}

pub(crate) fn mall_kind() -> Kind {
    Kind::new("test.mainstay.dev/v1", "Mall", "malls", Scope::Cluster)
}

pub(crate) fn config_maps() -> Kind {
    Kind::of::<ConfigMap>()
}

pub(crate) fn secrets() -> Kind {
    Kind::of::<Secret>()
}

/// Defines both kinds.
pub(crate) async fn define_kinds(cluster: &Cluster) {
    cluster.define(definition("Shop", "shops", "Namespaced")).await;
    cluster.define(definition("Mall", "malls", "Cluster")).await;
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

/// A mall of this name and spec.
pub(crate) fn mall(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "test.mainstay.dev/v1", "kind": "Mall", "metadata": {"name": name}, "spec": spec})
}

/// A config map of this name and data.
pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// The name of a kind that no other test has, not yet defined: for what other tests must not see or meet.
pub(crate) fn kind_of_ones_own(scope: Scope) -> Kind {
    let name = mainstay_testkit::cluster::unique_name("stall");
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
    let request = http::Request::delete(format!("{root}/{}.{GROUP}", kind.plural())).body(Vec::new());
    let (status, answer) = cluster.send(request.unwrap()).await;
    assert!(status.is_success(), "removing {kind}: {status} {answer}");
}

/// An object of any kind.
pub(crate) fn object(kind: &Kind, name: &str, spec: Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": name}, "spec": spec})
}
