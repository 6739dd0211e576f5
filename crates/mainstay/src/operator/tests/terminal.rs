//! A handler that has given up on a parent whose status others write too.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{run, server};
use crate::controller::Controller;
use crate::handler::{Error, SyncRequest, SyncResponse};
use crate::operator::Operator;

#[tokio::test(start_paused = true)]
async fn conditions_of_others_stay_theirs() {
    let client = Client::new(server(), "default");
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let web = json!({"metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}});
    deployments.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
    let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "status": {"replicas": 3, "conditions": [{"type": "Available", "status": "True"}]}});
    deployments.patch_status("web", &PatchParams::apply("others"), &Patch::Apply(theirs)).await.unwrap();
    let controller = Controller::of::<Deployment>()
        .sync(|_: &SyncRequest| Err::<SyncResponse, _>(Error::terminal("no hope")));
    let operator = Operator::builder("ours", client).namespace("default").controller(controller);
    let operator = operator.build().unwrap();
    let running = run(&operator);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let web = deployments.get("web").await.unwrap();
    let status = web.status.unwrap();
    let conditions: Vec<_> = status.conditions.unwrap().into_iter().map(|found| found.type_).collect();
    assert_eq!(
        (status.replicas, conditions),
        (Some(3), vec!["Available".to_owned(), "Reconciled".to_owned()])
    );
    let managed = web.metadata.managed_fields.unwrap();
    let owned = managed.iter().find(|entry| entry.manager.as_deref() == Some("ours")).unwrap();
    let owned = serde_json::to_string(&owned.fields_v1).unwrap();
    assert!(owned.contains("Reconciled") && !owned.contains("Available"), "{owned}");
    assert!(!owned.contains("replicas"), "{owned}");
    running.abort();
}
