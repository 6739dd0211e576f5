//! `StreamingJobTemplate`: the Job to start from.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The Job that streams are run as: what a `CronJob` has as its `jobTemplate`.
#[derive(Debug, Clone, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "streams.mainstay.dev",
    version = "v1alpha1",
    kind = "StreamingJobTemplate",
    namespaced,
    shortname = "sjt",
    category = "mainstay",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.template.spec.template.spec.containers[0].image"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct StreamingJobTemplateSpec {
    /// `metadata` (labels and annotations) and `spec` of the Job. What the operator adds to it is its name, owner, labels, environment.
    #[schemars(schema_with = "any_object")]
    pub template: Map<String, Value>,
}

/// Without `additionalProperties`, which a map would have: what is in there would be pruned of all that it has no schema for.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
