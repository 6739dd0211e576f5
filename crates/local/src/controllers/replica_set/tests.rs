use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use mainstay::Kind;
use mainstay::plan::RECONCILE_NOW;
use mainstay_testkit::{Cluster, OperatorTest};
use serde_json::{Value, json};

use super::*;
use crate::controllers::{NAME, configure};

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

/// A pod that has run and been ready since a minute, on a node, with these changes.
fn pod(name: &str, changes: Value) -> Pod {
    let mut value = json!({
        "metadata": {
            "name": name, "uid": name, "creationTimestamp": "2029-12-31T23:59:00Z", "labels": {"app": "web"},
        },
        "spec": {"nodeName": "here", "containers": [{"name": "web"}]},
        "status": {"phase": "Running", "conditions": [ready("True", "2029-12-31T23:59:00Z")]},
    });
    merge(&mut value, changes);
    serde_json::from_value(value).unwrap()
}

fn ready(status: &str, since: &str) -> Value {
    json!({"type": "Ready", "status": status, "lastTransitionTime": since})
}

fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(into.entry(name).or_insert(Value::Null), change);
            }
        }
        (into, changes) => *into = changes,
    }
}

/// Checks that the one goes before the other, whatever their uids and their order.
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_goes_first(first: Value, second: Value) {
    for (first_name, second_name) in [("a", "b"), ("b", "a")] {
        let (first, second) = (pod(first_name, first.clone()), pod(second_name, second.clone()));
        let nodes = BTreeMap::from([("crowded".to_owned(), 3), ("here".to_owned(), 1)]);
        for all in [[first.clone(), second.clone()], [second, first]] {
            let gone = order::first_to_go(&all, 1, &nodes, now());
            assert_eq!(gone[0].name_any(), first_name);
        }
    }
}

#[test]
fn a_pod_goes_first_that_would_be_missed_least() {
    let cost = |cost: &str| json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}});
    let since = |since: &str| json!({"status": {"conditions": [ready("True", since)]}});
    let restarted = |count: i32| {
        json!({"status": {"containerStatuses": [
            {"name": "web", "image": "web", "imageID": "", "ready": true, "restartCount": count},
        ]}})
    };
    let unready = json!({"status": {"conditions": [ready("False", "2029-12-31T23:59:00Z")]}});
    check_goes_first(json!({"spec": {"nodeName": ""}}), json!({"status": {"phase": "Pending"}}));
    check_goes_first(json!({"status": {"phase": "Pending"}}), json!({"status": {"phase": "Unknown"}}));
    check_goes_first(json!({"status": {"phase": "Unknown"}}), unready.clone());
    check_goes_first(unready, cost("-5"));
    check_goes_first(cost("-5"), json!({}));
    check_goes_first(json!({}), cost("5"));
    check_goes_first(json!({"spec": {"nodeName": "crowded"}}), since("2029-12-31T23:59:59Z"));
    check_goes_first(since("2029-12-31T23:59:59Z"), restarted(9));
    check_goes_first(restarted(9), restarted(1));
    check_goes_first(json!({"metadata": {"creationTimestamp": "2029-12-31T23:59:59Z"}}), json!({}));
}

#[test]
fn a_deletion_cost_that_is_no_number_counts_as_none() {
    let annotated = |cost: &str| {
        json!({"metadata": {
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost},
            "creationTimestamp": "2029-12-31T23:59:59Z",
        }})
    };
    for cost in ["", "high", "+7", "007", "1.5"] {
        check_goes_first(annotated(cost), json!({}));
    }
}

#[test]
fn pods_of_about_the_same_age_go_in_the_order_of_their_uids() {
    let all =
        [pod("b", json!({})), pod("a", json!({"metadata": {"creationTimestamp": "2029-12-31T23:59:01Z"}}))];
    assert_eq!(order::first_to_go(&all, 1, &BTreeMap::new(), now())[0].name_any(), "a");
}

fn spec(min_ready_seconds: i32) -> ReplicaSetSpec {
    serde_json::from_value(json!({
        "selector": {"matchLabels": {"app": "web"}},
        "minReadySeconds": min_ready_seconds,
        "template": {"metadata": {"labels": {"app": "web", "tier": "front"}}},
    }))
    .unwrap()
}

#[test]
fn a_status_counts_what_is_active_labelled_ready_and_available() {
    let labelled = json!({"metadata": {"labels": {"tier": "front"}}});
    let fresh = json!({"status": {"conditions": [ready("True", "2029-12-31T23:59:55Z")]}});
    let starting = json!({"status": {"phase": "Pending", "conditions": null}});
    let pods = [pod("a", labelled), pod("b", fresh), pod("c", starting)];
    assert_eq!(
        json!(status(&spec(10), &pods, 2, now())),
        json!({
            "replicas": 3, "fullyLabeledReplicas": 1, "readyReplicas": 2, "availableReplicas": 1,
            "terminatingReplicas": 2,
        })
    );
    assert_eq!(json!(status(&spec(0), &[], 0, now())), json!({"replicas": 0, "terminatingReplicas": 0}));
}

#[test]
fn the_next_look_is_when_the_first_pod_becomes_available() {
    let since = |since: &str| json!({"status": {"conditions": [ready("True", since)]}});
    let pods = [
        pod("a", since("2029-12-31T23:59:55Z")),
        pod("b", since("2029-12-31T23:59:53Z")),
        pod("c", since("2029-12-31T23:59:00Z")),
        pod("d", json!({"status": {"conditions": null}})),
    ];
    assert_eq!(next_available(&pods, Some(10), now()), Some(Duration::from_secs(3)));
    assert_eq!(next_available(&pods, None, now()), None);
}

#[test]
fn a_new_pod_says_what_its_name_was_made_from() {
    let template = spec(0).template.unwrap();
    let pod = new_pod(&template, "web-", "web-x");
    assert_eq!(pod["metadata"]["generateName"], "web-");
    assert_eq!(pod["metadata"]["labels"]["tier"], "front");
}

#[tokio::test]
async fn a_set_that_cannot_have_its_pods_says_so_until_it_can_and_so_does_its_deployment() {
    let cluster = Cluster::embedded().await.unwrap();
    let test = OperatorTest::new(&cluster, NAME, configure);
    let labels = json!({"app": "web"});
    test.create(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": "late", "containers": [{"name": "web", "image": "web"}]},
            },
        },
    }))
    .await;
    test.settle().await;
    let deployment = test.get(&Kind::of::<Deployment>(), "web").await.unwrap();
    let failure = condition(&deployment, "ReplicaFailure").expect("it is told");
    assert_eq!((&failure["status"], &failure["reason"]), (&json!("True"), &json!("FailedCreate")));
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("serviceaccount \"late\" not found"), "{message}");
    let progress = condition(&deployment, "Progressing").unwrap();
    assert_eq!(progress["reason"], "NewReplicaSetCreated");
    let set = progress["message"].as_str().unwrap().split('"').nth(1).unwrap().to_owned();
    assert_eq!(deployment["status"]["unavailableReplicas"], 1);

    test.create(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "late"}})).await;
    let hurry = json!({"metadata": {"annotations": {RECONCILE_NOW: "please"}}});
    test.patch(&Kind::of::<ReplicaSet>(), &set, hurry).await;
    test.settle().await;
    let deployment = test.get(&Kind::of::<Deployment>(), "web").await.unwrap();
    assert_eq!(condition(&deployment, "ReplicaFailure"), None);
    assert_eq!(deployment["status"]["replicas"], 1);
    test.assert_settled().await;
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}
