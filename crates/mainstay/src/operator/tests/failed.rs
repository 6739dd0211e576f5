//! Decisions that failed, looked at when all is well again.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{run, server};
use crate::controller::Controller;
use crate::handler::{Error, SyncRequest, SyncResponse};
use crate::kind::{Key, Kind};
use crate::operator::Operator;

/// Config maps have a Secret, unless their data says that they are bad.
fn controller(refuses: bool) -> Controller {
    Controller::of::<ConfigMap>().owns::<Secret>().sync(move |request: &SyncRequest| {
        if refuses && request.parent_json()["data"]["bad"] == "yes" {
            return Err(Error::new("it is bad"));
        }
        let metadata = json!({"name": request.name()});
        SyncResponse::new().with_child(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
    })
}

#[tokio::test(start_paused = true)]
async fn the_last_failed_decision_can_be_replayed_when_all_is_well_again() {
    let client = Client::new(server(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = serde_json::from_value(json!({"metadata": {"name": "paint"}, "data": {"bad": "yes"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let operator = Operator::builder("pairs", client).namespace("default").controller(controller(true));
    let operator = operator.build().unwrap();
    let running = run(&operator);
    let (kind, key) = (Kind::of::<ConfigMap>(), Key::namespaced("default", "paint"));
    let other = Key::namespaced("default", "kube-root-ca.crt");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(operator.record_failed(&kind, &other).is_none(), "nothing failed for it");

    let good = Patch::Merge(json!({"data": {"bad": "no"}}));
    maps.patch("paint", &PatchParams::default(), &good).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(operator.explain(&kind, &key).unwrap().error, None);
    let recording = operator.record_failed(&kind, &key).expect("it is still kept");
    let again = recording.replay(&controller(true)).await.unwrap_err();
    assert_eq!(again.to_string(), "the handler failed: it is bad");
    let plan = recording.replay(&controller(false)).await.unwrap();
    assert_eq!(plan.steps.len(), 1, "a handler without the fault shows what it would have done: {plan}");

    maps.delete("paint", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(operator.record_failed(&kind, &key).is_none(), "it is gone");
    running.abort();
}
