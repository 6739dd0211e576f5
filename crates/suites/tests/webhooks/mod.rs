//! Admission webhooks on both clusters: the same scenarios are played on the embedded server and on a real
//! kube-apiserver, and what webhooks were asked and clients were answered must be the same on both.
//!
//!     scenario ─▶ requests ─▶ answers, reviews ─▶ normalise ─▶ compare
//!
//! What is not compared: `userInfo`, as the two clusters let the test in as different administrators.

mod failures;
pub(crate) mod hooks;
mod kinds;
mod matching;
mod mutation;
mod operations;
mod stage;

use serde_json::{Value, json};

/// Where config maps of a scenario are.
const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

/// The config map `a`.
const MAP: &str = "/api/v1/namespaces/{ns}/configmaps/a";

/// A config map with one entry.
fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}
