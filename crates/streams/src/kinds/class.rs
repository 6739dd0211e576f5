//! `StreamClass`: which kind is a kind of streams, and how its objects are run.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use schemars::transform::RecursiveTransform;
use serde::{Deserialize, Serialize};

use super::signed;

/// A kind whose objects are streams.
#[derive(Debug, Clone, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "streams.mainstay.dev",
    version = "v1alpha1",
    kind = "StreamClass",
    plural = "streamclasses",
    shortname = "stc",
    category = "mainstay",
    derive = "PartialEq",
    status = "StreamClassStatus",
    printcolumn = r#"{"name": "Kind", "type": "string", "jsonPath": ".spec.kindRef"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Streams", "type": "integer", "jsonPath": ".status.streams.total"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = RecursiveTransform(signed))]
pub struct StreamClassSpec {
    /// The API group of the kind.
    #[schemars(length(min = 1))]
    pub api_group_ref: String,
    /// The version of it that is watched.
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// The kind.
    #[schemars(length(min = 1))]
    pub kind_ref: String,
    /// Its plural, as in URLs.
    #[schemars(length(min = 1))]
    pub plural_name: String,
    /// Fields of a stream's spec that refer to Secrets: `connectionSecretRef`, `sink.secretRef`. Each is given to the Job as environment,
    /// and left out of the spec that the Job gets to see.
    pub secret_refs: Option<Vec<String>>,
    /// Where in a stream things are.
    pub paths: Option<PathsSpec>,
    /// What happens when a Job ends.
    pub restart: Option<RestartSpec>,
    /// How fast Jobs are started.
    pub start_rate: Option<StartRateSpec>,
    /// How many streams are restarted at once when a template or a Secret changes.
    pub rollout: Option<RolloutSpec>,
    /// Whether a new stream is backfilled before it runs. Unless given: if it has a template for that.
    pub initial_backfill: Option<bool>,
    /// How many past runs a stream's status tells of; 5 unless given.
    #[schemars(range(min = 1, max = 50))]
    pub history: Option<u32>,
    /// Streams of the kind are no longer looked at. Their Jobs run on.
    pub stopped: Option<bool>,
}

/// Where in a stream things are: paths from the object's root, with dots (`spec.execution.suspended`).
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathsSpec {
    /// The reference to a `StreamingJobTemplate`: an object with a name, or the name; `spec.jobTemplateRef` unless given.
    pub job_template_ref: Option<String>,
    /// The same for streams with a schedule; as `jobTemplateRef` unless given.
    pub scheduled_job_template_ref: Option<String>,
    /// The same for backfills; `spec.backfillJobTemplateRef` unless given. A stream without one is backfilled with its other template.
    pub backfill_job_template_ref: Option<String>,
    /// Whether the stream is suspended; `spec.suspended` unless given.
    pub suspended: Option<String>,
    /// A cron schedule; `spec.schedule` unless given. A stream without one runs all the time.
    pub schedule: Option<String>,
}

/// What happens when a Job ends.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartSpec {
    /// So many failed Jobs in a row are followed by another; none unless given. The next one is a crash loop.
    #[schemars(range(min = 0, max = 1000))]
    pub budget: Option<u32>,
    /// The seconds before the first of these; 10 unless given. Each further one waits twice as long.
    #[schemars(range(min = 1, max = 86400))]
    pub backoff_seconds: Option<u32>,
    /// The most seconds to wait; 300 unless given.
    #[schemars(range(min = 1, max = 86400))]
    pub max_backoff_seconds: Option<u32>,
    /// A Job that ran for so many seconds before it failed is the first failure again; 600 unless given.
    #[schemars(range(min = 1))]
    pub healthy_seconds: Option<u32>,
    /// The least seconds between the starts of two Jobs of a stream that completes; 10 unless given.
    #[schemars(range(min = 0, max = 86400))]
    pub minimum_interval_seconds: Option<u32>,
    /// What exit codes mean.
    pub exit_codes: Option<ExitCodesSpec>,
}

/// What the exit code of the container that failed means. One that is in no list is as the budget says.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExitCodesSpec {
    /// Tried again, without end and without being counted.
    pub retryable: Option<Vec<i32>>,
    /// A crash loop at once.
    pub fatal: Option<Vec<i32>>,
    /// The program asks for a backfill. From a backfill this is as any other code.
    pub backfill: Option<Vec<i32>>,
}

/// How fast Jobs are started: so many at once, then so many per minute.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartRateSpec {
    /// So many at once; 100 unless given.
    #[schemars(range(min = 1))]
    pub burst: Option<u32>,
    /// So many per minute after that; 600 unless given.
    #[schemars(range(min = 1))]
    pub per_minute: Option<u32>,
}

/// How many streams are restarted at once when a template or a Secret changes.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    /// The number of streams that may be stopped, or restarted and not ready, on that account; 10 unless given. While that many fail, no
    /// other is restarted.
    #[schemars(range(min = 1))]
    pub max_unavailable: Option<u32>,
    /// The seconds that the pods of a restarted stream must be ready before another takes its turn; 10 unless given.
    #[schemars(range(min = 0, max = 86400))]
    pub min_ready_seconds: Option<u32>,
}

/// How a class stands.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = RecursiveTransform(signed))]
pub struct StreamClassStatus {
    /// The generation that all of this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// In a word.
    pub phase: ClassPhase,
    /// Its streams.
    pub streams: StreamCounts,
    /// `Defined`, `Unclaimed`, `PathsFit`, `Permitted`, `Watched`, `Ready`; `RolloutHalted` while a roll-out is halted, `StatusKept` if the kind's status
    /// cannot hold anything.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// How many streams there are, by phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamCounts {
    /// All of them.
    pub total: usize,
    /// By phase; those that nobody has looked at yet are in none.
    #[serde(default)]
    pub by_phase: BTreeMap<String, usize>,
}

/// How a class stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize, JsonSchema)]
pub enum ClassPhase {
    /// Its kind is not there yet, or not all of its objects have been seen.
    #[default]
    Pending,
    /// Its streams are run.
    Ready,
    /// It cannot be: see its conditions.
    Failed,
    /// Its streams are not looked at, as it asks for.
    Stopped,
}
