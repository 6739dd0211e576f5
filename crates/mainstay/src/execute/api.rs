//! Requests to the API server, and what their answers mean. Every write goes through here, so this is where the fence
//! stands: no write begins that could still be under way when another replica may write.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;

use crate::kind::{Key, Kind};
use crate::metrics::Metrics;
use crate::replicas::Turn;

/// The API server, as one operator uses it.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) client: kube::Client,
    /// The field manager.
    pub(crate) manager: Arc<str>,
    pub(crate) metrics: Metrics,
    pub(crate) timeout: Duration,
}

/// How a server begins to say that it was sent a field that the schema does not have, or a value of another type.
const NO_TYPED_PATCH: &str = "failed to create typed patch object";
const NO_STATUS: &str = "the kind has no status subresource any more";

/// What came of a request that did not do what it was sent for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no such object.
    NotFound,
    /// The object is not the one, or not in the state, that the request was made for.
    Conflict,
    /// The server will not take this, however often it is sent.
    Refused { message: String, immutable: bool },
    /// The operator may not.
    Forbidden { message: String },
    /// Nobody knows, or not now.
    Unavailable { message: String, retry_after: Option<Duration> },
    /// This replica may not write for the parent now. Nothing was sent.
    Fenced { message: String },
}

impl Failure {
    /// The time of a sync was up. Nothing was sent.
    pub(crate) fn too_late() -> Self {
        let message = "the sync took longer than its deadline; the rest is left to the next one".into();
        Self::Unavailable { message, retry_after: None }
    }

    /// An object is there, and its kind has no status subresource.
    pub(crate) fn no_status() -> Self {
        Self::Unavailable { message: NO_STATUS.into(), retry_after: None }
    }

    /// Whether the kind may no longer be as its schema said when it was read.
    pub(crate) fn hints_at_schema(&self) -> bool {
        match self {
            Self::Refused { message, .. } => message.starts_with(NO_TYPED_PATCH),
            Self::Unavailable { message, .. } => message == NO_STATUS,
            _ => false,
        }
    }

    /// Something outside of the cluster went wrong.
    pub(crate) fn outside(message: String) -> Self {
        Self::Unavailable { message, retry_after: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such object"),
            Self::Conflict => f.write_str("the object has changed"),
            Self::Refused { message, .. }
            | Self::Forbidden { message }
            | Self::Unavailable { message, .. }
            | Self::Fenced { message } => f.write_str(message),
        }
    }
}

/// A request in the making.
pub(crate) struct Call<'a> {
    pub(crate) verb: &'static str,
    pub(crate) method: Method,
    pub(crate) kind: &'a Kind,
    pub(crate) path: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Vec<u8>,
    /// The turn in which a write is made. `None`: it is a read.
    pub(crate) turn: Option<&'a Turn>,
}

impl Api {
    pub(crate) async fn get(&self, kind: &Kind, key: &Key) -> Result<Bytes, Failure> {
        let path = kind.object_path(key);
        let method = Method::GET;
        self.send(Call { verb: "get", method, kind, path, content_type: None, body: Vec::new(), turn: None })
            .await
    }

    pub(crate) async fn send(&self, call: Call<'_>) -> Result<Bytes, Failure> {
        let started = Instant::now();
        if let Some(turn) = call.turn
            && let Err(lost) = turn.permit(self.timeout)
        {
            return Err(Failure::Fenced { message: lost.to_string() });
        }
        let (verb, kind) = (call.verb, call.kind);
        let sent = tokio::time::timeout(self.timeout, self.exchange(call)).await;
        let (code, answer) = match sent {
            Ok(Ok((code, retry_after, body))) => (Some(code.as_u16()), judge(code, retry_after, body)),
            Ok(Err(message)) => (None, Err(Failure::Unavailable { message, retry_after: None })),
            Err(_) => {
                let message = format!("no answer within {} s", self.timeout.as_secs());
                (None, Err(Failure::Unavailable { message, retry_after: None }))
            }
        };
        self.metrics.request_finished(verb, kind, code, started.elapsed());
        answer
    }

    async fn exchange(&self, call: Call<'_>) -> Result<(StatusCode, Option<Duration>, Bytes), String> {
        let mut request =
            http::Request::builder().method(call.method).uri(call.path).header("accept", "application/json");
        if let Some(content_type) = call.content_type {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Body::from(call.body)).map_err(|error| error.to_string())?;
        let response = self.client.send(request).await.map_err(|error| chain(&error))?;
        let code = response.status();
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let body = response.into_body().collect().await.map_err(|error| chain(&error))?.to_bytes();
        Ok((code, retry_after.map(Duration::from_secs), body))
    }
}

/// What an answer means.
fn judge(code: StatusCode, retry_after: Option<Duration>, body: Bytes) -> Result<Bytes, Failure> {
    if code.is_success() {
        return Ok(body);
    }
    let status: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = match status["message"].as_str() {
        Some(message) => message.to_owned(),
        None => code.canonical_reason().unwrap_or("an answer without a reason").to_owned(),
    };
    let causes = || status.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
    Err(match code {
        StatusCode::NOT_FOUND if is_of_object(&status) => Failure::NotFound,
        StatusCode::CONFLICT => Failure::Conflict,
        // The uid that was sent as a precondition is that of another object.
        StatusCode::UNPROCESSABLE_ENTITY if causes().any(|cause| cause["field"] == "metadata.uid") => {
            Failure::Conflict
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            let immutable = causes().any(|cause| is_immutable(cause["message"].as_str().unwrap_or_default()))
                || is_immutable(&message);
            Failure::Refused { message, immutable }
        }
        StatusCode::FORBIDDEN if causes().any(|cause| cause["reason"] == "NamespaceTerminating") => {
            Failure::Refused { message, immutable: false }
        }
        // No permission would help: the kind is being taken away. Only the text tells.
        StatusCode::FORBIDDEN if message.contains("custom resource definition is terminating") => {
            Failure::Unavailable { message, retry_after: None }
        }
        StatusCode::FORBIDDEN => Failure::Forbidden { message },
        StatusCode::NOT_FOUND if is_of_namespace(&status) => Failure::Refused { message, immutable: false },
        // The kind is not served: it has just gone, or is going. Its watch tells, and its parents wait until it is back.
        StatusCode::NOT_FOUND => {
            Failure::Unavailable { message: "the server does not know the kind".into(), retry_after: None }
        }
        StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED | StatusCode::PAYLOAD_TOO_LARGE => {
            Failure::Refused { message, immutable: false }
        }
        // A field that the schema does not have, or a value of another type. The server calls that its own error, but it
        // is ours, and no trying again mends it.
        StatusCode::INTERNAL_SERVER_ERROR if message.starts_with(NO_TYPED_PATCH) => {
            Failure::Refused { message, immutable: false }
        }
        _ => Failure::Unavailable { message, retry_after },
    })
}

/// A 404 of a named object, not of its namespace or of the whole kind.
fn is_of_object(status: &Value) -> bool {
    status.pointer("/details/name").is_some() && !is_of_namespace(status)
}

fn is_of_namespace(status: &Value) -> bool {
    status.pointer("/details/kind").is_some_and(|kind| kind == "namespaces")
}

/// The wordings by which Kubernetes refuses to change a field of an object that exists. A suite provokes them on the real server.
const IMMUTABLE: [&str; 9] = [
    // Job, Deployment, Secret, ConfigMap, PersistentVolume and its claim, and most others.
    "is immutable",
    "are immutable",
    // Service, its clusterIP above all.
    "may not change once set",
    "can not be unset",
    // RoleBinding and ClusterRoleBinding.
    "cannot change roleRef",
    // Pod.
    "pod updates may not change fields",
    // PriorityClass.
    "may not be changed in an update",
    // Containers of a Pod, and its tolerations.
    "pod updates may not add or remove containers",
    "existing toleration can not be modified",
];

fn is_immutable(message: &str) -> bool {
    // StatefulSet and StorageClass name the fields between the two.
    let is_forbidden =
        || message.split_once("updates to").is_some_and(|(_, rest)| rest.contains("are forbidden"));
    IMMUTABLE.iter().any(|wording| message.contains(wording)) || is_forbidden()
}

/// An error with its sources, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        // Some errors repeat their source in their own text.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immutability_is_known_by_its_wording() {
        for message in [
            "spec.selector: Invalid value: {}: field is immutable",
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit' and 'minReadySeconds' are forbidden",
            "parameters: Forbidden: updates to parameters are forbidden.",
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            "spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set",
        ] {
            assert!(is_immutable(message), "{message}");
        }
        for message in [
            "admission webhook \"w\" denied the request: updates to this cluster are frozen until Monday",
            "updates to production need an approval",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ] {
            assert!(!is_immutable(message), "{message}");
        }
    }
}
