use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use mainstay::Kind;
use mainstay_testkit::{Cluster, OperatorTest, eventually};
use serde_json::{Value, json};

use super::simulated::{ANNOTATION, CONDITION};
use crate::node::{NAME, Node, configure};

fn condition<'a>(pod: &'a Value, type_: &str) -> Option<&'a Value> {
    pod["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

fn test_on(cluster: &Cluster) -> OperatorTest {
    OperatorTest::new(cluster, NAME, |operator| configure(operator, &Node::new("here", "192.0.2.1")))
}

fn pod(name: &str, more: Value) -> Value {
    let mut spec = json!({
        "nodeName": "here", "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "nginx"}],
    });
    let Value::Object(more) = more else { panic!("{more} is no object") };
    spec.as_object_mut().unwrap().extend(more);
    let annotations = json!({"mainstay.dev/starts-after": "0s", "example.com/own": "stays"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec})
}

#[tokio::test]
async fn a_pod_does_not_wait_for_what_is_optional() {
    let cluster = Cluster::embedded().await.unwrap();
    let test = test_on(&cluster);
    let items = json!([{"key": "colour", "path": "colour"}]);
    // The first two refer to nothing that is there, the others to what lacks the key.
    for (place, name) in ["absent", "there"].into_iter().enumerate() {
        for (number, optional) in [true, false].into_iter().enumerate() {
            let source = json!({"name": name, "items": items, "optional": optional});
            let secret = json!({"secretName": name, "items": items, "optional": optional});
            let volumes = [
                json!({"configMap": source}),
                json!({"secret": secret}),
                json!({"projected": {"sources": [{"configMap": source}]}}),
                json!({"projected": {"sources": [{"secret": source}]}}),
            ];
            for (which, mut volume) in volumes.into_iter().enumerate() {
                volume["name"] = json!("files");
                test.create(pod(&format!("web-{place}-{number}-{which}"), json!({"volumes": [volume]})))
                    .await;
            }
        }
    }
    for kind in ["ConfigMap", "Secret"] {
        let data = json!({"other": "eA=="});
        test.create(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "there"}, "data": data}))
            .await;
    }
    test.settle().await;
    for place in 0..2 {
        for (number, expected) in ["Running", "Pending"].into_iter().enumerate() {
            for which in 0..4 {
                let name = format!("web-{place}-{number}-{which}");
                let pod = test.get(&Kind::of::<Pod>(), &name).await.unwrap();
                assert_eq!(pod["status"]["phase"], expected, "{name}: {}", pod["status"]);
            }
        }
    }
}

#[tokio::test]
async fn a_simulated_pod_says_so_by_annotation_condition_and_event() {
    let cluster = Cluster::embedded().await.unwrap();
    let test = test_on(&cluster);
    test.create(pod("web", json!({}))).await;
    test.settle().await;
    let pod = test.get(&Kind::of::<Pod>(), "web").await.unwrap();
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["metadata"]["annotations"][ANNOTATION], "true");
    assert_eq!(pod["metadata"]["annotations"]["example.com/own"], "stays");
    let simulated = condition(&pod, CONDITION).expect("the condition is there");
    assert_eq!((&simulated["status"], &simulated["reason"]), (&json!("True"), &json!("NoProcess")));
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(cluster.client(), cluster.namespace());
    let notes = eventually("an event says so", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        let notes: Vec<_> =
            events.items.into_iter().filter_map(|event| Some((event.reason?, event.note?))).collect();
        notes.iter().any(|(reason, _)| reason == "Started").then_some(notes)
    })
    .await;
    let simulated = notes.iter().find(|(reason, _)| reason == "Simulated").expect("the event is there");
    assert_eq!(simulated.1, "Container main is simulated: image \"nginx\" runs nowhere");
    assert!(notes.iter().all(|(reason, _)| reason != "Pulled"), "{notes:?}");
    test.assert_settled().await;
}
