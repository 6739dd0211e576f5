//! A Kubernetes API in this process: no socket, no container, nothing to clean up.
//!
//! `cargo run -p mainstay-apiserver --example in_process`

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, WatchEvent, WatchParams};
use mainstay_apiserver::ApiServer;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ApiServer::builder().build()?;
    let client = kube::Client::new(server, "default");
    println!("Kubernetes {}", client.apiserver_version().await?.git_version);
    let maps: Api<ConfigMap> = Api::default_namespaced(client);

    // Watches from before the first write, and ends after the deletion.
    let selection = WatchParams::default().fields("metadata.name=greeting");
    let events = maps.watch(&selection, "0").await?;
    let follow = events.try_take_while(|event| {
        let (line, goes_on) = describe(event);
        println!("{line}");
        std::future::ready(Ok(goes_on))
    });

    let change = async {
        let manager = PatchParams::apply("example");
        for text in ["hello", "hello again"] {
            let wanted = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "greeting"},
                "data": {"text": text},
            });
            maps.patch("greeting", &manager, &Patch::Apply(wanted)).await?;
        }
        maps.delete("greeting", &DeleteParams::default()).await?;
        Ok::<_, kube::Error>(())
    };
    let (followed, changed) = tokio::join!(follow.try_collect::<Vec<_>>(), change);
    changed?;
    followed?;
    Ok(())
}

/// An event in words, and whether more are awaited.
fn describe(event: &WatchEvent<ConfigMap>) -> (String, bool) {
    let text =
        |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("text")).cloned().unwrap_or_default();
    match event {
        WatchEvent::Added(map) => (format!("added    {:?}", text(map)), true),
        WatchEvent::Modified(map) => (format!("modified {:?}", text(map)), true),
        WatchEvent::Deleted(map) => (format!("deleted  {:?}", text(map)), false),
        WatchEvent::Bookmark(_) => ("bookmark".into(), true),
        WatchEvent::Error(status) => (format!("error    {}", status.message), false),
    }
}
