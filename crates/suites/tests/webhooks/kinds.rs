//! Subresources, and kinds that are served in more than one version.

use serde_json::{Value, json};

use crate::webhooks::hooks::Answer;
use crate::webhooks::stage::{Stage, play};

/// Rules for writes of a resource or subresource in any group and version.
fn all_writes_of(resource: &str) -> Value {
    json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]}])
}

/// Defines `things` in the versions `v1` and, stored, `v2`, with status and scale.
async fn define_things(stage: &mut Stage) {
    let version = |name: &str, stored: bool| {
        json!({
            "name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "replicas": {"type": "integer"},
                    "size": {"type": "string", "default": format!("default of {name}")},
                }},
                "status": {"type": "object", "properties": {
                    "replicas": {"type": "integer"}, "selector": {"type": "string"}, "phase": {"type": "string"},
                }},
            }}},
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            }},
        })
    };
    let group = stage.group();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", false), version("v2", true)],
        },
    });
    stage.define("things", "v1", &definition).await;
}

fn things(stage: &Stage, version: &str) -> String {
    format!("/apis/{}/{version}/namespaces/{{ns}}/things", stage.group())
}

fn thing(stage: &Stage, version: &str) -> Value {
    json!({
        "apiVersion": format!("{}/{version}", stage.group()), "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"replicas": 1},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn status_is_reviewed_apart_from_the_object() {
    play(async |stage| {
        define_things(stage).await;
        stage.hooks.on("/status", |review| match review["request"]["object"]["status"]["phase"].as_str() {
            // The spec is out of reach of a write of the status, also for a webhook.
            Some("Running") => Answer::Patch(json!([
                {"op": "add", "path": "/spec/size", "value": "changed"},
                {"op": "add", "path": "/status/replicas", "value": 7},
            ])),
            _ => Answer::yes(),
        });
        let main = stage.hook("main", json!({"rules": all_writes_of("things")}));
        let status = stage.hook("status", json!({"rules": all_writes_of("things/status")}));
        let validate = stage.hook("validate", json!({"rules": all_writes_of("things/status")}));
        stage.mutating(vec![main, status]).await;
        stage.validating(vec![validate]).await;
        let (path, object) = (things(stage, "v2"), thing(stage, "v2"));
        assert_eq!(stage.post(&path, object).await.asked(), ["/main"]);
        let patched = stage.merge(&format!("{path}/a/status"), json!({"status": {"phase": "Running"}})).await;
        assert_eq!(patched.asked(), ["/status", "/validate"]);
        assert_eq!(patched.body["status"], json!({"phase": "Running", "replicas": 7}));
        assert_eq!(patched.body["spec"]["size"], "default of v2");
        let mut applied = thing(stage, "v2");
        applied["status"] = json!({"phase": "Waiting"});
        stage.apply(&format!("{path}/a/status?fieldManager=me&force=true"), applied).await;
        stage.delete(&format!("{path}/a"), Value::Null).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_scale_is_reviewed_as_a_scale() {
    play(async |stage| {
        define_things(stage).await;
        let mutate = stage.hook("mutate", json!({"rules": all_writes_of("things/scale")}));
        let validate = stage.hook("validate", json!({"rules": all_writes_of("things/scale")}));
        let (path, object) = (things(stage, "v2"), thing(stage, "v2"));
        stage.post(&path, object).await;
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        let scaled = stage.merge(&format!("{path}/a/scale"), json!({"spec": {"replicas": 3}})).await;
        assert_eq!((scaled.code, scaled.asked()), (200, vec!["/mutate", "/validate"]));
        let request = &scaled.reviews[0].1["request"];
        assert_eq!(request["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
        assert_eq!(request["object"]["spec"]["replicas"], 3);
        assert_eq!(request["oldObject"]["spec"]["replicas"], 1);
        stage
            .hooks
            .says("/mutate", Answer::Patch(json!([{"op": "replace", "path": "/spec/replicas", "value": 5}])));
        let mut scale = stage.get(&format!("{path}/a/scale")).await.body;
        scale["spec"]["replicas"] = 4.into();
        let replaced = stage.put(&format!("{path}/a/scale"), scale).await;
        assert_eq!(replaced.body["spec"]["replicas"], 5);
        assert_eq!(stage.get(&format!("{path}/a")).await.body["spec"]["replicas"], 5);
        stage
            .hooks
            .says("/validate", Answer::Say(json!({"allowed": false, "status": {"message": "enough"}})));
        stage.merge(&format!("{path}/a/scale"), json!({"spec": {"replicas": 9}})).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_scale_is_reviewed_as_a_scale() {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";
    play(async |stage| {
        // Paused, so that no controller of the real cluster changes it under the scenario.
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {
                "paused": true, "replicas": 0, "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        });
        assert_eq!(stage.post(DEPLOYMENTS, deployment).await.code, 201);
        let mutate = stage.hook("mutate", json!({"rules": all_writes_of("deployments/scale")}));
        let validate = stage.hook("validate", json!({"rules": all_writes_of("deployments/scale")}));
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        let path = format!("{DEPLOYMENTS}/a/scale?dryRun=All");
        let scaled = stage.merge(&path, json!({"spec": {"replicas": 3}})).await;
        assert_eq!(scaled.reviews[0].1["request"]["requestKind"]["kind"], "Scale");
        stage.hooks.says("/mutate", Answer::Patch(json!([{"op": "replace", "path": "/spec/replicas", "value": 5}])));
        let scaled = stage.merge(&path, json!({"spec": {"replicas": 3}})).await;
        assert_eq!(scaled.body["spec"]["replicas"], 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_and_eviction_are_reviewed_as_what_is_posted() {
    const PODS: &str = "/api/v1/namespaces/{ns}/pods";
    play(async |stage| {
        let pod = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                // Nobody but this scenario binds it.
                "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]},
            })
        };
        stage.post(PODS, pod("a")).await;
        stage.post(PODS, pod("b")).await;
        let rules = |resources: Value| {
            json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources}])
        };
        let parts = json!(["pods", "pods/binding", "pods/eviction"]);
        let mutate = stage.hook("mutate", json!({"rules": rules(parts.clone())}));
        let validate = stage.hook("validate", json!({"rules": rules(parts)}));
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"},
        });
        let bound = stage.post(&format!("{PODS}/a/binding?dryRun=All"), binding).await;
        assert_eq!((bound.code, bound.asked().first()), (201, Some(&"/mutate")));
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}});
        let evicted = stage.post(&format!("{PODS}/b/eviction"), eviction).await;
        assert_eq!(evicted.code, 201);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equivalent_webhook_sees_the_version_that_it_names() {
    play(async |stage| {
        define_things(stage).await;
        let only_v1 = json!([{
            "operations": ["*"], "apiGroups": [stage.group()], "apiVersions": ["v1"], "resources": ["things", "things/*"],
        }]);
        stage.hooks.on("/equivalent", |review| {
            if review["request"]["object"].is_null() {
                return Answer::yes();
            }
            let seen = json!({"seen": review["request"]["kind"]["version"]});
            Answer::Patch(json!([{"op": "add", "path": "/metadata/annotations", "value": seen}]))
        });
        let equivalent = stage.hook("equivalent", json!({"rules": only_v1, "matchPolicy": "Equivalent"}));
        let exact = stage.hook("exact", json!({"rules": only_v1, "matchPolicy": "Exact"}));
        let validate = stage.hook("validate", json!({"rules": only_v1}));
        stage.mutating(vec![equivalent, exact]).await;
        stage.validating(vec![validate]).await;
        let (path, object) = (things(stage, "v2"), thing(stage, "v2"));
        let created = stage.post(&path, object).await;
        assert_eq!(created.asked(), ["/equivalent", "/validate"]);
        let request = &created.reviews[0].1["request"];
        assert_eq!((&request["kind"]["version"], &request["requestKind"]["version"]), (&json!("v1"), &json!("v2")));
        assert_eq!(request["object"]["apiVersion"], json!(format!("{}/v1", stage.group())));
        assert_eq!(created.body["apiVersion"], json!(format!("{}/v2", stage.group())));
        assert_eq!(created.body["metadata"]["annotations"], json!({"seen": "v1"}));
        let in_v1 = stage.merge(&format!("{}/a", things(stage, "v1")), json!({"spec": {"replicas": 2}})).await;
        assert_eq!(in_v1.asked(), ["/equivalent", "/exact", "/validate"]);
        stage.merge(&format!("{path}/a/status"), json!({"status": {"phase": "Running"}})).await;
        stage.delete(&format!("{path}/a"), Value::Null).await;
    })
    .await;
}
