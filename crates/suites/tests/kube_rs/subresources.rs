//! Subresources: status, scale, eviction, binding, and those that only a kubelet can serve.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Binding, Pod};
use kube::api::{Api, EvictParams, LogParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use mainstay_testkit::{ClusterKind, for_each_cluster};
use serde_json::json;

use crate::kube_rs::{deployment, pod, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn status_and_spec_are_written_apart() {
    for_each_cluster(async |cluster| {
        let api: Api<Deployment> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &deployment("web")).await.unwrap();
        let both = json!({"spec": {"replicas": 9}, "status": {"replicas": 1}});
        let object = api.patch_status("web", &PatchParams::default(), &Patch::Merge(&both)).await.unwrap();
        assert_eq!(object.spec.as_ref().unwrap().replicas, Some(2));
        assert_eq!(object.status.as_ref().unwrap().replicas, Some(1));
        let object = api.patch("web", &PatchParams::default(), &Patch::Merge(&json!({"status": {"replicas": 5}}))).await.unwrap();
        assert_eq!(object.status.as_ref().unwrap().replicas, Some(1));
        let mut object = api.get_status("web").await.unwrap();
        object.status.as_mut().unwrap().replicas = Some(2);
        let object = api.replace_status("web", &PostParams::default(), &object).await.unwrap();
        assert_eq!(object.metadata.generation, Some(1));
        let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"readyReplicas": 1}});
        let object = api.patch_status("web", &PatchParams::apply("status"), &Patch::Apply(&applied)).await.unwrap();
        let managers = object.metadata.managed_fields.unwrap();
        assert!(managers.iter().any(|m| m.manager.as_deref() == Some("status") && m.subresource.as_deref() == Some("status")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_is_read_and_written() {
    for_each_cluster(async |cluster| {
        let api: Api<Deployment> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &deployment("web")).await.unwrap();
        let mut scale = api.get_scale("web").await.unwrap();
        assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(2));
        assert_eq!(scale.status.as_ref().unwrap().selector.as_deref(), Some("app=web"));
        let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
        api.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
        scale.spec.as_mut().unwrap().replicas = Some(4);
        assert_eq!(
            refusal(api.replace_scale("web", &PostParams::default(), &scale).await),
            (409, "Conflict".into())
        );
        scale.metadata.resource_version = None;
        api.replace_scale("web", &PostParams::default(), &scale).await.unwrap();
        let object = api.get("web").await.unwrap();
        assert_eq!(object.spec.unwrap().replicas, Some(4));
        assert_eq!(object.metadata.generation, Some(3));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_resized_and_given_ephemeral_containers() {
    for_each_cluster(async |cluster| {
        let api: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &pod("p")).await.unwrap();
        let binding: Binding = crate::kube_rs::object(json!({
            "metadata": {"name": "p"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"},
        }));
        let _: Status =
            api.create_subresource("binding", "p", &PostParams::default(), &binding).await.unwrap();
        assert_eq!(api.get("p").await.unwrap().spec.unwrap().node_name.as_deref(), Some("nowhere"));
        let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
        let object = api
            .patch_ephemeral_containers("p", &PatchParams::default(), &Patch::Strategic(&debug))
            .await
            .unwrap();
        assert_eq!(object.spec.unwrap().ephemeral_containers.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_runs_nowhere_is_evicted_at_once() {
    for_each_cluster(async |cluster| {
        let api: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &pod("p")).await.unwrap();
        api.evict("p", &EvictParams::default()).await.unwrap();
        assert!(api.get_opt("p").await.unwrap().is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_refused_by_name() {
    for_each_cluster(async |cluster| {
        let api: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &pod("p")).await.unwrap();
        let answer = api.logs("p", &LogParams::default()).await;
        match cluster.kind() {
            ClusterKind::Embedded => {
                let Err(kube::Error::Api(status)) = answer else { panic!("there are no logs: {answer:?}") };
                assert_eq!(status.code, 501);
                assert!(status.message.contains("pods/log"), "{}", status.message);
            }
            // Nothing has been written by a pod that runs nowhere.
            ClusterKind::Real => assert_eq!(answer.unwrap(), ""),
        }
    })
    .await;
}
