//! What a plugin consists of: a kind, its class, templates and streams. The suite has it too.

use mainstay::{Kind, Scope};
use mainstay_streams::kinds::{BackfillRequest, StreamClass, StreamingJobTemplate};
use serde_json::{Value, json};

pub(crate) fn classes() -> Kind {
    Kind::of::<StreamClass>()
}

pub(crate) fn templates() -> Kind {
    Kind::of::<StreamingJobTemplate>()
}

pub(crate) fn requests() -> Kind {
    Kind::of::<BackfillRequest>()
}

/// A kind of this name that a plugin brings.
pub(crate) fn streams(kind: &str) -> Kind {
    Kind::new("example.com/v1", kind, &format!("{}s", kind.to_lowercase()), Scope::Namespaced)
}

/// The definition of such a kind.
pub(crate) fn definition(kind: &Kind) -> Value {
    let (kind, plural) = (kind.kind(), kind.plural());
    let reference = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {
                "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                        "backfillJobTemplateRef": reference,
                        "suspended": {"type": "boolean"}, "schedule": {"type": "string"},
                        "source": {"type": "string"}, "sinkSecretRef": reference,
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

/// Its class, which is called as the kind's plural, with these fields besides.
pub(crate) fn class(kind: &Kind, spec: &Value) -> Value {
    let all = json!({
        "apiGroupRef": "example.com", "apiVersion": "v1", "kindRef": kind.kind(), "pluralName": kind.plural(),
    });
    let metadata = json!({"name": kind.plural()});
    let spec = with(all, spec);
    json!({"apiVersion": classes().api_version(), "kind": "StreamClass", "metadata": metadata, "spec": spec})
}

/// A template whose pods do as their annotations say.
pub(crate) fn template(name: &str, simulation: &Value) -> Value {
    json!({
        "apiVersion": templates().api_version(), "kind": "StreamingJobTemplate", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": simulation},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "stream", "image": "example.com/stream:1"}]},
            },
        }}},
    })
}

/// A stream with these fields in its spec. Its template is called as the kind's plural, unless it names another.
pub(crate) fn stream(kind: &Kind, name: &str, spec: &Value) -> Value {
    let all = json!({"source": "a", "jobTemplateRef": {"name": kind.plural()}});
    let metadata = json!({"name": name});
    json!({"apiVersion": "example.com/v1", "kind": kind.kind(), "metadata": metadata, "spec": with(all, spec)})
}

/// All fields of both; where both have one, that of the second.
pub(crate) fn with(mut all: Value, more: &Value) -> Value {
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}
