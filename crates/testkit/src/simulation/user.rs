//! The user of a world, who follows the script.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full};
use mainstay::{Kind, Scope};
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::script::{Action, Step, namespace_of};
use super::trace::Actor;
use super::wire::Wire;

/// How often the user looks whether a new kind is served.
const GLANCE: Duration = Duration::from_millis(10);
/// And how often at most.
const GLANCES_MAX: usize = 1000;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// See the [module](self).
pub(super) struct User {
    wires: BTreeMap<String, Wire>,
    servers: BTreeMap<String, ApiServer>,
}

impl User {
    pub(super) fn new(wires: BTreeMap<String, Wire>, servers: &BTreeMap<String, ApiServer>) -> Self {
        Self { wires, servers: servers.clone() }
    }

    pub(super) fn actor(&self) -> &Actor {
        // Every world has at least one cluster.
        let wire = self.wires.values().next().unwrap_or_else(|| unreachable!("a world without clusters"));
        &wire.life.actor
    }

    /// Makes what is there before anything starts. A definition is waited for.
    pub(super) async fn give(&self, cluster: &str, object: &Value) -> Result<(), String> {
        self.create(cluster, object).await?;
        if object["kind"] != "CustomResourceDefinition" {
            return Ok(());
        }
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (group, version) = (text("/spec/group"), text("/spec/versions/0/name"));
        let list = format!("/apis/{group}/{version}/{}", text("/spec/names/plural"));
        for _ in 0..GLANCES_MAX {
            if self.look(cluster, &list).await.0.is_success() {
                return Ok(());
            }
            sleep(GLANCE).await;
        }
        Err(format!("{} is never served", text("/metadata/name")))
    }

    /// Takes a step of the script.
    pub(super) async fn act(&self, step: &Step) -> Result<(), String> {
        let merge = "application/merge-patch+json";
        match &step.action {
            Action::Create(object) if object["kind"] == "CustomResourceDefinition" => {
                self.give(&step.cluster, object).await
            }
            Action::Create(object) => self.create(&step.cluster, object).await,
            Action::Patch { kind, key, patch } => {
                self.send(&step.cluster, Method::PATCH, &kind.object_path(key), merge, patch).await
            }
            Action::PatchStatus { kind, key, patch } => {
                let path = format!("{}/status", kind.object_path(key));
                self.send(&step.cluster, Method::PATCH, &path, merge, patch).await
            }
            Action::Delete { kind, key } => {
                let path = kind.object_path(key);
                // As kubectl deletes: without this, a Job would leave its pods behind.
                let body = json!({"propagationPolicy": "Background"});
                self.send(&step.cluster, Method::DELETE, &path, "application/json", &body).await
            }
            Action::Wait(_) => Ok(()),
        }
    }

    async fn create(&self, cluster: &str, object: &Value) -> Result<(), String> {
        let kind = self.kind_of(cluster, object).await?;
        let namespace = (kind.scope() == Scope::Namespaced).then(|| namespace_of(object));
        let path = kind.collection_path(namespace);
        self.send(cluster, Method::POST, &path, "application/json", object).await
    }

    async fn kind_of(&self, cluster: &str, object: &Value) -> Result<Kind, String> {
        let text = |field: &str| object[field].as_str().ok_or(format!("the object has no {field}"));
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        if kind == "CustomResourceDefinition" {
            let plural = DEFINITIONS.rsplit('/').next().unwrap_or_default();
            return Ok(Kind::new(api_version, kind, plural, Scope::Cluster));
        }
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let (_, resources) = self.look(cluster, &format!("/{root}/{api_version}")).await;
        let is_it = |resource: &&Value| {
            resource["kind"] == kind && !resource["name"].as_str().unwrap_or_default().contains('/')
        };
        let found = resources["resources"].as_array().and_then(|list| list.iter().find(is_it));
        let found = found.ok_or_else(|| format!("the server has no {kind} in {api_version}"))?;
        let scope = if found["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster };
        Ok(Kind::new(api_version, kind, found["name"].as_str().unwrap_or_default(), scope))
    }

    /// Asks a server something by the way, which is no event in the world.
    async fn look(&self, cluster: &str, path: &str) -> (StatusCode, Value) {
        let Some(server) = self.servers.get(cluster) else { return (StatusCode::NOT_FOUND, Value::Null) };
        let mut request = Request::new(Full::<bytes::Bytes>::default());
        *request.uri_mut() = path.parse().unwrap_or_default();
        let answer = server.handle(request).await;
        let status = answer.status();
        let body = answer.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn send(
        &self,
        cluster: &str,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<(), String> {
        let wire = self.wires.get(cluster).ok_or_else(|| format!("the world has no cluster {cluster}"))?;
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        let request = request.body(kube::client::Body::from(body)).map_err(|error| error.to_string())?;
        let answer = wire.clone().send(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let body = answer.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
        let told: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Err(format!("{status}: {}", told["message"].as_str().unwrap_or_default()))
    }
}
