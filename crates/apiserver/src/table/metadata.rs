//! `PartialObjectMetadata`: an object without everything but its metadata.

use serde_json::{Value, json};

/// The metadata-only form of an object. `version` is `v1` or `v1beta1`.
pub(crate) fn partial_object_metadata(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}
