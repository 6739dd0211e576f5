//! A kind with a status, for the defects that are about one.

use mainstay::{Kind, Scope};
use serde_json::{Value, json};

pub(crate) fn kind() -> Kind {
    Kind::new("example.dev/v1", "Shop", "shops", Scope::Namespaced)
}

pub(crate) fn definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {"kind": "Shop", "plural": "shops"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

pub(crate) fn shop(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Shop", "metadata": {"name": name}, "spec": spec})
}
