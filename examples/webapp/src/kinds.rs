//! What users write and read: the kind `WebApp`.
//!
//! A spec leaves out whatever can have a default; [`WebAppConfig`](crate::config::WebAppConfig) has it all.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A web application.
#[derive(Debug, Clone, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "examples.mainstay.dev",
    version = "v1",
    kind = "WebApp",
    namespaced,
    shortname = "wa",
    status = "WebAppStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Replicas", "type": "integer", "jsonPath": ".status.readyReplicas"}"#,
    printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.image"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WebAppSpec {
    /// The image to run.
    #[schemars(length(min = 1))]
    pub image: String,
    /// How many pods run it; 2 unless given.
    #[schemars(range(min = 0, max = 100))]
    pub replicas: Option<i32>,
    /// Where its container listens; 8080 unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Environment variables. Pods are replaced when they change.
    pub settings: Option<BTreeMap<String, String>>,
    /// How a pod is asked whether it is ready.
    pub probe: Option<ProbeSpec>,
}

/// How a pod is asked whether it is ready.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeSpec {
    /// The path that is asked for; `/` unless given.
    pub path: Option<String>,
    /// The seconds between two questions; 10 unless given.
    #[schemars(range(min = 1))]
    pub period_seconds: Option<i32>,
}

/// How a web application stands.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebAppStatus {
    /// The generation that all of this is about. The framework fills it in.
    pub observed_generation: Option<i64>,
    /// How many pods answer.
    pub ready_replicas: i32,
    /// `Ready`, and `Reconciled` if the framework has a problem to tell of.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One to try it with, as `kubectl apply -f -` takes it.
pub const DEMO: &str = include_str!("../shop.yaml");
