//! Rules from the documents that a server publishes, and what it makes of what it is sent.

use expect_test::expect;
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use mainstay_apiserver::ApiServer;
use serde_json::{Value, json};

use super::super::{Desired, Document, Extent, Learned, Ownership, Rules, compare, difference};
use super::lines;
use crate::{Key, Kind, Scope};

fn client() -> Client {
    Client::new(ApiServer::builder().build().unwrap(), "default")
}

async fn rules_of(client: &Client, kind: &Kind) -> Rules {
    let request = Request::get(Document::path(kind)).body(Vec::new()).unwrap();
    let text = client.request_text(request).await.unwrap();
    Document::parse(text.as_bytes()).unwrap().rules(kind).unwrap()
}

fn describe(rules: &Rules, places: &[&str]) -> String {
    lines(
        places
            .iter()
            .map(|place| format!("{place}: {}", rules.describe(&place.split(' ').collect::<Vec<_>>()))),
    )
}

#[tokio::test]
async fn the_rules_of_built_in_kinds_are_those_of_the_server() {
    let client = client();
    let deployment = rules_of(&client, &Kind::of::<Deployment>()).await;
    expect![[r#"
        metadata ownerReferences: map by uid
        metadata finalizers: set
        spec selector: atomic list, atomic map
        spec template metadata finalizers: set
        spec template spec containers: map by name=""
        spec template spec containers [] ports: map by containerPort=0,protocol="TCP"
        spec template spec containers [] args: atomic list
        spec template spec containers [] env: map by name=""
        spec template spec containers [] env [] valueFrom fieldRef: atomic list, atomic map
        spec template spec containers [] resources requests cpu: atomic list, quantity
        spec template spec volumes [] emptyDir sizeLimit: atomic list, quantity
        spec template spec tolerations: atomic list
        spec template spec nodeSelector: atomic list, atomic map
        spec template spec topologySpreadConstraints: map by topologyKey="",whenUnsatisfiable=""
        spec template spec imagePullSecrets: map by name=""
    "#]]
    .assert_eq(&describe(
        &deployment,
        &[
            "metadata ownerReferences",
            "metadata finalizers",
            "spec selector",
            "spec template metadata finalizers",
            "spec template spec containers",
            "spec template spec containers [] ports",
            "spec template spec containers [] args",
            "spec template spec containers [] env",
            "spec template spec containers [] env [] valueFrom fieldRef",
            "spec template spec containers [] resources requests cpu",
            "spec template spec volumes [] emptyDir sizeLimit",
            "spec template spec tolerations",
            "spec template spec nodeSelector",
            "spec template spec topologySpreadConstraints",
            "spec template spec imagePullSecrets",
        ],
    ));

    let service = rules_of(&client, &Kind::of::<Service>()).await;
    let volume = rules_of(&client, &Kind::of::<PersistentVolume>()).await;
    expect![[r#"
        spec ports: map by port=0,protocol="TCP"
        spec selector: atomic list, atomic map
        spec clusterIPs: atomic list
        spec claimRef: atomic list
    "#]]
    .assert_eq(
        &(describe(&service, &["spec ports", "spec selector", "spec clusterIPs"])
            + &describe(&volume, &["spec claimRef"])),
    );
    assert!(rules_of(&client, &Kind::of::<Secret>()).await.is_empty());
    let pod = rules_of(&client, &Kind::of::<Pod>()).await;
    assert!(pod.len() < 150, "{}", pod.len());
}

#[tokio::test]
async fn a_schema_that_contains_itself_is_read() {
    let rules = rules_of(&client(), &Kind::of::<CustomResourceDefinition>()).await;
    let properties = ["properties x"; 6].join(" ");
    let deep = format!("spec versions [] schema openAPIV3Schema {properties} x-kubernetes-validations");
    expect![[r#"
        map by rule=""
    "#]]
    .assert_eq(&describe(&rules, &[&deep]).replace(&format!("{deep}: "), ""));
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {"type": "object", "required": ["port"], "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                        }},
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "order": {"type": "array", "items": {"type": "string"}},
                    "choice": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "additionalProperties": {"type": "string"},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }}}],
        },
    })
}

#[tokio::test]
async fn the_rules_of_a_custom_kind_are_those_of_its_definition() {
    let client = client();
    let definitions = Kind::of::<CustomResourceDefinition>();
    let request =
        Request::post(definitions.collection_path(None)).body(definition().to_string().into_bytes());
    let _: Value = client.request(request.unwrap()).await.unwrap();
    let kind = Kind::new("example.com/v1", "Gadget", "gadgets", Scope::Namespaced);
    let mut found = None;
    for _ in 0..100 {
        let request = Request::get(Document::path(&kind)).body(Vec::new()).unwrap();
        let text = client.request_text(request).await.unwrap_or_default();
        found = Document::parse(text.as_bytes()).ok().and_then(|document| document.rules(&kind));
        if found.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    expect![[r#"
        spec parts: map by port,protocol="TCP"
        spec tags: set
        spec order: atomic list
        spec choice: atomic list, atomic map
        spec free: atomic list
        metadata finalizers: set
    "#]]
    .assert_eq(&describe(
        &found.unwrap(),
        &["spec parts", "spec tags", "spec order", "spec choice", "spec free", "metadata finalizers"],
    ));
}

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {}, "annotations": {"note": "x"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "hostNetwork": false,
                    "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}}],
                    "containers": [{
                        "name": "web",
                        "image": "web:1",
                        "args": [],
                        "volumeMounts": [],
                        "env": [
                            {"name": "EMPTY", "value": ""},
                            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        ],
                        "ports": [{"containerPort": 80}],
                        "resources": {"requests": {"cpu": "1000m"}},
                    }],
                },
            },
        },
    })
}

async fn patch(client: &Client, query: &str, content_type: &str, body: &Value) -> Value {
    let path = Kind::of::<Deployment>().object_path(&Key::namespaced("default", "web"));
    let request = Request::patch(format!("{path}?{query}"))
        .header("content-type", content_type)
        .body(body.to_string().into_bytes())
        .unwrap();
    client.request(request).await.unwrap()
}

async fn apply(client: &Client, object: &Value) -> Value {
    patch(client, "fieldManager=web-operator&force=true", "application/apply-patch+yaml", object).await
}

#[tokio::test]
async fn what_the_server_makes_of_an_apply_is_learned() {
    let client = client();
    let rules = rules_of(&client, &Kind::of::<Deployment>()).await;
    let desired = Desired::new(web()).unwrap();
    let sent = desired.to_apply();
    let live = apply(&client, &sent).await;
    assert!(desired.was_applied_to(&live));
    let rewritten = compare(&sent, &live, &rules, &Learned::nothing());
    expect![[r#"
        metadata.labels: added {}
        spec.template.spec.containers[name=web].args: added []
        spec.template.spec.containers[name=web].env[name=EMPTY].value: added ""
        spec.template.spec.containers[name=web].env[name=POD].valueFrom.fieldRef: {"apiVersion":"v1","fieldPath":"metadata.name"} → {"fieldPath":"metadata.name"}
        spec.template.spec.hostNetwork: added false
    "#]]
    .assert_eq(&lines(&rewritten));
    let learned = Learned::from_response(&sent, &live, &rules);
    assert_eq!(compare(&sent, &live, &rules, &learned), []);

    // After a restart nothing is learned, and the record of ownership says the same.
    let ownership = Ownership::of(&live, "web-operator", "");
    assert!(rewritten.iter().all(|change| ownership.owns_change(change, &rules)));
    assert_eq!(ownership.paths_not_in(&sent, &rules), []);
}

#[tokio::test]
async fn what_somebody_else_changes_is_seen_and_is_not_ours() {
    let client = client();
    let rules = rules_of(&client, &Kind::of::<Deployment>()).await;
    let sent = Desired::new(web()).unwrap().to_apply();
    let live = apply(&client, &sent).await;
    let learned = Learned::from_response(&sent, &live, &rules);
    let edit = json!([
        {"op": "replace", "path": "/spec/replicas", "value": 5},
        {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": true},
        {"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["-v"]},
        {"op": "add", "path": "/spec/template/spec/containers/0/env/0", "value": {"name": "NEW", "value": "1"}},
        {"op": "add", "path": "/spec/template/spec/containers/0/env/1/value", "value": "full"},
        {"op": "remove", "path": "/spec/template/spec/volumes/0/emptyDir/sizeLimit"},
    ]);
    let edited = patch(&client, "fieldManager=kubectl-edit", "application/json-patch+json", &edit).await;
    let changes = compare(&sent, &edited, &rules, &learned);
    expect![[r#"
        spec.replicas: 5 → 2
        spec.template.spec.containers[name=web].args: ["-v"] → []
        spec.template.spec.containers[name=web].env[name=EMPTY].value: "full" → ""
        spec.template.spec.hostNetwork: true → false
        spec.template.spec.volumes[name=scratch].emptyDir.sizeLimit: added "1024Mi"
    "#]]
    .assert_eq(&lines(&changes));
    let ownership = Ownership::of(&edited, "web-operator", "");
    for change in &changes {
        assert!(!ownership.owns_change(change, &rules), "{change}");
        assert!(!ownership.owns(&change.path), "{change}");
    }
}

#[tokio::test]
async fn what_is_not_desired_any_more_is_what_an_apply_removes() {
    let client = client();
    let rules = rules_of(&client, &Kind::of::<Deployment>()).await;
    let live = apply(&client, &web()).await;
    let mut desired = web();
    desired["metadata"]["annotations"] = Value::Null;
    desired["spec"]["replicas"] = Value::Null;
    let pod = &mut desired["spec"]["template"]["spec"];
    pod["volumes"] = Value::Null;
    pod["containers"][0]["env"].as_array_mut().unwrap().remove(1);
    pod["containers"][0]["ports"] = json!([]);
    pod["containers"][0]["resources"] = Value::Null;
    let desired = Desired::new(desired).unwrap();

    let dropped = Ownership::of(&live, "web-operator", "").paths_not_in(desired.object(), &rules);
    let after = apply(&client, desired.object()).await;
    expect![[r#"
        metadata.annotations.note
        spec.replicas
        spec.template.spec.containers[name=web].env[name=POD]
        spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP]
        spec.template.spec.containers[name=web].resources.requests.cpu
        spec.template.spec.volumes[name=scratch]
    "#]]
    .assert_eq(&lines(dropped));
    expect![[r#"
        metadata.annotations: removed, was {"note":"x"}
        spec.replicas: 2 → 1
        spec.template.spec.containers[name=web].env[name=POD]: removed, was {"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fi…
        spec.template.spec.containers[name=web].ports: removed, was [{"containerPort":80,"protocol":"TCP"}]
        spec.template.spec.containers[name=web].resources.requests: removed, was {"cpu":"1"}
        spec.template.spec.volumes: removed, was [{"emptyDir":{"sizeLimit":"1Gi"},"name":"scratch"}]
    "#]]
    .assert_eq(&lines(difference(&live, &after, &rules, Extent::WithoutStatus)));
}
