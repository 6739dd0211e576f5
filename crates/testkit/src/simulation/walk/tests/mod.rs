//! What the walk makes of each keyword, and the laws that hold for any schema.

mod keywords;
mod laws;
mod server;

use serde_json::{Value, json};

use super::*;

/// A definition of kind `Thing` with this schema for its spec.
fn definition(spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [
                {"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    })
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec})
}

fn walk_of(schema: &Value, spec: &Value) -> SpecWalk {
    spec_changes(&definition(schema), &thing(spec))
}
