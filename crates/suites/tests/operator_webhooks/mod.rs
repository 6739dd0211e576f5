//! Webhooks that an operator serves by itself, on both clusters: the API server calls them at a URL on loopback, with the
//! certificate that they made and the configuration that they registered.

mod admission;
mod conversion;
mod operator;
mod permissions;
mod registration;
mod rotation;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use mainstay::Key;
use mainstay::webhook::{Hook, Serving, WebhookState, Webhooks};
use mainstay_testkit::{Cluster, eventually};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Webhooks that are being served. Their configurations go with [`end`](Self::end).
struct Running {
    state: watch::Receiver<WebhookState>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(cluster: &Cluster, webhooks: Webhooks, serving: Serving) -> Self {
        Self::with(cluster.client(), webhooks, serving).await
    }

    /// With a client of one's own.
    async fn with(client: kube::Client, webhooks: Webhooks, serving: Serving) -> Self {
        let server = webhooks.serve(client, serving).await.unwrap();
        let state = server.state();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { state, stop, task }
    }

    /// Waits until everything is registered.
    async fn ready(&mut self) {
        let ready = tokio::time::timeout(
            std::time::Duration::from_mins(1),
            self.state.wait_for(WebhookState::is_ready),
        );
        ready.await.expect("the webhooks become ready").unwrap();
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

/// Removes what the webhooks of a test registered.
async fn clear(cluster: &Cluster) {
    for path in configurations(cluster) {
        let request = http::Request::delete(path).body(Vec::new()).unwrap();
        cluster.send(request).await;
    }
}

/// Where the configurations of a test are: its webhooks are named after its namespace.
fn configurations(cluster: &Cluster) -> [String; 2] {
    ["validating", "mutating"].map(|role| {
        let name = cluster.namespace();
        format!("/apis/admissionregistration.k8s.io/v1/{role}webhookconfigurations/{name}")
    })
}

/// A hook that leaves the namespaces of other tests alone.
fn here(cluster: &Cluster, hook: Hook) -> Hook {
    let label = ("kubernetes.io/metadata.name".to_owned(), cluster.namespace().to_owned());
    hook.in_namespaces(LabelSelector { match_labels: Some([label].into()), ..LabelSelector::default() })
}

fn secret(cluster: &Cluster) -> Key {
    Key::namespaced(cluster.namespace(), "certificate")
}

fn maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// Waits until a config map with the value `probe` is refused: the API server has seen the configuration.
async fn in_force(cluster: &Cluster) {
    let api = maps(cluster);
    eventually("the webhooks are in force", async || {
        api.create(&dry_run(), &map("probe", "probe")).await.err().map(drop)
    })
    .await;
}

/// The refusal in an answer: code, reason and message.
fn refusal<T: std::fmt::Debug>(answer: kube::Result<T>) -> (u16, String, String) {
    match answer {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

/// A stored object as JSON.
async fn read(cluster: &Cluster, path: &str) -> Value {
    let (status, object) = cluster.get(path).await;
    assert!(status.is_success(), "{path}: {status} {object}");
    object
}

/// Deletes a map of the test.
async fn delete(cluster: &Cluster, name: &str) {
    maps(cluster).delete(name, &DeleteParams::default()).await.unwrap();
}
