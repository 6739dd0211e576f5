//! How much memory a cache takes per byte of the objects in it. Pods, because they are many and large everywhere.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, reflector, watcher};
use mainstay::Kind;
use mainstay::cache::{Caches, Options, WatchScope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::contender::client;
use super::scenarios::make_namespace;
use super::tally::Tally;
use crate::objects::{NAMESPACE, pod};
use crate::process::own_heap;

/// So many pods are in the cache.
pub(crate) const PODS: u64 = 10_000;

/// Whose cache.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    Ours,
    /// kube's store of `Pod`, as it is by default.
    Kube,
    /// The same, told to drop `managedFields`.
    KubePruned,
}

impl Store {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Store::Ours => "ours",
            Store::Kube => "kube",
            Store::KubePruned => "kube-pruned",
        }
    }
}

/// By how much a process has grown.
#[derive(Serialize, Deserialize)]
pub(crate) struct Grown {
    pub heap_bytes: u64,
}

/// Makes the pods. Returns what they measure as JSON, without `managedFields`.
pub(crate) async fn fill(kubeconfig: &Path) -> Result<u64> {
    let client = client(kubeconfig, &Tally::new()).await?;
    make_namespace(&client).await?;
    let pods = &Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let making = stream::iter((0..PODS).map(async |number| {
        let name = format!("pod-{number:05}");
        let made: Pod = serde_json::from_value(pod(&name))?;
        pods.create(&PostParams::default(), &made).await?;
        pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status())).await?;
        anyhow::Ok(())
    }));
    making.buffer_unordered(16).try_for_each(|()| std::future::ready(Ok(()))).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?limit=500");
    let page = client.request_text(http::Request::get(path).body(Vec::new())?).await?;
    let mut page: Value = serde_json::from_str(&page)?;
    let items = page["items"].as_array_mut().context("a list without items")?;
    let mut bytes = 0;
    for item in &mut *items {
        item["metadata"].as_object_mut().context("no metadata")?.remove("managedFields");
        bytes += item.to_string().len();
    }
    Ok(u64::try_from(bytes / items.len())? * PODS)
}

/// What a kubelet tells of a running pod.
fn status() -> Value {
    let since = "2026-01-01T00:00:00Z";
    let condition = |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": since});
    let container = |name: &str| {
        json!({
            "name": name, "ready": true, "started": true, "restartCount": 0,
            "image": format!("registry.example.com/shop/{name}:1.4.2"),
            "imageID": format!("registry.example.com/shop/{name}@sha256:{}", "0123456789abcdef".repeat(4)),
            "containerID": format!("containerd://{}", "fedcba9876543210".repeat(4)),
            "state": {"running": {"startedAt": since}},
        })
    };
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    let containers = ["web", "proxy"].map(container);
    json!({"status": {
        "phase": "Running", "hostIP": "10.0.0.7", "podIP": "10.244.3.17", "startTime": since,
        "podIPs": [{"ip": "10.244.3.17"}], "hostIPs": [{"ip": "10.0.0.7"}],
        "conditions": conditions, "containerStatuses": containers,
    }})
}

/// The child's side: fills one cache and tells by how much it grew.
pub(crate) async fn hold(store: Store, kubeconfig: &Path) -> Result<Grown> {
    let client = client(kubeconfig, &Tally::new()).await?;
    // Connections and the like are not the cache's.
    Api::<PartialObjectMeta<Pod>>::all(client.clone())
        .list_metadata(&kube::api::ListParams::default().limit(1))
        .await?;
    let before = own_heap()?;
    let held: Box<dyn std::any::Any> = match store {
        Store::Ours => Box::new(ours(client).await),
        Store::Kube => Box::new(with_kube(client, false).await?),
        Store::KubePruned => Box::new(with_kube(client, true).await?),
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let heap_bytes = own_heap()?.saturating_sub(before);
    drop(held);
    Ok(Grown { heap_bytes })
}

async fn ours(client: kube::Client) -> impl std::any::Any {
    let caches = Caches::new(client, fastrand::Rng::new());
    let watch = caches.watch(&Kind::of::<Pod>(), WatchScope::all(), Options::default());
    watch.synced().await;
    (caches, watch)
}

async fn with_kube(client: kube::Client, prune: bool) -> Result<impl std::any::Any> {
    let (reader, writer) = reflector::store::<Pod>();
    let events = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff();
    let events = events.modify(move |pod| {
        if prune {
            pod.managed_fields_mut().clear();
        }
    });
    let task = tokio::spawn(reflector(writer, events).for_each(|_| std::future::ready(())));
    reader.wait_until_ready().await?;
    Ok((reader, task))
}
