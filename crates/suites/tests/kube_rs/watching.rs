//! `watcher` in both of its modes, on metadata, reflected into a store, and after history is gone.

use std::pin::pin;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
#[expect(deprecated, reason = "what most projects still call")]
use kube_runtime::metadata_watcher;
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt as _, reflector, watcher as watch};
use mainstay_testkit::{Cluster, eventually, for_each_cluster};
use serde_json::json;

use crate::kube_rs::labelled;

fn maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

fn modes() -> [(&'static str, watcher::Config); 3] {
    let config = watcher::Config::default().labels("app=x");
    [
        ("list and watch", config.clone()),
        ("pages of one", config.clone().page_size(1)),
        ("streaming list", config.streaming_lists()),
    ]
}

fn say<K: kube::ResourceExt>(event: Event<K>) -> String {
    match event {
        Event::Init => "init".into(),
        Event::InitApply(object) => format!("init {}", object.name_any()),
        Event::InitDone => "init done".into(),
        Event::Apply(object) => format!("apply {}", object.name_any()),
        Event::Delete(object) => format!("delete {}", object.name_any()),
    }
}

/// The next events, in words.
async fn next<K: kube::ResourceExt>(
    stream: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    count: usize,
) -> Vec<String> {
    let events: Result<Vec<_>, _> = stream.take(count).map_ok(say).try_collect().await;
    events.expect("a watch without errors")
}

/// Creates a map and waits until the server's watch cache has it: a watch that begins there need not know it before.
async fn create(api: &Api<ConfigMap>, name: &str) {
    api.create(&PostParams::default(), &labelled(name, "x")).await.unwrap();
    eventually("the watch cache to know the map", async || {
        let cached = api.list_metadata(&ListParams::default().match_any()).await.unwrap();
        cached.items.iter().any(|map| map.name_any() == name).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_see_what_is_there_and_what_comes() {
    for_each_cluster(async |cluster| {
        for (mode, config) in modes() {
            let cluster = cluster.again().await;
            let api = maps(&cluster);
            create(&api, "a").await;
            create(&api, "b").await;
            let mut stream = pin!(watch(api.clone(), config));
            assert_eq!(next(&mut stream, 4).await, ["init", "init a", "init b", "init done"], "{mode}");
            create(&api, "c").await;
            let out = Patch::Merge(json!({"metadata": {"labels": {"app": "y"}}}));
            api.patch("a", &PatchParams::default(), &out).await.unwrap();
            api.delete("b", &DeleteParams::default()).await.unwrap();
            assert_eq!(next(&mut stream, 3).await, ["apply c", "delete a", "delete b"], "{mode}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_watchers_see_no_data() {
    for_each_cluster(async |cluster| {
        for (mode, config) in modes() {
            let cluster = cluster.again().await;
            let api = maps(&cluster);
            create(&api, "a").await;
            let partial: Api<PartialObjectMeta<ConfigMap>> =
                Api::namespaced(cluster.client(), cluster.namespace());
            #[expect(deprecated, reason = "what most projects still call")]
            let mut older = pin!(metadata_watcher(api.clone(), config.clone()));
            let mut newer = pin!(watch(partial, config));
            assert_eq!(next(&mut older, 3).await, ["init", "init a", "init done"], "{mode}");
            assert_eq!(next(&mut newer, 3).await, ["init", "init a", "init done"], "{mode}");
            create(&api, "b").await;
            assert_eq!(next(&mut older, 1).await, ["apply b"], "{mode}");
            assert_eq!(next(&mut newer, 1).await, ["apply b"], "{mode}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_ends_is_taken_up_where_it_was() {
    for_each_cluster(async |cluster| {
        for (mode, config) in modes() {
            let cluster = cluster.again().await;
            let api = maps(&cluster);
            create(&api, "a").await;
            // Each watch ends after a second, so there are several before the change comes.
            let mut stream = pin!(watch(api.clone(), config.timeout(1)));
            assert_eq!(next(&mut stream, 3).await, ["init", "init a", "init done"], "{mode}");
            let later = async {
                tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
                create(&api, "b").await;
            };
            let (seen, ()) = tokio::join!(next(&mut stream, 1), later);
            assert_eq!(seen, ["apply b"], "{mode}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_history_makes_watchers_start_again() {
    for_each_cluster(async |cluster| {
        let Some(server) = cluster.embedded_server() else { return };
        for (mode, config) in modes() {
            let cluster = cluster.again().await;
            let api = maps(&cluster);
            create(&api, "a").await;
            let mut stream = pin!(watch(api.clone(), config).default_backoff());
            assert_eq!(next(&mut stream, 3).await, ["init", "init a", "init done"], "{mode}");
            // Nobody has read the watch since, so it is at a version that is gone when it goes on.
            create(&maps(&cluster.again().await), "elsewhere").await;
            server.compact();
            create(&api, "b").await;
            let mut seen: Vec<String> = Vec::new();
            while !seen.ends_with(&["init done".into()]) {
                match stream.next().await.expect("watchers never end") {
                    Ok(event) => seen.push(say(event)),
                    Err(error) => seen.push(format!("error: {error}")),
                }
                assert!(seen.len() < 20, "{mode}: {seen:?}");
            }
            let restarted: Vec<_> =
                seen.iter().skip_while(|event| *event != "init").map(String::as_str).collect();
            assert_eq!(restarted, ["init", "init a", "init b", "init done"], "{mode}: {seen:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_holds_what_the_server_holds() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        for name in ["a", "b", "c"] {
            create(&api, name).await;
        }
        let (store, writer) = reflector::store();
        let stream = reflector(writer, watch(api.clone(), watcher::Config::default().labels("app=x")));
        let running = tokio::spawn(stream.for_each(|event| async move { drop(event.unwrap()) }));
        store.wait_until_ready().await.unwrap();
        assert_eq!(store.len(), 3);
        api.delete("b", &DeleteParams::default()).await.unwrap();
        create(&api, "d").await;
        let names = || {
            let mut names: Vec<_> = store.state().iter().map(|object| object.name_any()).collect();
            names.sort();
            names
        };
        eventually("the store follows", async || (names() == ["a", "c", "d"]).then_some(())).await;
        running.abort();
    })
    .await;
}
