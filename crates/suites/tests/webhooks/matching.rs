//! Which requests a webhook is asked about.

use serde_json::{Value, json};

use crate::webhooks::stage::play;
use crate::webhooks::{MAP, MAPS, map};

fn labelled(name: &str, value: &str) -> Value {
    let mut map = map(name, "1");
    map["metadata"]["labels"] = json!({"colour": value});
    map
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_look_at_the_namespace_and_at_both_objects() {
    play(async |stage| {
        let red = json!({"matchLabels": {"colour": "red"}});
        let elsewhere = json!({"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}});
        let here = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [stage.namespace()]},
            {"key": "absent", "operator": "DoesNotExist"},
        ]});
        let hooks = vec![
            stage.hook("red", json!({"objectSelector": red})),
            stage.hook("elsewhere", json!({"namespaceSelector": elsewhere})),
            stage.hook("here", json!({"namespaceSelector": here})),
        ];
        stage.mutating(hooks).await;
        assert_eq!(stage.post(MAPS, labelled("a", "green")).await.asked(), ["/here"]);
        let to_red = stage.merge(MAP, json!({"metadata": {"labels": {"colour": "red"}}})).await;
        assert_eq!(to_red.asked(), ["/red", "/here"]);
        let from_red = stage.merge(MAP, json!({"metadata": {"labels": {"colour": "green"}}})).await;
        assert_eq!(from_red.asked(), ["/red", "/here"]);
        stage.merge(MAP, json!({"metadata": {"labels": {"colour": "red"}}})).await;
        assert_eq!(stage.delete(MAP, Value::Null).await.asked(), ["/red", "/here"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_name_operations_scopes_and_subresources() {
    play(async |stage| {
        let rule = |operations: Value, resources: Value, scope: &str| {
            json!([{
                "operations": operations, "apiGroups": [""], "apiVersions": ["*"], "resources": resources, "scope": scope,
            }])
        };
        let hooks = vec![
            stage.hook("updates", json!({"rules": rule(json!(["UPDATE"]), json!(["configmaps"]), "*")})),
            stage.hook("cluster", json!({"rules": rule(json!(["*"]), json!(["*"]), "Cluster")})),
            stage.hook("main", json!({"rules": rule(json!(["*"]), json!(["*"]), "Namespaced")})),
            stage.hook("status", json!({"rules": rule(json!(["*"]), json!(["*/status"]), "*")})),
            stage.hook("both", json!({"rules": rule(json!(["*"]), json!(["services/*"]), "*")})),
        ];
        stage.mutating(hooks).await;
        assert_eq!(stage.post(MAPS, map("a", "1")).await.asked(), ["/main"]);
        assert_eq!(stage.merge(MAP, json!({"data": null})).await.asked(), ["/updates", "/main"]);
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"clusterIP": "None"},
        });
        let path = "/api/v1/namespaces/{ns}/services";
        assert_eq!(stage.post(path, service).await.asked(), ["/main", "/both"]);
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        assert_eq!(stage.merge(&format!("{path}/s/status"), status).await.asked(), ["/status", "/both"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_is_selected_by_its_own_labels() {
    play(async |stage| {
        let namespaces = json!([{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces", "namespaces/status"],
        }]);
        let hook = stage.hook("mutate", json!({"rules": namespaces}));
        stage.mutating(vec![hook]).await;
        let path = "/api/v1/namespaces/{ns}";
        let updated = stage.merge(path, json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!(updated.only_review()["name"], json!(stage.namespace()));
        stage.merge(&format!("{path}/status?dryRun=All"), json!({"metadata": {"annotations": {"a": "b"}}})).await;
        stage.delete(&format!("{path}?dryRun=All"), Value::Null).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn match_conditions_decide_and_their_failures_count() {
    play(async |stage| {
        let when = |expression: &str| json!([{"name": "only", "expression": expression}]);
        let two = json!([
            {"name": "one", "expression": "request.operation == 'CREATE'"},
            {"name": "two", "expression": "!(object.metadata.name in ['b'])"},
        ]);
        let failing = "object.metadata.labels['colour'] == 'red'";
        let guarded = "has(object.metadata.labels) && object.metadata.labels['colour'] == 'red'";
        let user = "request.userInfo.groups.exists(g, g == 'system:masters')";
        let hooks = vec![
            stage.hook("two", json!({"matchConditions": two})),
            stage.hook("failing", json!({"matchConditions": when(failing), "failurePolicy": "Ignore"})),
            stage.hook("guarded", json!({"matchConditions": when(guarded)})),
            stage.hook("user", json!({"matchConditions": when(user)})),
            stage.hook("old", json!({"matchConditions": when("oldObject != null")})),
        ];
        stage.mutating(hooks).await;
        stage.post(MAPS, map("a", "1")).await;
        stage.post(MAPS, map("b", "1")).await;
        let red = stage.post(MAPS, labelled("c", "red")).await;
        assert_eq!(red.asked(), ["/two", "/failing", "/guarded", "/user"]);
        stage.merge(MAP, json!({"data": {"key": "2"}})).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn match_condition_that_fails_refuses_where_the_policy_says_so() {
    play(async |stage| {
        let conditions = json!([{"name": "only", "expression": "object.data['absent'] == 'x'"}]);
        let hook = stage.hook(
            "strict",
            json!({"matchConditions": conditions, "objectSelector": {"matchLabels": {"colour": "red"}}}),
        );
        stage.mutating(vec![hook.clone()]).await;
        stage.validating(vec![hook]).await;
        let refused = stage.post(MAPS, labelled("a", "red")).await;
        assert_eq!((refused.code, refused.asked().len()), (403, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn first_known_review_version_is_spoken() {
    play(async |stage| {
        let hook = stage.hook("old", json!({"admissionReviewVersions": ["v2", "v1beta1", "v1"]}));
        stage.mutating(vec![hook]).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(created.reviews[0].1["apiVersion"], "admission.k8s.io/v1beta1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_defaulted_and_checked() {
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?dryRun=All";
    play(async |stage| {
        let configuration = |hook: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "never"}, "webhooks": [hook],
            })
        };
        let minimal = json!({
            "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1/x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        assert_eq!(stage.post(PATH, configuration(minimal.clone())).await.code, 201);
        let wrong = [
            ("sideEffects", json!("Some")),
            ("timeoutSeconds", json!(31)),
            ("clientConfig", json!({"url": "http://127.0.0.1/x"})),
            ("admissionReviewVersions", json!(["v2"])),
            ("matchConditions", json!([{"name": "x", "expression": "object.x +"}])),
            ("matchPolicy", json!("Sometimes")),
        ];
        for (field, value) in wrong {
            let mut hook = minimal.clone();
            hook[field] = value;
            assert_eq!(stage.post(PATH, configuration(hook)).await.code, 422, "{field}");
        }
    })
    .await;
}
