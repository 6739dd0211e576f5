//! In which order pods come, become ready and go, as a watch tells it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, WatchEvent, WatchParams};
use tokio::task::JoinHandle;

/// A watch on the pods of a namespace, from its beginning.
pub(crate) struct Order {
    told: Arc<Mutex<Vec<String>>>,
    watch: JoinHandle<()>,
}

impl Order {
    pub(crate) async fn watch(client: kube::Client, namespace: &str) -> Self {
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let told = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&told);
        let mut events = Box::pin(pods.watch(&WatchParams::default().timeout(290), "0").await.unwrap());
        let watch = tokio::spawn(async move {
            let mut known: BTreeMap<String, &'static str> = BTreeMap::new();
            while let Some(Ok(event)) = events.next().await {
                let (pod, state) = match &event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, state_of(pod)),
                    WatchEvent::Deleted(pod) => (pod, "gone"),
                    _ => continue,
                };
                if known.insert(pod.uid().unwrap_or_default(), state) != Some(state) {
                    let line = format!("{} {state}", name_of(pod));
                    into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                }
            }
        });
        Self { told, watch }
    }

    pub(crate) fn told(&self) -> String {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// A pod's name and image; of a generated name what is the same each time.
fn name_of(pod: &Pod) -> String {
    let hash = pod.labels().get("pod-template-hash").map_or("<none>", String::as_str);
    let name =
        pod.metadata.generate_name.as_ref().filter(|stem| !stem.is_empty() && pod.name_any() != **stem);
    let is_generated = !pod.labels().contains_key("statefulset.kubernetes.io/pod-name");
    let name = name
        .filter(|_| is_generated)
        .map_or_else(|| pod.name_any(), |stem| format!("{}*", stem.replace(hash, "<hash>")));
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let images: Vec<&str> = containers.filter_map(|container| container.image.as_deref()).collect();
    format!("{name} ({})", images.join(", "))
}

fn state_of(pod: &Pod) -> &'static str {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is_ready =
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    match status.and_then(|status| status.phase.as_deref()) {
        _ if pod.metadata.deletion_timestamp.is_some() => "going",
        Some("Succeeded") => "succeeded",
        Some("Failed") => "failed",
        _ if is_ready => "ready",
        _ => "made",
    }
}
