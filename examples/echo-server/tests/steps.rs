//! The operator, step by step, on the embedded and the real API server.

use echo_server::{NAME, configure, kinds};
use mainstay::Stepped;
use mainstay_testkit::{Cluster, OperatorTest, eventually, for_each_cluster};
use serde_json::{Value, json};

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The operator, with the `EchoServer` of the README, and nothing left to do.
async fn hello(cluster: &Cluster) -> OperatorTest {
    cluster.define(yaml(kinds::CRD)).await;
    let test = OperatorTest::new(cluster, NAME, configure);
    test.create(yaml(include_str!("../hello.yaml"))).await;
    test.settle().await;
    test
}

/// What was written, in order.
fn written(steps: &[Stepped]) -> Vec<String> {
    let writes = steps.iter().flat_map(Stepped::written);
    writes.map(|step| format!("{} {}", step.action.as_str(), step.object.kind.kind())).collect()
}

#[tokio::test]
async fn an_echo_server_gets_a_pod_and_a_service() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        let pod = test.get(&kinds::pod(), "hello").await.unwrap();
        assert_eq!(pod["spec"]["containers"][0]["args"], json!(["-listen=:5678", "-text=hello"]));
        let service = test.get(&kinds::service(), "hello").await.unwrap();
        assert_eq!(service["spec"]["ports"][0]["port"], 80);
        let hello = test.get(&kinds::echo_server(), "hello").await.unwrap();
        let url = format!("http://hello.{}.svc:80", cluster.namespace());
        assert_eq!(hello["status"], json!({"phase": "Starting", "url": url, "observedGeneration": 1}));
        test.assert_settled().await; // a second sync writes nothing
    })
    .await;
}

#[tokio::test]
async fn another_port_is_one_write_for_the_service_and_one_for_the_status() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        test.patch(&kinds::echo_server(), "hello", json!({"spec": {"port": 8080}})).await;
        assert_eq!(written(&test.settle().await), ["apply Service", "write status of EchoServer"]);
        let service = test.get(&kinds::service(), "hello").await.unwrap();
        assert_eq!(service["spec"]["ports"].as_array().unwrap().len(), 1);
        assert_eq!(service["spec"]["ports"][0]["port"], 8080);
    })
    .await;
}

#[tokio::test]
async fn another_message_is_another_pod() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        test.patch(&kinds::echo_server(), "hello", json!({"spec": {"message": "goodbye"}})).await;
        assert_eq!(written(&test.settle().await), ["delete Pod", "create Pod", "write status of EchoServer"]);
        let pod = test.get(&kinds::pod(), "hello").await.unwrap();
        assert_eq!(pod["spec"]["containers"][0]["args"][1], "-text=goodbye");
    })
    .await;
}

#[tokio::test]
async fn it_is_ready_when_its_pod_is() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        cluster.patch_status(&kinds::pod(), "hello", ready).await;
        assert_eq!(written(&test.settle().await), ["write status of EchoServer"]);
        let hello = test.get(&kinds::echo_server(), "hello").await.unwrap();
        assert_eq!(hello["status"]["phase"], "Ready");
    })
    .await;
}

#[tokio::test]
async fn what_somebody_changes_or_deletes_is_put_right() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        let astray = json!({"spec": {"selector": {"app.kubernetes.io/instance": "astray"}}});
        test.patch(&kinds::service(), "hello", astray).await;
        assert_eq!(written(&test.settle().await), ["apply Service"]);
        let service = test.get(&kinds::service(), "hello").await.unwrap();
        assert_eq!(service["spec"]["selector"]["app.kubernetes.io/instance"], "hello");
        test.delete(&kinds::pod(), "hello").await;
        assert_eq!(written(&test.settle().await), ["create Pod"]);
    })
    .await;
}

#[tokio::test]
async fn what_others_add_is_left_alone() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        let note = json!({"metadata": {"annotations": {"example.com/note": "mine"}}});
        test.patch(&kinds::service(), "hello", note).await;
        assert!(written(&test.settle().await).is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_deleted_echo_server_takes_its_children_along() {
    for_each_cluster(async |cluster| {
        let test = hello(&cluster).await;
        test.delete(&kinds::echo_server(), "hello").await;
        assert!(written(&test.settle().await).is_empty(), "Kubernetes deletes children by itself");
        for kind in [kinds::pod(), kinds::service()] {
            eventually(&format!("{kind} to go"), async || (!test.exists(&kind, "hello").await).then_some(()))
                .await;
        }
        assert!(written(&test.settle().await).is_empty(), "nothing is made for a parent that is gone");
    })
    .await;
}
