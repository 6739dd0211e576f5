//! Which pods are peers, and which can be asked.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::pods::peer_pods;
use super::config;

fn pod(name: &str, group: &str, status: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "uid": name, "labels": {"mainstay.dev/peer-group": group},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": group, "uid": "u", "controller": true,
            }],
        },
        "status": status,
    }))
    .unwrap()
}

fn ready(ip: &str, container: &str) -> Value {
    json!({
        "phase": "Running", "podIP": ip, "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "peer", "image": "i", "imageID": "i", "ready": true, "restartCount": 0, "containerID": container,
        }],
    })
}

fn shown(pods: &[Pod], asks_simulated: bool) -> Vec<String> {
    let config = config(&json!({"peers": [{}, {"name": "far", "rpc": {"port": 7}}]}));
    let told = peer_pods(pods, &config, asks_simulated).into_iter().map(|pod| match pod.standing {
        Ok(asked) => format!("{} {}", pod.name, asked.endpoint.url),
        Err(unready) => format!("{} {}", pod.name, unready.reason()),
    });
    told.collect()
}

#[test]
fn peers_are_in_the_order_of_groups_and_of_numbers() {
    let up = |name: &str, group: &str| pod(name, group, &ready("10.0.0.1", "containerd://1"));
    let pods =
        [up("far-0", "far"), up("peers-0-10", "peers-0"), up("peers-0-2", "peers-0"), up("gone-0", "gone")];
    assert_eq!(
        shown(&pods, false),
        ["peers-0-2 http://10.0.0.1:5001", "peers-0-10 http://10.0.0.1:5001", "far-0 http://10.0.0.1:7"]
    );
}

#[test]
fn pods_that_only_seem_to_run_are_asked_by_nobody_but_simulations() {
    let pods = [
        pod("peers-0-0", "peers-0", &ready("10.200.0.1", "mainstay://u/peer/0")),
        pod("peers-0-1", "peers-0", &ready("127.4.5.6", "mainstay://u/peer/0")),
        pod("peers-0-2", "peers-0", &ready("fd00::1", "containerd://1")),
    ];
    assert_eq!(
        shown(&pods, false),
        ["peers-0-0 Simulated", "peers-0-1 http://127.4.5.6:5001", "peers-0-2 http://[fd00::1]:5001"]
    );
    assert_eq!(shown(&pods, true)[0], "peers-0-0 http://10.200.0.1:5001");
}

#[test]
fn a_pod_that_cannot_be_asked_tells_why() {
    let mut going = pod("peers-0-3", "peers-0", &ready("10.0.0.1", "containerd://1"));
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    let unready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
    let pods = [
        pod("peers-0-0", "peers-0", &json!({"phase": "Pending"})),
        pod("peers-0-1", "peers-0", &unready),
        pod("peers-0-2", "peers-0", &json!({"phase": "Failed"})),
        going,
    ];
    let told = shown(&pods, false);
    assert_eq!(
        told,
        ["peers-0-0 PodPending", "peers-0-1 PodNotReady", "peers-0-2 PodEnded", "peers-0-3 PodTerminating"]
    );
}

#[test]
fn a_pod_that_no_group_made_is_no_peer() {
    let mut foreign = pod("peers-0-0", "peers-0", &ready("10.0.0.1", "containerd://1"));
    foreign.metadata.owner_references = None;
    assert!(shown(&[foreign], true).is_empty());
}

#[test]
fn what_holds_a_pod_up_is_told_in_the_words_of_its_node() {
    let check = |statuses: Value, expected: &str| {
        let mut status = json!({"phase": "Pending"});
        status.as_object_mut().unwrap().extend(statuses.as_object().unwrap().clone());
        let found = peer_pods(&[pod("peers-0-0", "peers-0", &status)], &config(&json!({})), false);
        assert_eq!(found[0].standing.as_ref().unwrap_err().to_string(), expected);
    };
    let container = |state: Value, last: Value| json!([{"name": "c", "image": "i", "imageID": "i", "ready": false, "restartCount": 0, "state": state, "lastState": last}]);
    let waiting = |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
    let ended = |reason: &str, code: i32| json!({"terminated": {"reason": reason, "exitCode": code}});
    check(json!({}), "its pod does not run yet");
    let creating = container(json!({"waiting": {"reason": "ContainerCreating"}}), json!({}));
    check(json!({"containerStatuses": creating}), "its pod does not run yet: ContainerCreating");
    check(
        json!({"containerStatuses": container(waiting("RunContainerError", "no such program"), json!({}))}),
        "its pod does not run yet: RunContainerError: no such program",
    );
    check(
        json!({"containerStatuses": container(waiting("CrashLoopBackOff", "back-off 10s"), ended("Error", 2))}),
        "its pod does not run yet: CrashLoopBackOff: it ended with code 2",
    );
    check(
        json!({"containerStatuses": container(waiting("ErrImagePull", &"é".repeat(161)), json!({}))}),
        &format!("its pod does not run yet: ErrImagePull: {}…", "é".repeat(160)),
    );
    // A step before the peer that failed is why, and one that is done is not.
    let initializing = container(waiting("PodInitializing", ""), json!({}));
    for (step, why) in [
        (ended("Error", 3), "its pod does not run yet: Error: it ended with code 3"),
        (ended("Completed", 0), "its pod does not run yet: PodInitializing"),
    ] {
        let steps = container(step, json!({}));
        check(json!({"initContainerStatuses": steps, "containerStatuses": initializing}), why);
    }
}
