//! Conversion between the versions of a kind: a review's text in, its answer's text out.
//!
//! - Converted objects come in the order in which they were sent, each in the version that was asked for.
//! - Nothing of an object's identity changes: `kind` and all of `metadata` but labels and annotations are as they were, or
//!   the conversion fails. `managedFields` are kept aside; a function never sees them.
//! - If one object cannot be converted, none is, and the message names it. There is no other way to say so to the API
//!   server.
//!
//! A conversion is a plain function without I/O: the API server calls it on reads and writes, lists of a whole kind at a
//! time, and every client waits for it.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::admission::{Reply, chain};

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// Why an object cannot be had in another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConvertError(String);

impl ConvertError {
    /// In one's own words.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Because of an error, which is told with all its sources.
    pub fn because(error: &dyn Error) -> Self {
        Self(chain(error))
    }
}

impl From<&str> for ConvertError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<serde_json::Error> for ConvertError {
    fn from(error: serde_json::Error) -> Self {
        Self::because(&error)
    }
}

/// A function from an object and a version without group to the object in that version.
pub(super) type ConvertFn = Arc<dyn Fn(Value, &str) -> Result<Value, ConvertError> + Send + Sync>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Option<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(default)]
    objects: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: Answer<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    uid: &'a str,
    result: Outcome<'a>,
    converted_objects: Vec<Value>,
}

#[derive(Serialize)]
struct Outcome<'a> {
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
}

/// Answers a review.
pub(super) fn review(convert: &ConvertFn, body: &[u8]) -> Reply {
    let review: Review = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => return Reply::text(400, format!("this is no ConversionReview: {error}")),
    };
    if review.api_version != API_VERSION || review.kind != "ConversionReview" {
        let Review { api_version, kind, .. } = review;
        return Reply::text(
            400,
            format!("expected ConversionReview of {API_VERSION}, got {kind} of {api_version}"),
        );
    }
    let Some(Asked { uid, desired_api_version, objects }) = review.request else {
        return Reply::text(400, "the ConversionReview holds no request");
    };
    let converted: Result<Vec<_>, _> =
        objects.into_iter().map(|object| convert_object(convert, object, &desired_api_version)).collect();
    let (message, converted_objects) = match converted {
        Ok(objects) => (String::new(), objects),
        Err(message) => (message, Vec::new()),
    };
    let status = if message.is_empty() { "Success" } else { "Failure" };
    let result = Outcome { status, message: &message };
    let response = Answer { uid: &uid, result, converted_objects };
    Reply::json(&Answered { api_version: API_VERSION, kind: "ConversionReview", response })
}

/// The object in the version, or a message that names the object.
fn convert_object(convert: &ConvertFn, mut object: Value, api_version: &str) -> Result<Value, String> {
    let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    if from == api_version {
        return Ok(object);
    }
    let called = describe(&object);
    let failed = |why: &str| format!("cannot convert {called} from {from} to {api_version}: {why}");
    let kind = object["kind"].clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return Err(failed("it has no metadata")) };
    let managed_fields = metadata.remove("managedFields");
    let identity = identity(metadata);
    let version = api_version.rsplit_once('/').map_or(api_version, |(_, version)| version);
    let converted = catch_unwind(AssertUnwindSafe(|| convert(object, version)))
        .map_err(|_| failed("the conversion panicked; the operator's log tells more"))?;
    let mut converted = converted.map_err(|error| failed(&error.to_string()))?;
    if converted["kind"] != kind {
        return Err(failed("the conversion changed kind"));
    }
    let Some(metadata) = converted.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Err(failed("the conversion dropped metadata"));
    };
    if let Some(field) = first_difference(&identity, metadata) {
        return Err(failed(&format!("the conversion changed metadata.{field}")));
    }
    if let Some(managed_fields) = managed_fields {
        metadata.insert("managedFields".to_owned(), managed_fields);
    }
    converted["apiVersion"] = Value::from(api_version);
    Ok(converted)
}

fn describe(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

fn may_change(field: &str) -> bool {
    matches!(field, "labels" | "annotations")
}

/// What of an object's metadata must stay.
fn identity(metadata: &Map<String, Value>) -> Map<String, Value> {
    let fixed = metadata.iter().filter(|(field, _)| !may_change(field));
    fixed.map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// The first field that is not as it was. Null is as good as nothing.
fn first_difference<'a>(identity: &'a Map<String, Value>, now: &'a Map<String, Value>) -> Option<&'a str> {
    let value =
        |metadata: &'a Map<String, Value>, field| metadata.get(field).filter(|value| !value.is_null());
    let mut fields = identity.keys().chain(now.keys()).filter(|field| !may_change(field));
    fields.find(|field| value(identity, *field) != value(now, *field)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(
        convert: impl Fn(Value, &str) -> Result<Value, ConvertError> + Send + Sync + 'static,
        objects: &Value,
    ) -> Value {
        let review = json!({
            "apiVersion": API_VERSION, "kind": "ConversionReview",
            "request": {"uid": "u1", "desiredAPIVersion": "example.com/v2", "objects": objects},
        });
        let reply = review_text(convert, &review.to_string());
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        let mut answer: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(answer["response"]["uid"], "u1");
        answer["response"].take()
    }

    fn review_text(
        convert: impl Fn(Value, &str) -> Result<Value, ConvertError> + Send + Sync + 'static,
        text: &str,
    ) -> Reply {
        let convert: ConvertFn = Arc::new(convert);
        review(&convert, text.as_bytes())
    }

    fn object(name: &str) -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "WebApp",
            "metadata": {"name": name, "namespace": "shop", "uid": "1", "managedFields": [{"manager": "m"}]},
            "spec": {"size": 1},
        })
    }

    fn to_replicas(mut object: Value, version: &str) -> Result<Value, ConvertError> {
        assert_eq!(version, "v2");
        assert_eq!(object["metadata"].get("managedFields"), None);
        let size = object["spec"]["size"].take();
        if size == 0 {
            return Err("size is zero".into());
        }
        object["spec"] = json!({"replicas": size});
        object["metadata"]["annotations"] = json!({"was": "size"});
        Ok(object)
    }

    #[test]
    fn objects_are_converted_in_order_and_keep_what_is_theirs() {
        let mut current = object("c");
        current["apiVersion"] = json!("example.com/v2");
        let response = check(to_replicas, &json!([object("b"), current, object("a")]));
        assert_eq!(response["result"], json!({"status": "Success"}));
        let converted = response["convertedObjects"].as_array().unwrap();
        let names: Vec<_> = converted.iter().map(|object| object["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["b", "c", "a"]);
        assert_eq!(
            converted[0],
            json!({
                "apiVersion": "example.com/v2", "kind": "WebApp",
                "metadata": {
                    "name": "b", "namespace": "shop", "uid": "1", "managedFields": [{"manager": "m"}],
                    "annotations": {"was": "size"},
                },
                "spec": {"replicas": 1},
            })
        );
        // What has the version already is not touched.
        assert_eq!(converted[1]["spec"], json!({"size": 1}));
    }

    #[test]
    fn one_object_that_fails_is_named_and_nothing_is_converted() {
        let mut bad = object("bad");
        bad["spec"]["size"] = json!(0);
        let response = check(to_replicas, &json!([object("a"), bad]));
        assert_eq!(
            response,
            json!({
                "uid": "u1", "convertedObjects": [],
                "result": {
                    "status": "Failure",
                    "message": "cannot convert WebApp shop/bad from example.com/v1 to example.com/v2: size is zero",
                },
            })
        );
    }

    #[test]
    fn identity_cannot_be_changed() {
        for (field, value) in
            [("uid", json!("2")), ("name", Value::Null), ("finalizers", json!(["example.com/x"]))]
        {
            let response = check(
                move |mut object, _| {
                    object["metadata"][field] = value.clone();
                    Ok(object)
                },
                &json!([object("a")]),
            );
            let message = response["result"]["message"].as_str().unwrap();
            assert!(message.ends_with(&format!("the conversion changed metadata.{field}")), "{message}");
        }
        let response = check(|_, _| Ok(json!({"kind": "WebApp"})), &json!([object("a")]));
        let message = response["result"]["message"].as_str().unwrap();
        assert!(message.ends_with("the conversion dropped metadata"), "{message}");
    }

    #[test]
    fn a_panic_fails_that_review() {
        let response = check(|_, _| panic!("oh"), &json!([object("a")]));
        let message = response["result"]["message"].as_str().unwrap();
        assert!(message.contains("WebApp shop/a") && message.contains("panicked"), "{message}");
    }

    #[test]
    fn what_is_no_review_is_refused() {
        assert_eq!(review_text(|object, _| Ok(object), "{}").status, 400);
        let other = json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview"});
        assert_eq!(review_text(|object, _| Ok(object), &other.to_string()).status, 400);
    }
}
