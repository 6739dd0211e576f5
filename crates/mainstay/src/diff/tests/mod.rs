//! The laws of comparison, its wording, and what real servers make of it.

mod behaviour;
mod desired;
mod documents;
mod laws;
mod paths;
mod server;

use serde_json::json;

use super::{Document, Rules};
use crate::{Kind, Scope};

/// One line each.
fn lines<T: ToString>(things: impl IntoIterator<Item = T>) -> String {
    things.into_iter().flat_map(|thing| [thing.to_string(), "\n".to_owned()]).collect()
}

fn thing() -> Kind {
    Kind::new("example.com/v1", "Thing", "things", Scope::Namespaced)
}

/// Rules of a kind that contains itself in every way there is.
fn rules() -> Rules {
    let node = json!({"$ref": "#/components/schemas/Thing"});
    let quantity = json!({"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"});
    let document = json!({"components": {"schemas": {
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "Thing": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}],
            "properties": {
                "name": {"type": "string"},
                "protocol": {"type": "string", "default": "TCP"},
                "keyed": {
                    "type": "array",
                    "items": {"default": {}, "allOf": [node]},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "protocol"],
                },
                "merged": {
                    "type": "array",
                    "items": node,
                    "x-kubernetes-patch-strategy": "merge,retainKeys",
                    "x-kubernetes-patch-merge-key": "name",
                },
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "atomic": {"type": "array", "items": node, "x-kubernetes-list-type": "atomic"},
                "bare": {"type": "array", "items": node},
                "whole": {"allOf": [node], "x-kubernetes-map-type": "atomic"},
                "amount": quantity,
                "amounts": {"type": "object", "additionalProperties": quantity},
                "spec": node,
            },
        },
    }}});
    Document::parse(document.to_string().as_bytes()).unwrap().rules(&thing()).unwrap()
}
