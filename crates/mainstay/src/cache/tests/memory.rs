//! What a cache takes, counted, not measured.

use serde_json::{Value, json};

use crate::cache::shelf::{Event, Relist, Shelf};
use crate::cache::wire::{Shape, read_object};
use crate::cache::{Object, Options};
use crate::kind::{Kind, Scope};

/// A pod as controllers, scheduler and kubelet leave it.
fn pod(number: usize) -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example.com/team/{name}:1.2.3"), "imagePullPolicy": "IfNotPresent",
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": true}],
        })
    };
    let condition = |name: &str| json!({"type": name, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2024-05-01T12:00:00Z"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("web-6d4cf56db6-{number:05}"), "namespace": format!("team-{}", number % 20),
            "generateName": "web-6d4cf56db6-", "uid": format!("00112233-4455-6677-8899-{number:012x}"),
            "resourceVersion": (number + 1).to_string(), "creationTimestamp": "2024-05-01T12:00:00Z",
            "labels": {"app.kubernetes.io/name": "web", "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4cf56db6", "controller": true,
                "blockOwnerDeletion": true, "uid": format!("ffeeddcc-4455-6677-8899-{:012x}", number / 3),
            }],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:conditions": {}}}}],
        },
        "spec": {
            "containers": [container("web"), container("sidecar")], "nodeName": "node-7", "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "serviceAccountName": "default", "terminationGracePeriodSeconds": 30,
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "hostIP": "192.168.0.1", "qosClass": "Burstable",
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
        },
    })
}

fn filled(options: &Options) -> Shelf {
    let shape = Shape::new(&Kind::new("v1", "Pod", "pods", Scope::Namespaced), options);
    let mut shelf = Shelf::default();
    shelf.begin_relist(Relist::Widened);
    for number in 0..3000 {
        shelf.item(read_object(&shape, pod(number).to_string().as_bytes()).unwrap());
    }
    shelf.end_relist(3000);
    shelf
}

fn ratio(shelf: &Shelf) -> f64 {
    let float = |bytes: usize| f64::from(u32::try_from(bytes).unwrap());
    float(shelf.allocated_bytes()) / float(shelf.json_bytes())
}

#[test]
fn cache_of_pods_takes_at_most_half_more_than_their_text() {
    let shelf = filled(&Options::default());
    assert_eq!(shelf.len(), 3000);
    assert!(shelf.json_bytes() / shelf.len() > 1_500, "the pods are as large as pods are");
    let ratio = ratio(&shelf);
    assert!(ratio < 1.5, "{ratio}");
    // Changes leave nothing behind.
    let before = (shelf.json_bytes(), shelf.allocated_bytes());
    let mut shelf = shelf;
    let kind = Kind::new("v1", "Pod", "pods", Scope::Namespaced);
    for number in 0..500 {
        let mut changed = pod(number);
        changed["metadata"]["resourceVersion"] = json!((number + 4000).to_string());
        shelf.apply_event(Event::Seen(Object::from_value(&kind, &changed).unwrap()));
    }
    let longer = (shelf.json_bytes() - before.0, shelf.allocated_bytes() - before.1);
    assert_eq!(longer.0, longer.1, "only the texts of the versions differ in length");
}

#[test]
fn metadata_only_takes_less_than_half() {
    let (whole, metadata) =
        (filled(&Options::default()), filled(&Options { metadata_only: true, ..Options::default() }));
    assert!(metadata.allocated_bytes() * 2 < whole.allocated_bytes());
}

#[test]
fn header_of_an_object_stays_small() {
    assert!(size_of::<Object>() <= 144, "{}", size_of::<Object>());
}
