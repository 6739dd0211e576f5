//! Work grows with the number of pods, and not with its square.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, PostParams};
use mainstay_apiserver::ApiServer;
use mainstay_local::cluster::{LocalCluster, Settings};
use mainstay_local::node::process::LogEndpoint;
use mainstay_local::node::rules::Rules;
use mainstay_testkit::eventually_within;
use serde_json::json;

/// How long it takes until a Deployment has so many ready pods.
async fn time_for(replicas: i32) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::new(ApiServer::builder().build().unwrap(), "default");
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
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let labels = json!({"app": "many"});
    let deployment = json!({
        "metadata": {"name": "many"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": {"mainstay.dev/starts-after": "0s"}},
            "spec": {"containers": [{"name": "main", "image": "web"}]},
        }},
    });
    let started = Instant::now();
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    eventually_within(Duration::from_mins(5), "all pods are ready", async || {
        let status = deployments.get("many").await.unwrap().status?;
        (status.ready_replicas == Some(replicas)).then_some(())
    })
    .await;
    let took = started.elapsed();
    cluster.stop().await;
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_times_the_pods_take_about_four_times_as_long() {
    let small = time_for(100).await;
    let large = time_for(400).await;
    println!("100 pods: {small:?}, 400 pods: {large:?}");
    assert!(large < small * 8, "100 pods took {small:?}, 400 took {large:?}");
}
