//! One request, whatever it asks for, leaves the server alive: it runs in a process with little memory, and answers afterwards.

mod bodies;
mod objects;
mod patches;
mod rules;

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::durability::child::Child;
use crate::durability::client::Client;

/// What the server may take up, in megabytes. Its program and the stacks of its threads count too.
const MEMORY_MAX_MB: u32 = 1200;

const WIDES: &str = "/apis/limits.test/v1/namespaces/default/wides";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const JSON_PATCH: &str = "application/json-patch+json";

/// A server that has one custom kind, `Wide`.
struct Limited {
    child: Child,
    client: Client,
    _directory: TempDir,
}

impl Limited {
    async fn start() -> Limited {
        let directory = TempDir::new().expect("a directory");
        let child = Child::start_within(directory.path(), MEMORY_MAX_MB).expect("a server");
        let client = child.client();
        let server = Limited { child, client, _directory: directory };
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, answer) = server.client.send("POST", crds, Some(&definition())).await.expect("an answer");
        assert_eq!(code, 201, "{answer}");
        for _ in 0..1200 {
            if server.client.send("GET", WIDES, None).await.is_ok_and(|(code, _)| code == 200) {
                return server;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the kind is not served");
    }

    /// The answer, after which the server still answers.
    async fn ask(&mut self, method: &str, path: &str, form: &str, body: impl Into<Bytes>) -> (u16, Value) {
        let answer = self.client.send_as(method, path, form, body).await;
        let alive = self.client.send("GET", "/api/v1/namespaces/default", None).await;
        assert!(
            alive.is_ok_and(|(code, _)| code == 200) && self.child.is_alive(),
            "{answer:?} was the last one"
        );
        answer.expect("a whole answer")
    }

    /// A list as a table.
    async fn table(&mut self, path: &str) -> (u16, Value) {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let answer = self.client.accepting(accept).send("GET", path, None).await;
        assert!(self.child.is_alive(), "{answer:?} was the last one");
        answer.expect("a whole answer")
    }

    /// The same for JSON that is refused: the code, and the beginning of the message.
    async fn refused(
        &mut self,
        method: &str,
        path: &str,
        form: &str,
        body: impl Into<Bytes>,
    ) -> (u16, String) {
        let (code, status) = self.ask(method, path, form, body).await;
        assert_eq!(status["kind"], "Status", "{code}");
        (code, status["message"].as_str().unwrap_or_default().chars().take(200).collect())
    }
}

fn definition() -> Value {
    let row = json!({"type": "object", "properties": {"a": {"type": "string", "default": "x".repeat(3000)}}});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "rows": {"type": "array", "items": row},
        "maps": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "colours": {"type": "array", "x-kubernetes-list-type": "set", "items": {
                "type": "string", "enum": (0..2000).map(|at| format!("colour-{at}")).collect::<Vec<_>>()
            }},
        }}},
    }});
    let columns: Vec<Value> = (0..5000)
        .map(|at| json!({"name": format!("c{at}"), "type": "string", "jsonPath": if at == 0 { "..a..a..a..a..a..a..a..a" } else { ".spec" }}))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "wides.limits.test"},
        "spec": {
            "group": "limits.test", "scope": "Namespaced", "names": {"plural": "wides", "kind": "Wide"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn wide(name: &str, fields: Value) -> Value {
    let mut object = json!({"apiVersion": "limits.test/v1", "kind": "Wide", "metadata": {"name": name}});
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}
