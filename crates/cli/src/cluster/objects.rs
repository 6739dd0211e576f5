//! Objects of any kind, as plain JSON.

use crate::failure::Failure;
use http::Request;
use kube::core::Status;
use kube::{Client, Error};
use mainstay::{Key, Kind};
use serde_json::Value;
use std::fmt::Write as _;

const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Objects of one page. Small enough for any server, large enough to need one for most namespaces.
const PAGE: usize = 500;

fn request(path: &str, accept: &str) -> Result<Request<Vec<u8>>, Error> {
    Request::get(path).header("accept", accept).body(Vec::new()).map_err(Error::HttpError)
}

/// The object at a path; `None` if it is not there. That its kind is not there is an error.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Option<Value>, Error> {
    match client.request(request(path, "application/json")?).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::Api(status)) if status.code == 404 && is_about_an_object(&status) => Ok(None),
        Err(error) => Err(error),
    }
}

/// That there is no such object.
pub(crate) fn missing(kind: &Kind, key: &Key) -> Failure {
    let place = key.namespace().map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
    let all = if key.namespace().is_some() { " -A" } else { "" };
    Failure::new(anyhow::anyhow!("there is no {} {}{place}", kind.kind(), key.name()))
        .next(format!("mainstay status {}{all} shows those that there are", kind.plural()))
}

/// Whether a refusal names an object: then the kind is there.
fn is_about_an_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// Applies an object as this manager.
pub(crate) async fn apply(
    client: &Client,
    path: &str,
    object: &Value,
    manager: &str,
) -> Result<Value, Error> {
    let request = Request::patch(format!("{path}?fieldManager={manager}&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(object.to_string().into_bytes());
    client.request(request.map_err(Error::HttpError)?).await
}

/// Merges fields into an object, as this manager.
pub(crate) async fn merge(
    client: &Client,
    path: &str,
    fields: &Value,
    manager: &str,
) -> Result<Value, Error> {
    let request = Request::patch(format!("{path}?fieldManager={manager}"))
        .header("content-type", "application/merge-patch+json")
        .body(fields.to_string().into_bytes());
    client.request(request.map_err(Error::HttpError)?).await
}

/// The path with a selector of labels, if there is one.
pub(crate) fn selected(path: &str, labels: Option<&str>) -> String {
    match labels {
        Some(labels) => format!("{path}?labelSelector={}", encoded(labels)),
        None => path.to_owned(),
    }
}

/// All objects of a collection.
pub(crate) async fn list(client: &Client, path: &str) -> Result<Vec<Value>, Error> {
    list_as(client, path, "application/json").await
}

/// The same without what is in them but their metadata. Nobody has to see Secrets in order to know whose they are.
pub(crate) async fn list_metadata(client: &Client, path: &str) -> Result<Vec<Value>, Error> {
    list_as(client, path, METADATA).await
}

async fn list_as(client: &Client, path: &str, accept: &str) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    let mut from = String::new();
    loop {
        let (mark, encoded) = (if path.contains('?') { '&' } else { '?' }, encoded(&from));
        let page = format!("{path}{mark}limit={PAGE}&continue={encoded}");
        let mut answer: Value = client.request(request(&page, accept)?).await?;
        let (kind, version) = (answer["kind"].take(), answer["apiVersion"].take());
        for mut item in answer["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            // The items of a list do not say what they are.
            if item.get("kind").is_none()
                && let (Some(kind), Some(version)) =
                    (kind.as_str().and_then(|kind| kind.strip_suffix("List")), version.as_str())
            {
                item["kind"] = kind.into();
                item["apiVersion"] = version.into();
            }
            found.push(item);
        }
        match answer.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(more) if !more.is_empty() => more.clone_into(&mut from),
            _ => return Ok(found),
        }
    }
}

/// As a query's value.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_survives_the_way() {
        let path = selected("/api/v1/pods", Some("team in (a, b),!old"));
        assert_eq!(path, "/api/v1/pods?labelSelector=team%20in%20%28a%2C%20b%29%2C%21old");
        assert_eq!(selected("/api/v1/pods", None), "/api/v1/pods");
    }
}
