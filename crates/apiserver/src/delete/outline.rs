//! Objects that cannot be read whole, because a former version stored them deeper than this one reads. Their metadata can
//! be read, and is enough to decide whether anything holds them.

use crate::store::{Object, Unreadable};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The metadata of a stored object, but for its `managedFields`, which are as deep as the object. Nothing else is read.
pub(crate) fn outline(object: &Object) -> Result<Value, Unreadable> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        metadata: BTreeMap<String, Box<RawValue>>,
    }
    let head: Head = object.read()?;
    let mut metadata = Map::new();
    for (name, text) in head.metadata.into_iter().filter(|(name, _)| name != "managedFields") {
        let value = serde_json::from_str(text.get()).map_err(|error| object.unreadable(error))?;
        metadata.insert(name, value);
    }
    Ok(json!({"metadata": metadata}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;
    use crate::store::Key;
    use http::{Request, StatusCode};
    use std::time::Duration;

    const REVISIONS: &str = "/apis/apps/v1/namespaces";

    async fn ask(server: &ApiServer, method: &str, path: &str) -> StatusCode {
        let body = http_body_util::Full::new(bytes::Bytes::new());
        let request = Request::builder().method(method).uri(path).body(body).unwrap();
        server.handle(request).await.status()
    }

    /// Puts an object into the store that is nested too deeply to be read.
    fn plant(server: &ApiServer, namespace: &str, name: &str, more: &Value) {
        let store = &server.server.store;
        let kind = server.server.registry.find("apps", "v1", "controllerrevisions").unwrap();
        let mut metadata = json!({"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let deep = "[".repeat(300) + &"]".repeat(300);
        let managers = format!(r#"[{{"fieldsV1":{deep}}}]"#);
        let metadata = metadata.to_string();
        let metadata = metadata.strip_suffix('}').unwrap();
        let text =
            format!(r#"{{"data":{deep},"metadata":{metadata},"managedFields":{managers}}},"revision":1}}"#);
        let object = Object::new(Key::new(namespace, name), 1, text.into());
        assert!(object.value().is_err());
        store.plant(&kind.collection, object);
    }

    async fn wait_until(server: &ApiServer, path: &str, status: StatusCode) {
        let found = async {
            while ask(server, "GET", path).await != status {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), found).await.unwrap_or_else(|_| panic!("{path}"));
    }

    #[tokio::test]
    async fn unreadable_objects_go_unless_they_have_finalizers() {
        let server = ApiServer::builder().build().unwrap();
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}]);
        plant(&server, "default", "free", &json!({}));
        plant(&server, "default", "held", &json!({"finalizers": ["a/b"]}));
        plant(&server, "default", "owned", &json!({"ownerReferences": owner}));
        plant(&server, "default", "owned-held", &json!({"ownerReferences": owner, "finalizers": ["a/b"]}));
        let path = |name: &str| format!("{REVISIONS}/default/controllerrevisions/{name}");
        // Garbage collection takes the one, and leaves the other.
        wait_until(&server, &path("owned"), StatusCode::NOT_FOUND).await;
        assert_eq!(ask(&server, "GET", &path("owned-held")).await, 200);
        assert_eq!(ask(&server, "DELETE", &path("free")).await, 200);
        assert_eq!(ask(&server, "GET", &path("free")).await, 404);
        for held in ["held", "owned-held"] {
            assert_eq!(ask(&server, "DELETE", &path(held)).await, 500);
            assert_eq!(ask(&server, "GET", &path(held)).await, 200);
        }
    }

    #[tokio::test]
    async fn a_namespace_with_an_unreadable_object_ends() {
        let server = ApiServer::builder().build().unwrap();
        let body = http_body_util::Full::new(bytes::Bytes::from(r#"{"metadata":{"name":"n"}}"#));
        let request = Request::post("/api/v1/namespaces").header("content-type", "application/json");
        assert_eq!(server.handle(request.body(body).unwrap()).await.status(), 201);
        plant(&server, "n", "deep", &json!({}));
        assert_eq!(ask(&server, "DELETE", "/api/v1/namespaces/n").await, 200);
        wait_until(&server, "/api/v1/namespaces/n", StatusCode::NOT_FOUND).await;
    }
}
