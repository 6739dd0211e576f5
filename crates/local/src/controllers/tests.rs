//! What is true of all controllers that make pods.

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use mainstay::Kind;
use mainstay_testkit::{Cluster, OperatorTest};
use serde_json::{Value, json};

use super::{NAME, configure};

fn workload(kind: &Kind, name: &str, mut spec: Value) -> Value {
    let labels = json!({"app": name});
    let restart = if kind.kind() == "Job" { "Never" } else { "Always" };
    spec["template"] = json!({
        "metadata": {"labels": labels},
        "spec": {"restartPolicy": restart, "tolerations": [{"operator": "Exists"}], "containers": [{"name": "main", "image": "web"}]},
    });
    if kind.kind() != "Job" {
        spec["selector"] = json!({"matchLabels": labels});
    }
    json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": name}, "spec": spec})
}

async fn names(cluster: &Cluster) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    pods.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn no_pod_has_the_name_of_one_that_is_gone() {
    for kind in [Kind::of::<ReplicaSet>(), Kind::of::<DaemonSet>(), Kind::of::<Job>()] {
        let cluster = Cluster::embedded().await.unwrap();
        let test = OperatorTest::new(&cluster, NAME, configure);
        test.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}})).await;
        test.create(workload(&kind, "web", json!({}))).await;
        test.settle().await;
        let mut seen = names(&cluster).await;
        assert_eq!(seen.len(), 1, "{kind:?}");
        for _ in 0..3 {
            let last = seen.last().unwrap().clone();
            if kind.kind() == "Job" {
                // A pod of a Job that was never counted goes when nobody waits for it any more.
                test.patch(&Kind::of::<Pod>(), &last, json!({"metadata": {"finalizers": []}})).await;
            }
            test.delete(&Kind::of::<Pod>(), &last).await;
            test.settle().await;
            let now = names(&cluster).await;
            assert_eq!(now.len(), 1, "{kind:?}: {now:?}");
            assert!(!seen.contains(&now[0]), "{kind:?}: {} is there again after {seen:?}", now[0]);
            seen.extend(now);
        }
        test.assert_settled().await;
    }
}

/// Deletes the only pod as soon as a sync has created it, before another sync sees it. Returns its name.
async fn delete_unseen(test: &OperatorTest, cluster: &Cluster, kind: &Kind) -> String {
    while names(cluster).await.is_empty() {
        test.step().await.expect("a pod is lacking");
    }
    let name = names(cluster).await.remove(0);
    if kind.kind() == "Job" {
        test.patch(&Kind::of::<Pod>(), &name, json!({"metadata": {"finalizers": []}})).await;
    }
    test.delete(&Kind::of::<Pod>(), &name).await;
    name
}

#[tokio::test]
async fn a_pod_that_was_deleted_before_anybody_saw_it_keeps_its_name() {
    for kind in [Kind::of::<ReplicaSet>(), Kind::of::<DaemonSet>(), Kind::of::<Job>()] {
        let cluster = Cluster::embedded().await.unwrap();
        let test = OperatorTest::new(&cluster, NAME, configure);
        test.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}})).await;
        test.create(workload(&kind, "web", json!({}))).await;
        let mut gone = Vec::new();
        for _ in 0..3 {
            let name = delete_unseen(&test, &cluster, &kind).await;
            assert!(!gone.contains(&name), "{kind:?}: {name} is there again after {gone:?}");
            gone.push(name);
        }
        test.settle().await;
        let now = names(&cluster).await;
        assert!(now.len() == 1 && !gone.contains(&now[0]), "{kind:?}: {now:?} after {gone:?}");
        test.assert_settled().await;
    }
}

#[tokio::test]
async fn a_job_takes_a_pod_back_that_has_lost_it() {
    let cluster = Cluster::embedded().await.unwrap();
    let test = OperatorTest::new(&cluster, NAME, configure);
    test.create(workload(&Kind::of::<Job>(), "work", json!({}))).await;
    test.settle().await;
    let before = names(&cluster).await;
    test.patch(
        &Kind::of::<Pod>(),
        &before[0],
        json!({"metadata": {"ownerReferences": null, "finalizers": null}}),
    )
    .await;
    test.settle().await;
    assert_eq!(names(&cluster).await, before);
    let pod = test.get(&Kind::of::<Pod>(), &before[0]).await.unwrap();
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "work");
    assert_eq!(pod["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    assert_eq!(pod["spec"]["containers"][0]["image"], "web");
    assert_eq!(test.get(&Kind::of::<Job>(), "work").await.unwrap()["status"]["active"], 1);
    test.assert_settled().await;
}
