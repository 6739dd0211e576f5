//! What an HTTP response of a webhook means, before anybody looks at the review in it.

use super::review::ReviewVersion;
use crate::field::go_quote;
use crate::gotext::json_type;
use bytes::Bytes;
use serde_json::{Map, Value};

/// How much of a body is quoted in an error.
const QUOTED_BYTES_MAX: usize = 2048;

/// An HTTP response, read to its end.
#[derive(Debug)]
pub(super) struct Reply {
    pub code: u16,
    pub content_type: Option<String>,
    pub body: Bytes,
}

impl Reply {
    /// The `AdmissionReview` in the response, or why there is none.
    pub(super) fn read_review(&self, version: ReviewVersion) -> Result<Map<String, Value>, String> {
        if !(200..=206).contains(&self.code) {
            return Err(self.failure());
        }
        if self.body.is_empty() {
            let content_type = self.content_type.as_deref().unwrap_or("application/json");
            return Err(format!(
                "0-length response with status code: {} and content type: {content_type}",
                self.code
            ));
        }
        // What is no JSON is read as YAML by kube-apiserver, and plain text is a string there.
        let document = serde_json::from_slice(&self.body).unwrap_or_else(|_| Value::String(String::new()));
        let Value::Object(review) = document else {
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type \
                 struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}",
                json_type(&document)
            ));
        };
        check_kind(&review, version)?;
        Ok(review)
    }

    fn failure(&self) -> String {
        if let Some(message) = self.status_message() {
            return message;
        }
        let text = if self.is_text() {
            let quoted = self.body.get(..QUOTED_BYTES_MAX).unwrap_or(&self.body);
            String::from_utf8_lossy(quoted).trim().to_owned()
        } else {
            "unknown".to_owned()
        };
        match self.code {
            400 => "the server rejected our request for an unknown reason".to_owned(),
            401 => "the server has asked for the client to provide credentials".to_owned(),
            404 => "the server could not find the requested resource".to_owned(),
            405 => "the server does not allow this method on the requested resource".to_owned(),
            406 if text.is_empty() || text == "unknown" => {
                "the server was unable to respond with a content type that the client supports".to_owned()
            }
            403 | 406 | 415 => text,
            409 => "the server reported a conflict".to_owned(),
            422 => "the server rejected our request due to an error in our request".to_owned(),
            429 => "the server has received too many requests and has asked us to try again later".to_owned(),
            503 => "the server is currently unable to handle the request".to_owned(),
            504 => "the server was unable to return a response in the time allotted, but may still be processing \
                    the request"
                .to_owned(),
            500.. => format!("an error on the server ({}) has prevented the request from succeeding", go_quote(&text)),
            code => format!("the server responded with the status code {code} but did not return more information"),
        }
    }

    /// The message of a `Status` of failure in the body.
    fn status_message(&self) -> Option<String> {
        let status: Value = serde_json::from_slice(&self.body).ok()?;
        let is = |field: &str, wanted: &str| status.get(field).and_then(Value::as_str) == Some(wanted);
        let version = is("apiVersion", "v1") || status.get("apiVersion").is_none();
        if !(version && is("kind", "Status") && is("status", "Failure")) {
            return None;
        }
        Some(status.get("message").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    fn is_text(&self) -> bool {
        self.content_type
            .as_deref()
            .is_none_or(|given| given.trim_start().to_ascii_lowercase().starts_with("text/"))
    }
}

/// Refuses kinds that are no review of the version that was sent. Absent ones are the verdict's matter.
fn check_kind(review: &Map<String, Value>, version: ReviewVersion) -> Result<(), String> {
    let stated = |field: &str| review.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let go_type = |api_version: &str, kind: &str| match (api_version, kind) {
        ("admission.k8s.io/v1", "AdmissionReview") => Some("v1.AdmissionReview"),
        ("admission.k8s.io/v1beta1", "AdmissionReview") => Some("v1beta1.AdmissionReview"),
        ("v1", "Status") => Some("v1.Status"),
        _ => None,
    };
    let kind = stated("kind").unwrap_or("AdmissionReview");
    let api_version = stated("apiVersion").unwrap_or(version.api_version());
    let wanted = match version {
        ReviewVersion::V1 => "v1.AdmissionReview",
        ReviewVersion::V1Beta1 => "v1beta1.AdmissionReview",
    };
    match go_type(api_version, kind) {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(format!("converting ({found}) to ({wanted}): unknown conversion")),
        None => Err(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(kind),
            go_quote(api_version)
        )),
    }
}
