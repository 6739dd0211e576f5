//! A child that can never be written, because somebody else is always faster.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use serde_json::json;

use super::{run, server};
use crate::controller::{Controller, ControllerBuilder};
use crate::handler::{SyncRequest, SyncResponse};
use crate::kind::{Key, Kind};
use crate::operator::Operator;

/// Requests of an operator whose Secrets are always in conflict.
#[derive(Clone, Default)]
struct Sent {
    secrets: Arc<AtomicUsize>,
    statuses: Arc<AtomicUsize>,
}

impl Sent {
    fn client(&self, server: Client) -> Client {
        let sent = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (server, path) = (server.clone(), request.uri().path());
            let is_patch = request.method() == http::Method::PATCH;
            let conflicts = is_patch && path.contains("/secrets/");
            sent.secrets.fetch_add(usize::from(conflicts), Ordering::SeqCst);
            sent.statuses.fetch_add(usize::from(is_patch && path.ends_with("/status")), Ordering::SeqCst);
            async move {
                if !conflicts {
                    return server.send(request).await;
                }
                let status =
                    json!({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "exists"});
                let body = Body::from(status.to_string().into_bytes());
                Ok(http::Response::builder().status(409).body(body).expect("a valid response"))
            }
        });
        Client::new(service, "default")
    }
}

/// An operator whose parents want the Secret that cannot be written.
fn operator(client: Client, parents: ControllerBuilder) -> Operator {
    let controller = parents.owns::<Secret>().sync(|_: &SyncRequest| {
        let metadata = json!({"name": "taken"});
        SyncResponse::new().with_child(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
    });
    Operator::builder("pairs", client).namespace("default").controller(controller).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_child_that_always_conflicts_is_tried_less_often_and_reported() {
    let sent = Sent::default();
    let client = sent.client(Client::new(server(), "default"));
    let operator = operator(client, Controller::of::<ConfigMap>());
    let running = run(&operator);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let tried = sent.secrets.load(Ordering::SeqCst);
    assert!((10..=40).contains(&tried), "{tried} times in ten minutes");
    let key = Key::namespaced("default", "kube-root-ca.crt");
    let report = operator.runner.report(&Kind::of::<ConfigMap>(), &key).unwrap();
    let text = format!("{report:?}");
    assert!(text.contains("Contended"), "{text}");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_status_reports_it_once() {
    let (sent, server) = (Sent::default(), Client::new(server(), "default"));
    let deployments: Api<Deployment> = Api::default_namespaced(server.clone());
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let web = json!({"metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}});
    deployments.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
    let operator = operator(sent.client(server), Controller::of::<Deployment>());
    let running = run(&operator);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let status = deployments.get("web").await.unwrap().status.unwrap();
    let reasons: Vec<_> =
        status.conditions.unwrap().into_iter().map(|found| (found.type_, found.reason)).collect();
    assert_eq!(reasons, [("Reconciled".to_owned(), Some("Contended".to_owned()))]);
    assert_eq!(sent.statuses.load(Ordering::SeqCst), 1, "the message is the same each time");
    running.abort();
}
