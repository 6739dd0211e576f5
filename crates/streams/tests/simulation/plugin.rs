//! A plugin: the kind `Feed`, its class and its templates.

use mainstay::{Kind, Scope};
use mainstay_streams::kinds::{BackfillRequest, StreamClass, StreamingJobTemplate};
use serde_json::{Value, json};

pub(crate) fn feeds() -> Kind {
    Kind::new("example.com/v1", "Feed", "feeds", Scope::Namespaced)
}

pub(crate) fn classes() -> Kind {
    Kind::of::<StreamClass>()
}

pub(crate) fn templates() -> Kind {
    Kind::of::<StreamingJobTemplate>()
}

pub(crate) fn requests() -> Kind {
    Kind::of::<BackfillRequest>()
}

/// The kind that the plugin brings.
pub(crate) fn definition() -> Value {
    let reference = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "feeds.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Feed", "plural": "feeds", "singular": "feed", "listKind": "FeedList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                        "jobTemplateRef": reference, "backfillJobTemplateRef": reference,
                        "suspended": {"type": "boolean"}, "schedule": {"type": "string"},
                        "source": {"type": "string"}, "sinkSecretRef": reference,
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

pub(crate) fn class(name: &str) -> Value {
    json!({
        "apiVersion": classes().api_version(), "kind": "StreamClass", "metadata": {"name": name},
        "spec": {
            "apiGroupRef": "example.com", "apiVersion": "v1", "kindRef": "Feed", "pluralName": "feeds",
            "secretRefs": ["sinkSecretRef"],
        },
    })
}

/// A template whose pods do as their annotations say.
pub(crate) fn template(name: &str, simulation: &Value) -> Value {
    json!({
        "apiVersion": templates().api_version(), "kind": "StreamingJobTemplate", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": simulation},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "feed", "image": "example.com/feed:1"}]},
            },
        }}},
    })
}

pub(crate) fn feed(name: &str, spec: &Value) -> Value {
    let mut all = json!({"source": "a", "jobTemplateRef": {"name": "feed"}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": "example.com/v1", "kind": "Feed", "metadata": {"name": name}, "spec": all})
}
