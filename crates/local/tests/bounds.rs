//! Workloads that ask for more pods than there will ever be room for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use mainstay::{Kind, Operator};
use mainstay_apiserver::ApiServer;
use mainstay_local::cluster::{LocalCluster, PODS_MAX, Settings};
use mainstay_local::controllers::{NAME, configure};
use mainstay_local::node::process::LogEndpoint;
use mainstay_local::node::rules::Rules;
use mainstay_testkit::{RunningOperator, eventually, eventually_within};
use serde_json::{Value, json};

fn server() -> Client {
    Client::new(ApiServer::builder().build().unwrap(), "default")
}

fn controllers(client: &Client) -> RunningOperator {
    RunningOperator::start(configure(Operator::builder(NAME, client.clone())).build().unwrap())
}

/// Creates a workload.
async fn create(client: &Client, kind: &Kind, mut spec: Value) -> Api<DynamicObject> {
    let labels = json!({"app": "many"});
    let restart = if kind.kind() == "Job" { "Never" } else { "Always" };
    spec["template"] = json!({
        "metadata": {"labels": labels, "annotations": {"mainstay.dev/starts-after": "0s"}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "web"}]},
    });
    if kind.kind() != "Job" {
        spec["selector"] = json!({"matchLabels": labels});
    }
    let resource = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(kind.group(), kind.version(), kind.kind()),
        kind.plural(),
    );
    let workloads: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let workload = json!({"apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": "many"}, "spec": spec});
    workloads.create(&PostParams::default(), &serde_json::from_value(workload).unwrap()).await.unwrap();
    workloads
}

/// The condition of a workload whose pods are held back.
fn held_back(status: &Value) -> Option<Value> {
    let conditions = status["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "ReplicaFailure").cloned()
}

/// Waits until there are this many pods, never more, and the workload has counted them and says that some are held back if there is more
/// than one. Gives what it says.
async fn settled(client: &Client, workloads: &Api<DynamicObject>, pods: usize) -> Value {
    let all: Api<Pod> = Api::default_namespaced(client.clone());
    eventually_within(Duration::from_mins(3), "all that is made is made", async || {
        let there = all.list_metadata(&ListParams::default()).await.unwrap().items.len();
        assert!(there <= pods, "{there} pods");
        let status = workloads.get("many").await.unwrap().data["status"].clone();
        let counted =
            [&status["replicas"], &status["active"]].into_iter().find_map(Value::as_u64).unwrap_or(0);
        let told = held_back(&status);
        let is_settled = there == pods && counted == pods as u64 && (pods == 1 || told.is_some());
        is_settled.then(|| told.unwrap_or_default())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_beyond_all_bounds_is_held_back_and_told() {
    let cases = [
        (Kind::of::<Deployment>(), json!({"replicas": i32::MAX})),
        (Kind::of::<Deployment>(), json!({"replicas": 100_000})),
        (
            Kind::of::<StatefulSet>(),
            json!({"replicas": i32::MAX, "serviceName": "many", "podManagementPolicy": "Parallel"}),
        ),
        (Kind::of::<Job>(), json!({"parallelism": i32::MAX, "completions": i32::MAX})),
        (
            Kind::of::<Job>(),
            // The API allows an indexed Job no more at once.
            json!({"parallelism": 100_000, "completions": i32::MAX, "completionMode": "Indexed"}),
        ),
    ];
    for (kind, spec) in cases {
        let client = server();
        let running = controllers(&client);
        let workloads = create(&client, &kind, spec).await;
        let told = settled(&client, &workloads, 1000).await;
        running.stop().await;
        assert_eq!(
            (&told["status"], &told["reason"]),
            (&json!("True"), &json!("PodsHeldBack")),
            "{kind:?}: {told}"
        );
        assert!(told["message"].as_str().unwrap().starts_with("1000 pods have yet to start"), "{told}");
    }
}

#[tokio::test]
async fn an_ordered_set_of_any_size_begins_with_one_pod() {
    let spec = json!({"replicas": i32::MAX, "serviceName": "many"});
    let client = server();
    let running = controllers(&client);
    let workloads = create(&client, &Kind::of::<StatefulSet>(), spec).await;
    assert_eq!(settled(&client, &workloads, 1).await, Value::Null);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_beyond_all_bounds_is_no_burden_after_a_restart() {
    let client = server();
    let running = controllers(&client);
    let workloads = create(&client, &Kind::of::<Deployment>(), json!({"replicas": i32::MAX})).await;
    let told = settled(&client, &workloads, 1000).await;
    running.stop().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let first = pods.list_metadata(&ListParams::default()).await.unwrap().items.remove(0);
    pods.delete(first.metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();

    // Whoever comes next replaces the one that is gone, and makes no more.
    let running = controllers(&client);
    assert_eq!(settled(&client, &workloads, 1000).await, told);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_larger_than_the_node_runs_what_there_is_room_for_and_says_so() {
    let (client, directory) = (server(), tempfile::tempdir().unwrap());
    let settings = Settings {
        directory: directory.path().to_owned(),
        rules: Rules::default(),
        rules_from: directory.path().to_owned(),
        program: None,
        kubeconfig: None,
        api: None,
        version: "v1.36.3".into(),
    };
    let cluster = LocalCluster::start(client.clone(), &LogEndpoint::default(), settings).await.unwrap();
    cluster.ready().await;
    let workloads = create(&client, &Kind::of::<Deployment>(), json!({"replicas": i32::MAX})).await;
    let told = eventually_within(Duration::from_mins(5), "the node is full and the rest waits", async || {
        let status = workloads.get("many").await.unwrap().data["status"].clone();
        let is_full = status["readyReplicas"] == PODS_MAX && status["replicas"] == PODS_MAX + 1000;
        held_back(&status).filter(|_| is_full)
    })
    .await;
    assert_eq!(told["reason"], "PodsHeldBack", "{told}");
    let pods: Api<Pod> = Api::default_namespaced(client);
    // The scheduler may not have looked at each of them yet.
    eventually("a pod without a node says why", async || {
        let pending = pods.list(&ListParams::default().fields("status.phase=Pending")).await.unwrap();
        let conditions = pending.items.into_iter().filter_map(|pod| pod.status?.conditions).flatten();
        let mut reasons = conditions.filter(|one| one.type_ == "PodScheduled").filter_map(|one| one.message);
        reasons.any(|why| why.contains("Too many pods")).then_some(())
    })
    .await;
    cluster.stop().await;
}
