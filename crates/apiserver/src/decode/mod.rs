//! Request bodies: bytes to JSON trees, and what is said about those that cannot be read.
//!
//! Codes and sentences are those of kube-apiserver. JSON is read as Go reads it (invalid UTF-8 and lone
//! surrogates become U+FFFD, the last of repeated fields wins), YAML as version 1.1 with its many
//! booleans. Trees deeper than [`MAX_DEPTH`] are refused, so that nothing that walks a tree can exhaust
//! the stack.

mod json;
mod order;
mod scan;
mod yaml;

#[cfg(test)]
mod tests;

pub(crate) use order::in_document_order;

use crate::field::go_quote;
use crate::gotext::json_type;
use crate::status::ApiError;
use serde_json::Value;
use std::fmt::Write as _;

/// How deep objects may be nested.
pub(crate) use crate::bounds::BODY_DEPTH_MAX as MAX_DEPTH;

/// A form of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

/// A body that was read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    pub value: Value,
    /// What `fieldValidation=Strict` refuses the body for: fields that stand twice.
    pub strict_errors: Vec<String>,
    /// The same as `Warn` puts it.
    pub warnings: Vec<String>,
}

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is not JSON or YAML.
    Syntax(String),
    /// It holds something that no tree can hold, such as a number beyond all bounds.
    Value(String),
}

/// The kind a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    /// Whether `apiVersion` and `kind` may be left out, as built-in kinds allow.
    pub implied: bool,
}

impl Wanted<'_> {
    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Reads any body.
pub(crate) fn parse(body: &[u8], encoding: Encoding) -> Result<Decoded, Unreadable> {
    match encoding {
        Encoding::Json => json::parse(body),
        Encoding::Yaml => yaml::parse(body),
    }
}

/// Reads the body of a write, checking that it is an object of the wanted group and version; those and
/// the kind are filled in where they may be left out. Another *kind* is let through for custom kinds,
/// which refuse it when they validate the object.
pub(crate) fn decode_object(
    body: &[u8],
    encoding: Encoding,
    wanted: &Wanted<'_>,
) -> Result<Decoded, ApiError> {
    let mut decoded = parse(body, encoding).map_err(|error| match error {
        Unreadable::Syntax(text) => unrecognized(wanted.kind, &text, body),
        Unreadable::Value(text) => cannot_handle(wanted.kind, wanted.version, wanted.kind, &text),
    })?;
    let (api_version, kind) =
        identity(&decoded.value).map_err(|text| unrecognized(wanted.kind, &text, body))?;
    let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
    if api_version.matches('/').count() > 1 {
        let text = format!("unexpected GroupVersion string: {api_version}");
        return Err(unrecognized(wanted.kind, &text, body));
    }
    if wanted.implied {
        fill_in(&mut decoded.value, &api_version, &kind, wanted)?;
    } else if kind.is_empty() {
        let shown = String::from_utf8_lossy(body);
        return Err(unrecognized(wanted.kind, &format!("Object 'Kind' is missing in '{shown}'"), body));
    } else if api_version != wanted.api_version() {
        let expected = wanted.api_version();
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(decoded)
}

/// `apiVersion` and `kind`, empty where absent.
fn identity(value: &Value) -> Result<(&str, &str), String> {
    const TYPE: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal";
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok(("", "")),
        other => return Err(format!("{prefix} {} into Go value of type {TYPE}", json_type(other))),
    };
    let text = |name: &str| match map.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            Err(format!("{prefix} {} into Go struct field .{name} of type string", json_type(other)))
        }
    };
    Ok((text("apiVersion")?, text("kind")?))
}

fn fill_in(value: &mut Value, api_version: &str, kind: &str, wanted: &Wanted<'_>) -> Result<(), ApiError> {
    let expected = wanted.api_version();
    let given_version = if api_version.is_empty() { &expected } else { api_version };
    let given_kind = if kind.is_empty() { wanted.kind } else { kind };
    if given_version != expected || given_kind != wanted.kind {
        let version = given_version.rsplit('/').next().unwrap_or_default();
        let text = format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(given_kind),
            go_quote(given_version)
        );
        return Err(cannot_handle(given_kind, version, wanted.kind, &text));
    }
    if value.is_null() {
        *value = Value::Object(serde_json::Map::new());
    }
    value["apiVersion"] = expected.into();
    value["kind"] = wanted.kind.into();
    Ok(())
}

/// 400: a body of which not even the kind could be read.
pub(crate) fn unrecognized(wanted_kind: &str, why: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {wanted_kind}): {why} ({})",
        summary(body)
    ))
}

/// 400: an object of a known kind that does not fit it.
pub(crate) fn cannot_handle(kind: &str, version: &str, wanted_kind: &str, why: &str) -> ApiError {
    let version = go_quote(version);
    ApiError::bad_request(format!("{kind} in version {version} cannot be handled as a {wanted_kind}: {why}"))
}

/// `unknown field "spec.x"`. The path is not escaped.
pub(crate) fn unknown_field(path: &str) -> String {
    format!("unknown field \"{path}\"")
}

/// The beginning of a body: as it is if it looks like an object, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (head, more) = if body.len() > SHOWN { (&body[..SHOWN], " ...") } else { (body, "") };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => {
            let mut hex = String::new();
            for byte in head {
                // Writing to a String cannot fail.
                let _ = write!(hex, "{byte:02x}");
            }
            hex + more
        }
    }
}
