//! The operator, step by step, on the embedded and the real API server.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::CustomResourceExt as _;
use mainstay::{Kind, Stepped};
use mainstay_testkit::{Cluster, OperatorTest, eventually, for_each_cluster};
use serde_json::{Value, json};
use webapp::kinds::WebApp;
use webapp::{NAME, configure};

/// The operator, with the `WebApp` of the README, and nothing left to do.
async fn shop(cluster: &Cluster) -> OperatorTest {
    cluster.define(json!(WebApp::crd())).await;
    let test = OperatorTest::new(cluster, NAME, configure);
    test.create(serde_saphyr::from_str(include_str!("../shop.yaml")).unwrap()).await;
    test.settle().await;
    test
}

/// What was written, in order.
fn written(steps: &[Stepped]) -> Vec<String> {
    let writes = steps.iter().flat_map(Stepped::written);
    writes.map(|step| format!("{} {}", step.action.as_str(), step.object.kind.kind())).collect()
}

fn ready(app: &Value) -> &Value {
    let conditions = app["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == "Ready").unwrap()
}

#[tokio::test]
async fn a_web_app_gets_its_three_children() {
    for_each_cluster(async |cluster| {
        let test = shop(&cluster).await;
        let settings = test.get(&Kind::of::<ConfigMap>(), "shop").await.unwrap();
        assert_eq!(settings["data"], json!({"COLOUR": "blue"}));
        let deployment = test.get(&Kind::of::<Deployment>(), "shop").await.unwrap();
        assert_eq!(deployment["spec"]["replicas"], 2);
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/shop:1");
        let service = test.get(&Kind::of::<Service>(), "shop").await.unwrap();
        assert_eq!(service["spec"]["selector"]["app.kubernetes.io/instance"], "shop");
        let app = test.get(&Kind::of::<WebApp>(), "shop").await.unwrap();
        assert_eq!(app["status"]["observedGeneration"], 1);
        assert_eq!(ready(&app)["status"], "False");
        assert_eq!(ready(&app)["message"], "0 of 2 pods are ready");
        test.assert_settled().await; // a second sync writes nothing
    })
    .await;
}

#[tokio::test]
async fn another_number_of_replicas_is_one_write_for_the_deployment_and_one_for_the_status() {
    for_each_cluster(async |cluster| {
        let test = shop(&cluster).await;
        test.patch(&Kind::of::<WebApp>(), "shop", json!({"spec": {"replicas": 3}})).await;
        assert_eq!(written(&test.settle().await), ["apply Deployment", "write status of WebApp"]);
        let deployment = test.get(&Kind::of::<Deployment>(), "shop").await.unwrap();
        assert_eq!(deployment["spec"]["replicas"], 3);
    })
    .await;
}

#[tokio::test]
async fn other_settings_replace_the_pods() {
    for_each_cluster(async |cluster| {
        let test = shop(&cluster).await;
        let template = async || {
            let deployment = test.get(&Kind::of::<Deployment>(), "shop").await.unwrap();
            deployment["spec"]["template"]["metadata"]["annotations"].clone()
        };
        let before = template().await;
        let settings = json!({"spec": {"settings": {"COLOUR": null, "SIZE": "large"}}});
        test.patch(&Kind::of::<WebApp>(), "shop", settings).await;
        assert_eq!(
            written(&test.settle().await),
            ["apply ConfigMap", "apply Deployment", "write status of WebApp"]
        );
        let settings = test.get(&Kind::of::<ConfigMap>(), "shop").await.unwrap();
        assert_eq!(settings["data"], json!({"SIZE": "large"}), "what is no longer named is removed");
        assert_ne!(template().await, before);
    })
    .await;
}

#[tokio::test]
async fn what_somebody_changes_or_deletes_is_put_right() {
    for_each_cluster(async |cluster| {
        let test = shop(&cluster).await;
        test.patch(&Kind::of::<ConfigMap>(), "shop", json!({"data": {"COLOUR": "red"}})).await;
        assert_eq!(written(&test.settle().await), ["apply ConfigMap"]);
        test.delete(&Kind::of::<Service>(), "shop").await;
        assert_eq!(written(&test.settle().await), ["create Service"]);
        let settings = test.get(&Kind::of::<ConfigMap>(), "shop").await.unwrap();
        assert_eq!(settings["data"], json!({"COLOUR": "blue"}));
    })
    .await;
}

#[tokio::test]
async fn a_deleted_web_app_takes_its_children_along() {
    for_each_cluster(async |cluster| {
        let test = shop(&cluster).await;
        test.delete(&Kind::of::<WebApp>(), "shop").await;
        assert!(written(&test.settle().await).is_empty(), "Kubernetes deletes children by itself");
        for kind in [Kind::of::<ConfigMap>(), Kind::of::<Deployment>(), Kind::of::<Service>()] {
            eventually(&format!("{kind} to go"), async || (!test.exists(&kind, "shop").await).then_some(()))
                .await;
        }
        assert!(written(&test.settle().await).is_empty(), "nothing is made for a parent that is gone");
    })
    .await;
}

#[tokio::test]
async fn it_is_ready_when_its_pods_are() {
    for_each_cluster(async |cluster| {
        let test = shop(&cluster).await;
        // No controller of Deployments runs in a test; this is what it would say.
        let status = json!({"status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
            "readyReplicas": 2, "availableReplicas": 2}});
        cluster.patch_status(&Kind::of::<Deployment>(), "shop", status).await;
        assert_eq!(written(&test.settle().await), ["write status of WebApp"]);
        let app = test.get(&Kind::of::<WebApp>(), "shop").await.unwrap();
        assert_eq!(ready(&app)["status"], "True");
        assert_eq!(ready(&app)["message"], "2 of 2 pods are ready");
    })
    .await;
}
