//! `AdmissionReview` as it travels. Objects stay text until a handler's type is known.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Denied, Operation};

/// The only version there is.
pub(super) const API_VERSION: &str = "admission.k8s.io/v1";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review<'a> {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(borrow)]
    pub(super) request: Option<Asked<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked<'a> {
    pub(super) uid: String,
    pub(super) kind: AskedKind,
    pub(super) sub_resource: Option<String>,
    #[serde(default)]
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) operation: Operation,
    #[serde(default)]
    pub(super) user_info: UserInfo,
    #[serde(borrow)]
    pub(super) object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) old_object: Option<&'a RawValue>,
    pub(super) dry_run: Option<bool>,
    #[serde(borrow)]
    pub(super) options: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AskedKind {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) response: Answer<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    pub(super) uid: &'a str,
    pub(super) allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch_type: Option<&'static str>,
    /// JSON Patch in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) audit_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Failure<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
}

#[derive(Debug, Serialize)]
struct Details<'a> {
    name: &'a str,
    group: &'a str,
    kind: &'a str,
    causes: Vec<Cause<'a>>,
}

#[derive(Debug, Serialize)]
struct Cause<'a> {
    reason: &'static str,
    field: &'a str,
    message: &'a str,
}

impl<'a> Failure<'a> {
    pub(super) fn of(denied: &'a Denied, asked: &'a Asked<'_>) -> Self {
        let causes = denied.causes().iter().map(|cause| Cause {
            reason: "FieldValueInvalid",
            field: &cause.field,
            message: &cause.message,
        });
        let causes: Vec<_> = causes.collect();
        let details = (!causes.is_empty()).then(|| Details {
            name: &asked.name,
            group: &asked.kind.group,
            kind: &asked.kind.kind,
            causes,
        });
        Self {
            status: "Failure",
            code: denied.status_code(),
            reason: denied.reason(),
            message: denied.to_string(),
            details,
        }
    }
}
