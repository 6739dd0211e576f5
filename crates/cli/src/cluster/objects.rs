//! Objects of any kind, as plain JSON.

use http::Request;
use kube::{Client, Error};
use serde_json::Value;

const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Objects of one page. Small enough for any server, large enough to need one for most namespaces.
const PAGE: usize = 500;

fn request(path: &str, accept: &str) -> Result<Request<Vec<u8>>, Error> {
    Request::get(path).header("accept", accept).body(Vec::new()).map_err(Error::HttpError)
}

/// What is at a path; `None` if nothing is.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Option<Value>, Error> {
    match client.request(request(path, "application/json")?).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
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

/// As a query's value. A token is text in base64.
fn encoded(token: &str) -> String {
    token.replace('%', "%25").replace('+', "%2B").replace('=', "%3D").replace('&', "%26")
}
