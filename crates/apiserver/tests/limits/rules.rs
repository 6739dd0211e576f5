//! CEL: rules of CRDs and match conditions of webhooks.

use super::{JSON, Limited};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A CRD of which each object must satisfy the rule.
fn ruled(plural: &str, rule: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"s": {"type": "string"}, "n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
    }}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.limits.test")},
        "spec": {
            "group": "limits.test", "scope": "Namespaced",
            "names": {"plural": plural, "kind": format!("Ruled{plural}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A webhook for config maps with one condition. Nobody listens at its address.
fn conditional(condition: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "conditional"},
        "webhooks": [{
            "name": "conditional.limits.test", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail", "clientConfig": {"url": "https://127.0.0.1:1/"},
            "matchConditions": [{"name": "c", "expression": condition}],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        }],
    })
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_thousands_of_terms_are_compiled_and_evaluated() {
    let mut server = Limited::start().await;
    for (plural, terms) in [("thousands", 4_000), ("moreovers", 8_000)] {
        let rule = format!("{} && self.n == 1", vec!["true"; terms].join(" && "));
        let (code, answer) = server.ask("POST", CRDS, JSON, ruled(plural, &rule).to_string()).await;
        assert_eq!(code, 201, "{answer}");
        let path = format!("/apis/limits.test/v1/namespaces/default/{plural}");
        // Until it is served, the answer is no JSON.
        let mut served = false;
        for _ in 0..1200 {
            served = server.client.send("GET", &path, None).await.is_ok_and(|(code, _)| code == 200);
            if served {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(served, "the kind is not served");
        let object = |name: &str, n: i64| json!({"apiVersion": "limits.test/v1", "kind": format!("Ruled{plural}"), "metadata": {"name": name}, "spec": {"n": n}});
        assert_eq!(server.ask("POST", &path, JSON, object("a", 1).to_string()).await.0, 201);
        assert_eq!(server.ask("POST", &path, JSON, object("b", 2).to_string()).await.0, 422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_cannot_be_afforded_are_refused() {
    let mut server = Limited::start().await;
    let growing = "self.s.replace('', self.s).replace('', self.s) != ''";
    let (code, answer) = server.ask("POST", CRDS, JSON, ruled("growings", growing).to_string()).await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == 422 && message.contains("estimated rule cost exceeds budget by factor of"), "{answer}");
    let parenthesised = format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000));
    let (code, answer) = server.ask("POST", CRDS, JSON, ruled("nesteds", &parenthesised).to_string()).await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == 422 && message.contains("expression recursion limit exceeded: 250"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_cost_too_much_end_while_others_are_answered() {
    let data = "object.data";
    let nested = format!(
        "{data}.all(a, {data}.all(b, {data}.all(c, {data}[a] == {data}[b] || {data}[b] != {data}[c])))"
    );
    let growing = format!("{data}.s.replace('', {data}.s).replace('', {data}.s) != ''");
    let many: Value =
        (0..1000).map(|at| (format!("k{at}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    for (condition, data) in [(nested, many), (growing, json!({"s": "x".repeat(200_000)}))] {
        let mut server = Limited::start().await;
        let (code, answer) = server.ask("POST", WEBHOOKS, JSON, conditional(&condition).to_string()).await;
        assert_eq!(code, 201, "{answer}");
        let body = config_map(&data).to_string();
        let expensive = server.client.send_as("POST", CONFIG_MAPS, JSON, body);
        let cheap = server.client.send("GET", "/api/v1/namespaces/default", None);
        let (refused, read) = tokio::join!(expensive, cheap);
        assert_eq!(read.expect("an answer").0, 200);
        let (code, answer) = refused.expect("an answer");
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(code == 403 && message.contains("actual cost limit exceeded"), "{code} {answer}");
        assert!(server.child.is_alive());
    }
}
