//! What tests of several verbs need.

use super::find::{Class, Found};
use mainstay_streams::kinds::StreamClass;
use serde_json::{Value, json};
use std::rc::Rc;

/// A class of feeds.
pub(super) fn class(name: &str) -> StreamClass {
    serde_json::from_value(json!({
        "apiVersion": "streams.mainstay.dev/v1alpha1", "kind": "StreamClass", "metadata": {"name": name},
        "spec": {"apiGroupRef": "example.com", "apiVersion": "v1", "kindRef": "Feed", "pluralName": "feeds",
            "secretRefs": ["sinkSecretRef"]},
    }))
    .unwrap()
}

/// A stream `orders` with these fields besides.
pub(super) fn found(of_class: &str, fields: Value) -> Found {
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Feed",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"jobTemplateRef": {"name": "feed"}},
    });
    merge(&mut object, fields);
    Found { class: Rc::new(Class::new(&class(of_class))), object }
}

fn merge(into: &mut Value, fields: Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (name, field) in fields {
                merge(into.entry(name).or_insert(Value::Null), field);
            }
        }
        (into, field) => *into = field,
    }
}
