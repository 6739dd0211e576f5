//! Workloads that ask for more pods than there will ever be room for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use mainstay::{Kind, Operator};
use mainstay_apiserver::ApiServer;
use mainstay_local::controllers::{NAME, configure};
use mainstay_testkit::{RunningOperator, eventually_within};
use serde_json::{Value, json};

/// What comes of a workload: how many pods there are when it says that some are held back, or when it rests, and what it says.
async fn settled(kind: &Kind, mut spec: Value, pods: usize) -> Value {
    let client = Client::new(ApiServer::builder().build().unwrap(), "default");
    let operator = configure(Operator::builder(NAME, client.clone())).build().unwrap();
    let running = RunningOperator::start(operator);
    let labels = json!({"app": "many"});
    let restart = if kind.kind() == "Job" { "Never" } else { "Always" };
    spec["template"] = json!({
        "metadata": {"labels": labels},
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
    let all: Api<Pod> = Api::default_namespaced(client);
    let told = eventually_within(Duration::from_mins(3), "all that is made is made", async || {
        let there = all.list_metadata(&ListParams::default()).await.unwrap().items.len();
        assert!(there <= pods, "{there} pods of {kind:?}");
        let status = workloads.get("many").await.unwrap().data["status"].clone();
        let counted =
            [&status["replicas"], &status["active"]].into_iter().find_map(Value::as_u64).unwrap_or(0);
        let told = status["conditions"].as_array().into_iter().flatten();
        let told = told.into_iter().find(|condition| condition["type"] == "ReplicaFailure").cloned();
        let is_settled = there == pods && counted == pods as u64 && (pods == 1 || told.is_some());
        is_settled.then(|| told.unwrap_or_default())
    })
    .await;
    running.stop().await;
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_beyond_all_bounds_is_held_back_and_told() {
    let cases = [
        (Kind::of::<Deployment>(), json!({"replicas": i32::MAX})),
        (
            Kind::of::<StatefulSet>(),
            json!({"replicas": i32::MAX, "serviceName": "many", "podManagementPolicy": "Parallel"}),
        ),
        (Kind::of::<Job>(), json!({"parallelism": i32::MAX, "completions": i32::MAX})),
        (
            Kind::of::<Job>(),
            json!({"parallelism": i32::MAX, "completions": i32::MAX, "completionMode": "NonIndexed"}),
        ),
    ];
    for (kind, spec) in cases {
        let told = settled(&kind, spec, 1000).await;
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
    assert_eq!(settled(&Kind::of::<StatefulSet>(), spec, 1).await, Value::Null);
}
