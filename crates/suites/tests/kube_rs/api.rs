//! `Api`: reading, writing, patching, deleting, watching.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::ResourceExt;
use kube::api::entry::Entry;
use kube::api::{
    Api, DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, WatchEvent, WatchParams,
};
use kube::core::{DynamicObject, PartialObjectMetaExt as _};
use kube::discovery::ApiResource;
use mainstay_testkit::{Cluster, eventually, for_each_cluster};
use serde_json::json;

use crate::kube_rs::{config_map, deployment, labelled, pod, refusal};

fn maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_is_read_back_in_every_way() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        assert!(api.get_opt("a").await.unwrap().is_none());
        assert_eq!(refusal(api.get("a").await), (404, "NotFound".into()));
        let created = api.create(&PostParams::default(), &labelled("a", "x")).await.unwrap();
        assert_eq!(
            refusal(api.create(&PostParams::default(), &labelled("a", "x")).await),
            (409, "AlreadyExists".into())
        );
        assert_eq!(api.get("a").await.unwrap(), created);
        assert_eq!(api.get_opt("a").await.unwrap().as_ref(), Some(&created));
        assert_eq!(api.get_with("a", &GetParams::any()).await.unwrap().uid(), created.uid());
        let metadata = api.get_metadata("a").await.unwrap();
        assert_eq!(metadata.metadata, created.metadata);
        assert_eq!(metadata.types.unwrap().kind, "PartialObjectMetadata");
        assert!(api.get_metadata_opt("b").await.unwrap().is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_selected_paged_and_cut_to_metadata() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
            api.create(&PostParams::default(), &labelled(name, label)).await.unwrap();
        }
        let names = |list: kube::api::ObjectList<ConfigMap>| -> Vec<_> {
            list.iter().map(ResourceExt::name_any).collect()
        };
        let labels = |selector: &str| ListParams::default().labels(selector);
        assert_eq!(names(api.list(&labels("app=x")).await.unwrap()), ["a", "b"]);
        assert_eq!(names(api.list(&labels("app").fields("metadata.name!=b")).await.unwrap()), ["a", "c"]);
        assert_eq!(names(api.list(&labels("app").match_any()).await.unwrap()), ["a", "b", "c"]);
        let first = api.list(&labels("app").limit(2)).await.unwrap();
        let token = first.metadata.continue_.clone().unwrap();
        assert_eq!(names(first), ["a", "b"]);
        let second = api.list(&labels("app").limit(2).continue_token(&token)).await.unwrap();
        assert_eq!(names(second), ["c"]);
        let metadata = api.list_metadata(&labels("app=y")).await.unwrap();
        assert_eq!(metadata.items[0].name_any(), "c");
        let everywhere: Api<ConfigMap> = Api::all(cluster.client());
        let own = format!("metadata.namespace={}", cluster.namespace());
        assert_eq!(names(everywhere.list(&labels("app").fields(&own)).await.unwrap()), ["a", "b", "c"]);
        assert_eq!(refusal(api.list(&labels("app in (x")).await), (400, "BadRequest".into()));
        assert_eq!(
            refusal(api.list(&ListParams::default().fields("data.a=b")).await),
            (400, "BadRequest".into())
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replace_needs_the_version_that_is_there() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        let first = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
        let mut second = first.clone();
        second.data = config_map("a", "2").data;
        let second = api.replace("a", &PostParams::default(), &second).await.unwrap();
        assert_ne!(second.resource_version(), first.resource_version());
        assert_eq!(refusal(api.replace("a", &PostParams::default(), &first).await), (409, "Conflict".into()));
        let same = api.replace("a", &PostParams::default(), &second).await.unwrap();
        assert_eq!(same, second);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let mut third = second.clone();
        third.data = None;
        api.replace("a", &dry, &third).await.unwrap();
        assert_eq!(api.get("a").await.unwrap(), second);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_of_every_kind_apply() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        let params = PatchParams::apply("tester");
        let applied = config_map("a", "1").metadata.into_request_partial::<ConfigMap>();
        api.patch_metadata("a", &params, &Patch::Apply(&applied)).await.unwrap();
        let whole = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "1", "other": "1"}});
        let object = api.patch("a", &params, &Patch::Apply(&whole)).await.unwrap();
        assert_eq!(object.metadata.managed_fields.unwrap()[0].operation.as_deref(), Some("Apply"));
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "2"}});
        assert_eq!(
            refusal(api.patch("a", &PatchParams::apply("rival"), &Patch::Apply(&other)).await),
            (409, "Conflict".into())
        );
        api.patch("a", &PatchParams::apply("rival").force(), &Patch::Apply(&other)).await.unwrap();
        let less = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {}});
        let object = api.patch("a", &params, &Patch::Apply(&less)).await.unwrap();
        assert_eq!(object.data, config_map("a", "2").data);
        let plain = PatchParams::default();
        let merge = Patch::Merge(json!({"data": {"value": null, "merged": "1"}}));
        api.patch("a", &plain, &merge).await.unwrap();
        let operations =
            serde_json::from_value(json!([{"op": "add", "path": "/data/added", "value": "1"}])).unwrap();
        let object = api.patch("a", &plain, &Patch::Json::<()>(operations)).await.unwrap();
        assert_eq!(object.data.unwrap().into_keys().collect::<Vec<_>>(), ["added", "merged"]);
        let strict = PatchParams {
            field_validation: Some(kube::api::ValidationDirective::Strict),
            ..PatchParams::default()
        };
        let unknown = Patch::Merge(json!({"dota": {}}));
        assert_eq!(refusal(api.patch("a", &strict, &unknown).await).0, 422);

        let api: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &pod("p")).await.unwrap();
        let image = json!({"spec": {"containers": [{"name": "main", "image": "other"}]}});
        let object = api.patch("p", &plain, &Patch::Strategic(image)).await.unwrap();
        assert_eq!(object.spec.unwrap().containers[0].image.as_deref(), Some("other"));
        let frozen = json!({"spec": {"nodeSelector": {"a": "b"}}});
        assert_eq!(refusal(api.patch("p", &plain, &Patch::Strategic(frozen)).await), (422, "Invalid".into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_committed_once() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        let Entry::Vacant(vacant) = api.entry("a").await.unwrap() else { panic!("there is no such object") };
        let mut entry = vacant.insert(config_map("a", "1"));
        entry.commit(&PostParams::default()).await.unwrap();
        let version = entry.get().resource_version();
        entry.commit(&PostParams::default()).await.unwrap();
        assert_eq!(entry.get().resource_version(), version);
        let mut entry = api
            .entry("a")
            .await
            .unwrap()
            .and_modify(|object| object.data = config_map("a", "2").data)
            .or_insert(|| panic!("there is such an object"));
        entry.commit(&PostParams::default()).await.unwrap();
        assert_eq!(api.get("a").await.unwrap().data, config_map("a", "2").data);
        let mut stale = api.entry("a").await.unwrap().or_insert(|| panic!("there is such an object"));
        stale.get_mut().data = None;
        api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": "y"}}))).await.unwrap();
        assert!(stale.commit(&PostParams::default()).await.is_err());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_honours_preconditions_and_propagation() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        let owner = api.create(&PostParams::default(), &config_map("owner", "1")).await.unwrap();
        let mut child = config_map("child", "1");
        child.metadata.owner_references = Some(vec![kube::Resource::owner_ref(&owner, &()).unwrap()]);
        api.create(&PostParams::default(), &child).await.unwrap();
        let wrong = Preconditions { uid: Some("none".into()), ..Preconditions::default() };
        let wrong = DeleteParams::default().preconditions(wrong);
        assert_eq!(refusal(api.delete("owner", &wrong).await), (409, "Conflict".into()));
        let right = Preconditions { uid: owner.uid(), resource_version: owner.resource_version() };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(right),
            ..DeleteParams::default()
        };
        let answer = api.delete("owner", &params).await.unwrap();
        assert!(answer.right().is_some_and(|status| status.is_success()));
        eventually("the child goes", async || api.get_opt("child").await.unwrap().is_none().then_some(()))
            .await;
        assert_eq!(refusal(api.delete("owner", &DeleteParams::default()).await), (404, "NotFound".into()));

        for name in ["a", "b", "c"] {
            api.create(&PostParams::default(), &labelled(name, if name == "c" { "y" } else { "x" }))
                .await
                .unwrap();
        }
        let answer = api
            .delete_collection(&DeleteParams::default(), &ListParams::default().labels("app=x"))
            .await
            .unwrap();
        let gone: BTreeSet<_> = answer.left().unwrap().iter().map(ResourceExt::name_any).collect();
        assert_eq!(gone, BTreeSet::from(["a".into(), "b".into()]));
        let left = api.list(&ListParams::default().labels("app")).await.unwrap();
        assert_eq!(left.items.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_what_happened_since_a_version() {
    for_each_cluster(async |cluster| {
        let api = maps(&cluster);
        let start = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        api.create(&PostParams::default(), &labelled("a", "x")).await.unwrap();
        let out = json!({"metadata": {"labels": {"app": "y"}}});
        api.patch("a", &PatchParams::default(), &Patch::Merge(out)).await.unwrap();
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let kinds = |event: WatchEvent<_>| match event {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => "bookmark",
            WatchEvent::Error(_) => "error",
        };
        let params = WatchParams::default().timeout(60).disable_bookmarks();
        let all = api.watch(&params.clone().fields("metadata.name=a"), &start).await.unwrap();
        let all: Vec<_> = all.map_ok(kinds).take(3).try_collect().await.unwrap();
        assert_eq!(all, ["added", "modified", "deleted"]);
        let selected = api.watch(&params.labels("app=x"), &start).await.unwrap();
        let selected: Vec<_> = selected.map_ok(kinds).take(2).try_collect().await.unwrap();
        assert_eq!(selected, ["added", "deleted"]);
        let params = WatchParams::default().timeout(60).labels("app=x");
        let metadata = api.watch_metadata(&params, &start).await.unwrap();
        let mut metadata = std::pin::pin!(metadata);
        let Some(Ok(WatchEvent::Added(first))) = metadata.next().await else {
            panic!("an event of metadata")
        };
        assert_eq!(first.types.unwrap().kind, "PartialObjectMetadata");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_types_and_without_namespaces_are_served() {
    for_each_cluster(async |cluster| {
        let resource = ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), cluster.namespace(), &resource);
        let typed = serde_json::to_value(deployment("web")).unwrap();
        let mut dynamic = DynamicObject::new("web", &resource);
        dynamic.data = json!({"spec": typed["spec"]});
        let created = api.create(&PostParams::default(), &dynamic).await.unwrap();
        assert_eq!(created.data["spec"]["strategy"]["type"], "RollingUpdate");

        let nodes: Api<Node> = Api::all(cluster.client());
        let name = format!("{}-node", cluster.namespace());
        let node: Node = crate::kube_rs::object(json!({"metadata": {"name": name}}));
        nodes.create(&PostParams::default(), &node).await.unwrap();
        nodes.delete(&name, &DeleteParams::default()).await.unwrap();
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let own = namespaces.get(cluster.namespace()).await.unwrap();
        assert_eq!(own.status.unwrap().phase.as_deref(), Some("Active"));
    })
    .await;
}
