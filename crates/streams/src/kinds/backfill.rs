//! `BackfillRequest`: that a stream shall be backfilled once, with what, and what came of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::signed;

/// Has a stream of the same namespace backfilled, once.
#[derive(Debug, Clone, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "streams.mainstay.dev",
    version = "v1alpha1",
    kind = "BackfillRequest",
    namespaced,
    shortname = "bfr",
    category = "mainstay",
    derive = "PartialEq",
    status = "BackfillRequestStatus",
    printcolumn = r#"{"name": "Class", "type": "string", "jsonPath": ".spec.streamClass"}"#,
    printcolumn = r#"{"name": "Stream", "type": "string", "jsonPath": ".spec.streamId"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Attempts", "type": "integer", "jsonPath": ".status.attempts"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = RecursiveTransform(signed))]
pub struct BackfillRequestSpec {
    /// The stream's class.
    #[schemars(length(min = 1))]
    pub stream_class: String,
    /// The stream's name.
    #[schemars(length(min = 1))]
    pub stream_id: String,
    /// What to backfill. The program gets to see it as part of `STREAMCONTEXT__OVERRIDE`.
    pub range: Option<BackfillRange>,
    /// Anything that the program understands: the program gets it as `STREAMCONTEXT__OVERRIDE`.
    #[schemars(schema_with = "anything")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// So many failed Jobs are followed by another; none unless given.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// Those with a higher one come first; 0 unless given. Among equals, the older one does.
    pub priority: Option<i32>,
    /// The backfill is not wanted any more. If it runs, it is stopped.
    pub cancelled: Option<bool>,
    /// The request is deleted so many seconds after it has ended; never unless given.
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<u32>,
}

/// Any JSON.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"nullable": true, "x-kubernetes-preserve-unknown-fields": true})
}

/// From where to where, in whatever terms the program has: times, versions, offsets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillRange {
    /// The beginning; that of the data unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The end; now unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// What has become of a request.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = RecursiveTransform(signed))]
pub struct BackfillRequestStatus {
    /// The generation that all of this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// In a word.
    pub phase: BackfillPhase,
    /// Its place in the stream's queue, from 1, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// How many Jobs have been started for it.
    #[serde(default)]
    pub attempts: u32,
    /// The Job that runs for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// When the first Job was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// `Ready`: it has been carried out.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// What has become of a request, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize, JsonSchema)]
pub enum BackfillPhase {
    /// Nobody has looked at it, or its class or stream is not there.
    #[default]
    Pending,
    /// Others come first, or the stream is suspended.
    Queued,
    /// Its Job runs.
    Running,
    /// It is done.
    Completed,
    /// Its last Job has failed.
    Failed,
    /// It was taken back.
    Cancelled,
}

impl BackfillPhase {
    /// Whether nothing more happens.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_needs_a_class_and_a_stream_and_nothing_else() {
        let definition = json!(BackfillRequest::crd());
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["required"], json!(["streamClass", "streamId"]));
        let payload = spec["properties"]["payload"].as_object().unwrap();
        assert!(!payload.contains_key("default"), "{payload:?}");
    }
}
