//! `AdmissionReview`: what a webhook is sent, and what its answer says.

use super::{Attributes, Gvk, Gvr, Operation, Served};
use crate::field::go_quote;
use crate::gotext::json_type;
use crate::server::UserInfo;
use crate::status::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A version of the review that both sides speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The first version that the webhook names and we know.
    pub(super) fn first_known<'a>(mut named: impl Iterator<Item = &'a str>) -> Option<Self> {
        named.find_map(|name| match name {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        })
    }

    pub(super) const fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "admission.k8s.io/v1",
            ReviewVersion::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Whether the webhook may change the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Mutating,
    Validating,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: Asked<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    uid: &'a str,
    kind: Gvk<'a>,
    resource: Gvr<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Gvk<'a>,
    request_resource: Gvr<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: Operation,
    user_info: UserInfo<'a>,
    object: Option<&'a Value>,
    old_object: Option<&'a Value>,
    dry_run: bool,
    options: &'a Value,
}

impl<'a> Asked<'a> {
    fn new(uid: &'a str, attributes: &Attributes<'a>, form: Served<'a>) -> Self {
        Asked {
            uid,
            kind: form.kind,
            resource: form.resource,
            sub_resource: attributes.subresource,
            request_kind: attributes.kind,
            request_resource: attributes.resource,
            request_sub_resource: attributes.subresource,
            name: attributes.name,
            namespace: attributes.namespace,
            operation: attributes.operation,
            user_info: attributes.user.info(),
            object: None,
            old_object: None,
            dry_run: attributes.dry_run,
            options: attributes.options,
        }
    }
}

/// The review to post.
pub(super) fn render_review<'a>(
    version: ReviewVersion,
    uid: &'a str,
    attributes: &Attributes<'a>,
    form: Served<'a>,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
) -> Result<Vec<u8>, serde_json::Error> {
    let request = Asked { object, old_object: old, ..Asked::new(uid, attributes, form) };
    serde_json::to_vec(&Review { kind: "AdmissionReview", api_version: version.api_version(), request })
}

/// The `request` variable of match conditions, which has everything but the objects.
pub(super) fn request_variable(
    attributes: &Attributes<'_>,
    form: Served<'_>,
) -> Result<Value, serde_json::Error> {
    serde_json::to_value(Asked::new("", attributes, form))
}

/// A webhook's verdict.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub allowed: bool,
    /// The `Status` that explains a refusal.
    pub status: Option<Map<String, Value>>,
    pub warnings: Vec<String>,
    pub annotations: Vec<(String, String)>,
    /// The patch as it came, empty if none.
    pub patch: Vec<u8>,
    pub patch_type: Option<String>,
}

/// Why an answer is no verdict; the rest of the sentence `failed calling webhook "x": `.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum BadAnswer {
    #[error("failed to call webhook: {0}")]
    Undecodable(String),
    #[error("received invalid webhook response: {0}")]
    Invalid(String),
}

/// Reads a decoded review as the answer to the review `uid`.
pub(super) fn read_verdict(
    review: &Map<String, Value>,
    version: ReviewVersion,
    uid: &str,
    mode: Mode,
) -> Result<Verdict, BadAnswer> {
    let invalid = |why: String| Err(BadAnswer::Invalid(why));
    let response = match review.get("response") {
        None | Some(Value::Null) => return invalid("webhook response was absent".to_owned()),
        Some(Value::Object(response)) => response,
        Some(other) => return Err(mistyped(other, "AdmissionReview.response", "v1.AdmissionResponse")),
    };
    let answered_uid = text(response, "uid", "types.UID")?.unwrap_or_default();
    let mut verdict = decode_response(response)?;
    if version == ReviewVersion::V1Beta1 {
        // The old review promised less, so less of the answer is checked.
        if mode == Mode::Validating {
            verdict.patch = Vec::new();
        }
        verdict.patch_type = (!verdict.patch.is_empty()).then(|| "JSONPatch".to_owned());
        return Ok(verdict);
    }
    if answered_uid != uid {
        return invalid(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(answered_uid)));
    }
    let stated = |field: &str| review.get(field).and_then(Value::as_str).unwrap_or_default();
    if stated("kind").is_empty() || stated("apiVersion").is_empty() {
        let got = format!("/{}, Kind={}", stated("apiVersion"), stated("kind"));
        return invalid(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {got}"
        ));
    }
    match (mode, verdict.patch.is_empty(), verdict.patch_type.as_deref()) {
        (Mode::Mutating, false, None) => {
            invalid("webhook returned response.patch but not response.patchType".to_owned())
        }
        (Mode::Mutating, true, Some(_)) => {
            invalid("webhook returned response.patchType but not response.patch".to_owned())
        }
        (Mode::Mutating, false, Some("")) => {
            invalid("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        (Mode::Validating, false, _) => {
            invalid("validating webhook may not return response.patch".to_owned())
        }
        (Mode::Validating, true, Some(_)) => {
            invalid("validating webhook may not return response.patchType".to_owned())
        }
        _ => Ok(verdict),
    }
}

fn decode_response(response: &Map<String, Value>) -> Result<Verdict, BadAnswer> {
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => return Err(mistyped(other, "AdmissionResponse.response.allowed", "bool")),
    };
    let status = match response.get("status") {
        None | Some(Value::Null) => None,
        Some(Value::Object(status)) => Some(status.clone()),
        Some(other) => return Err(mistyped(other, "AdmissionResponse.response.status", "v1.Status")),
    };
    let warnings = match response.get("warnings") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| string(item, "AdmissionResponse.response.warnings"))
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(mistyped(other, "AdmissionResponse.response.warnings", "[]string")),
    };
    let annotations = match response.get("auditAnnotations") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(entries)) => entries
            .iter()
            .map(|(key, value)| {
                Ok((key.clone(), string(value, "AdmissionResponse.response.auditAnnotations")?))
            })
            .collect::<Result<_, _>>()?,
        Some(other) => {
            return Err(mistyped(other, "AdmissionResponse.response.auditAnnotations", "map[string]string"));
        }
    };
    let patch = text(response, "patch", "[]uint8")?.map(decode_base64).transpose()?.unwrap_or_default();
    let patch_type = text(response, "patchType", "v1.PatchType")?.map(ToOwned::to_owned);
    Ok(Verdict { allowed, status, warnings, annotations, patch, patch_type })
}

fn text<'a>(response: &'a Map<String, Value>, field: &str, of: &str) -> Result<Option<&'a str>, BadAnswer> {
    match response.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mistyped(other, &format!("AdmissionResponse.response.{field}"), of)),
    }
}

fn string(value: &Value, place: &str) -> Result<String, BadAnswer> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => Err(mistyped(other, place, "string")),
    }
}

fn mistyped(value: &Value, place: &str, of: &str) -> BadAnswer {
    let found = json_type(value);
    BadAnswer::Undecodable(format!(
        "json: cannot unmarshal {found} into Go struct field {place} of type {of}"
    ))
}

fn decode_base64(text: &str) -> Result<Vec<u8>, BadAnswer> {
    // Line breaks inside are allowed.
    let text: Cow<'_, str> =
        if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], "").into() } else { text.into() };
    STANDARD.decode(text.as_bytes()).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len(),
        };
        BadAnswer::Undecodable(format!("illegal base64 data at input byte {at}"))
    })
}

/// The refusal that a client sees when a webhook says no.
pub(super) fn refusal(hook: &str, status: Option<&Map<String, Value>>) -> ApiError {
    let denied = format!("admission webhook {} denied the request", go_quote(hook));
    let text =
        |field: &str| status.and_then(|status| status.get(field)).and_then(Value::as_str).unwrap_or_default();
    let (given, reason) = (text("message"), text("reason"));
    let message = match (given, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = status.and_then(|status| status.get("code")).and_then(Value::as_i64).unwrap_or_default();
    let code = match code {
        ..400 => 400,
        // HTTP has no such code; kube-apiserver fails while answering.
        1000.. => 500,
        code => u16::try_from(code).unwrap_or(500),
    };
    let details =
        status.and_then(|status| status.get("details")).and_then(Value::as_object).map(known_details);
    ApiError { code, reason: reason.to_owned().into(), message, details: details.map(Box::new), token: None }
}

/// The details of a `Status` without fields that it does not have.
fn known_details(given: &Map<String, Value>) -> Map<String, Value> {
    let keep = |from: &Map<String, Value>, fields: &[&str]| -> Map<String, Value> {
        let known = fields.iter().filter_map(|field| Some(((*field).to_owned(), from.get(*field)?.clone())));
        known.filter(|(_, value)| !value.is_null() && *value != "").collect()
    };
    let mut details = keep(given, &["name", "group", "kind", "uid", "retryAfterSeconds"]);
    if let Some(causes) = given.get("causes").and_then(Value::as_array).filter(|causes| !causes.is_empty()) {
        let causes = causes.iter().filter_map(Value::as_object);
        let causes = causes.map(|cause| Value::Object(keep(cause, &["reason", "message", "field"])));
        details.insert("causes".into(), causes.collect());
    }
    details
}
