//! Refusals: the `Status` objects a client sees when a request is not carried out.

use crate::field::{ERRORS_MAX, FieldError};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Why a request was refused. Prints and serialises as a `metav1.Status` of the same code, reason,
/// message and details that kube-apiserver gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason; empty where Kubernetes gives none.
    pub reason: Cow<'static, str>,
    /// The sentence for people.
    pub message: String,
    /// `details`, or none.
    pub details: Option<Box<Map<String, Value>>>,
    /// `metadata.continue`: how a list whose revision is gone can go on.
    pub token: Option<String>,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// How a kind names itself in refusals: its group and its plural (`deployments.apps`) or kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// API group, empty for the core one.
    pub group: &'a str,
    /// Plural resource name, or the kind in `Invalid` errors.
    pub kind: &'a str,
}

impl Subject<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(&self, name: &str) -> Map<String, Value> {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !self.group.is_empty() {
            details.insert("group".into(), self.group.into());
        }
        details.insert("kind".into(), self.kind.into());
        details
    }
}

impl ApiError {
    /// A refusal without details.
    pub(crate) fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        ApiError { code, reason: reason.into(), message: message.into(), details: None, token: None }
    }

    fn about(
        code: u16,
        reason: &'static str,
        subject: &Subject<'_>,
        name: &str,
        message: impl Into<String>,
    ) -> Self {
        let details = Some(Box::new(subject.details(name)));
        ApiError { code, reason: reason.into(), message: message.into(), details, token: None }
    }

    /// 400 with the given sentence.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// 404 for one object.
    pub(crate) fn not_found(subject: &Subject<'_>, name: &str) -> Self {
        let message = format!("{} {name:?} not found", subject.qualified());
        Self::about(404, "NotFound", subject, name, message)
    }

    /// 404 for a path that serves nothing.
    pub(crate) fn no_such_resource() -> Self {
        let mut error = Self::plain(404, "NotFound", "the server could not find the requested resource");
        error.details = Some(Box::default());
        error
    }

    /// 409: an object of this name exists.
    pub(crate) fn already_exists(subject: &Subject<'_>, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", subject.qualified());
        Self::about(409, "AlreadyExists", subject, name, message)
    }

    /// 409: the write's precondition does not hold.
    pub(crate) fn conflict(subject: &Subject<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", subject.qualified());
        Self::about(409, "Conflict", subject, name, message)
    }

    /// 403 with the reason.
    pub(crate) fn forbidden(subject: &Subject<'_>, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", subject.qualified())
        } else {
            format!("{} {name:?} is forbidden: {why}", subject.qualified())
        };
        Self::about(403, "Forbidden", subject, name, message)
    }

    /// 422 for everything wrong with an object. `subject.kind` is the kind, not the plural.
    pub(crate) fn invalid(subject: &Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let errors = errors.get(..ERRORS_MAX).unwrap_or(errors);
        let sentences: Vec<String> = {
            // Kubernetes drops repeated sentences but keeps their order.
            let mut seen = std::collections::HashSet::new();
            errors.iter().map(ToString::to_string).filter(|s| seen.insert(s.clone())).collect()
        };
        let list = match sentences.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            many => format!(": [{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid{list}", subject.qualified());
        let mut error = Self::about(422, "Invalid", subject, name, message);
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.problem.reason(), "message": e.body(), "field": e.field}))
            .collect();
        if let (Some(details), false) = (&mut error.details, causes.is_empty()) {
            details.insert("causes".into(), Value::Array(causes));
        }
        error
    }

    /// 410: the revision asked for is compacted away.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    /// 415 for a request body nobody here can read.
    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::plain(415, "UnsupportedMediaType", message)
    }

    /// 406 for a response form that cannot be produced.
    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::plain(406, "NotAcceptable", message)
    }

    /// 413 for a body over the limit.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::plain(413, "RequestEntityTooLarge", message)
    }

    /// An object that has outgrown the store, in etcd's words and with kube-apiserver's code.
    pub(crate) fn too_large_to_store() -> Self {
        Self::plain(500, "", "etcdserver: request is too large")
    }

    /// 413 for an object that is nested too deeply to be stored.
    pub(crate) fn too_deep() -> Self {
        let max = crate::bounds::STORED_DEPTH_MAX;
        Self::too_large(format!(
            "Request entity too large: the object would be nested deeper than {max} levels"
        ))
    }

    /// 500: a defect or a broken dependency.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        let mut error = Self::plain(500, "InternalError", message);
        let cause = error.message.trim_start_matches("Internal error occurred: ").to_owned();
        let mut details = Map::new();
        details.insert("causes".into(), json!([{"message": cause}]));
        error.details = Some(Box::new(details));
        error
    }

    /// 501: a feature of Kubernetes that this server does not have, by name.
    pub(crate) fn not_implemented(feature: &str) -> Self {
        Self::plain(501, "NotImplemented", format!("this API server does not implement {feature}"))
    }

    /// The `Status` object to send.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if let Value::Object(map) = &mut status {
            if !self.reason.is_empty() {
                map.insert("reason".into(), (*self.reason).into());
            }
            if let Some(token) = &self.token {
                map.insert("metadata".into(), json!({"continue": token}));
            }
            if let Some(details) = &self.details {
                map.insert("details".into(), Value::Object((**details).clone()));
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_object_names_its_group() {
        let error = ApiError::not_found(&Subject { group: "apps", kind: "deployments" }, "web");
        assert_eq!(error.message, "deployments.apps \"web\" not found");
        assert_eq!(error.to_status()["details"]["group"], "apps");
    }
}
