use std::sync::Arc;
use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;
use crate::{Kind, Scope};

#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "WebApp", namespaced)]
#[serde(rename_all = "camelCase")]
struct WebAppSpec {
    image: String,
    #[serde(default)]
    replicas: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ports: Vec<u16>,
}

fn app(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec})
}

fn review_of(operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1",
            "kind": {"group": "example.com", "version": "v1", "kind": "WebApp"},
            "resource": {"group": "example.com", "version": "v1", "resource": "webapps"},
            "name": "a", "namespace": "shop", "operation": operation,
            "userInfo": {"username": "anna", "groups": ["users"]},
            "object": object, "oldObject": old, "dryRun": true,
            "options": {"kind": "CreateOptions", "fieldManager": "m"},
        },
    })
}

async fn reply_to(hook: &Hook, review: &Value) -> Reply {
    super::review(hook, review.to_string().as_bytes(), Duration::from_secs(9)).await
}

async fn ask(hook: &Hook, review: &Value) -> Value {
    let reply = reply_to(hook, review).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let mut answer: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    answer["response"].take()
}

async fn create(hook: &Hook, spec: &Value) -> Value {
    ask(hook, &review_of("CREATE", &app(spec), &Value::Null)).await
}

#[tokio::test]
async fn a_request_shows_everything_that_was_asked() {
    let hook = Hook::validate::<WebApp>(|request| {
        assert_eq!(request.operation(), Operation::Update);
        assert_eq!(request.object().spec.image, "new");
        assert_eq!(request.old().unwrap().spec.image, "old");
        assert_eq!((request.name(), request.namespace()), ("a", Some("shop")));
        assert_eq!(request.subresource(), None);
        assert_eq!(request.user().username.as_deref(), Some("anna"));
        assert_eq!(request.options()["fieldManager"], "m");
        assert!(request.is_dry_run());
        Ok(())
    });
    let review = review_of("UPDATE", &app(&json!({"image": "new"})), &app(&json!({"image": "old"})));
    assert_eq!(ask(&hook, &review).await, json!({"uid": "u1", "allowed": true}));
}

#[tokio::test]
async fn a_deletion_shows_the_object_that_is_to_go() {
    let hook = Hook::validate::<WebApp>(|request| Err(request.object().spec.image.clone().into()));
    let review = review_of("DELETE", &Value::Null, &app(&json!({"image": "gone"})));
    assert_eq!(ask(&hook, &review).await["status"]["message"], "gone");
    let review = review_of("DELETE", &Value::Null, &Value::Null);
    assert_eq!(ask(&hook, &review).await["status"]["code"], 400);
}

#[tokio::test]
async fn a_refusal_has_code_reason_message_and_causes() {
    let hook = Hook::validate::<WebApp>(|request| {
        request.warn("replicas is deprecated");
        request.annotate_audit("checked", "replicas");
        Err(Denied::invalid("spec.replicas", "must be positive"))
    });
    assert_eq!(
        create(&hook, &json!({"image": "i"})).await,
        json!({
            "uid": "u1", "allowed": false,
            "warnings": ["replicas is deprecated"],
            "auditAnnotations": {"checked": "replicas"},
            "status": {
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": "spec.replicas: must be positive",
                "details": {
                    "name": "a", "group": "example.com", "kind": "WebApp",
                    "causes": [{"reason": "FieldValueInvalid", "field": "spec.replicas", "message": "must be positive"}],
                },
            },
        })
    );
}

#[tokio::test]
async fn an_object_that_does_not_fit_is_denied_with_the_field() {
    let hook = Hook::validate::<WebApp>(|_| Ok(()));
    let answer = create(&hook, &json!({"image": "i", "ports": [80, "http"]})).await;
    assert_eq!(answer["allowed"], false);
    assert_eq!(answer["status"]["message"], "spec.ports[1]: invalid type: string \"http\", expected u16");
    assert_eq!(answer["status"]["details"]["causes"][0]["field"], "spec.ports[1]");
    let review = review_of("UPDATE", &app(&json!({"image": "i"})), &app(&json!({"image": 1})));
    let answer = ask(&hook, &review).await;
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("spec.image: the stored object: invalid type"), "{message}");
}

fn patch_of(answer: &Value) -> Value {
    assert_eq!((&answer["allowed"], &answer["patchType"]), (&json!(true), &json!("JSONPatch")));
    serde_json::from_slice(&BASE64.decode(answer["patch"].as_str().unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_change_becomes_a_patch_of_what_was_sent() {
    let hook = Hook::mutate::<WebApp>(|request, app| {
        assert_eq!(request.object().spec, app.spec);
        app.spec.replicas = app.spec.replicas.max(1);
        app.metadata.labels.get_or_insert_default().insert("team".into(), "web".into());
        Ok(())
    });
    let answer = create(&hook, &json!({"image": "i", "unknown": 1})).await;
    assert_eq!(
        patch_of(&answer),
        json!([
            {"op": "add", "path": "/metadata/labels", "value": {"team": "web"}},
            {"op": "add", "path": "/spec/replicas", "value": 1},
        ])
    );
}

#[tokio::test]
async fn no_change_is_no_patch() {
    let hook = Hook::mutate::<WebApp>(|_, _| Ok(()));
    assert_eq!(create(&hook, &json!({"image": "i"})).await, json!({"uid": "u1", "allowed": true}));
}

#[tokio::test]
async fn kinds_known_as_json_only_are_changed_too() {
    let kind = Kind::new("example.com/v1", "WebApp", "webapps", Scope::Namespaced);
    let hook = Hook::mutate_json(kind.clone(), |_, app| {
        app["spec"]["replicas"] = json!(3);
        Ok(())
    });
    let answer = create(&hook, &json!({"replicas": 1})).await;
    assert_eq!(patch_of(&answer), json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]));
    let hook = Hook::validate_json(kind, |request| match request.object()["spec"]["replicas"].as_i64() {
        Some(1) => Ok(()),
        _ => Err("one is enough".into()),
    });
    assert_eq!(create(&hook, &json!({"replicas": 1})).await["allowed"], true);
    assert_eq!(create(&hook, &json!({"replicas": 2})).await["status"]["reason"], "Forbidden");
}

#[tokio::test(start_paused = true)]
async fn handlers_may_wait() {
    let hook = Hook::mutate_async(|request: Arc<AdmissionRequest<WebApp>>, mut app: WebApp| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        request.warn("waited");
        app.spec.replicas = 2;
        Ok(app)
    });
    let answer = create(&hook, &json!({"image": "i"})).await;
    assert_eq!(patch_of(&answer), json!([{"op": "add", "path": "/spec/replicas", "value": 2}]));
    assert_eq!(answer["warnings"], json!(["waited"]));
    let hook = Hook::validate_async(|request: Arc<AdmissionRequest<WebApp>>| async move {
        Denied::if_any((request.object().spec.replicas == 0).then_some(("spec.replicas", "is zero")))
    });
    assert_eq!(create(&hook, &json!({"image": "i"})).await["allowed"], false);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_fails_its_review() {
    let slow = || {
        Hook::validate_async(|_: Arc<AdmissionRequest<WebApp>>| async {
            std::future::pending::<()>().await;
            Ok(())
        })
    };
    let answer = create(&slow(), &json!({"image": "i"})).await;
    assert_eq!(answer["status"]["message"], "the webhook's handler did not answer within 9s");
    assert_eq!(answer["status"]["code"], 500);
    let review = review_of("CREATE", &app(&json!({"image": "i"})), &Value::Null);
    let reply = reply_to(&slow().failure_policy(FailurePolicy::Ignore), &review).await;
    assert_eq!(reply.status, 500);
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_review_without_telling_what_it_knew() {
    let hook = Hook::validate::<WebApp>(|request| {
        assert!(request.object().spec.replicas > 0, "the password is wrong");
        Ok(())
    });
    let answer = create(&hook, &json!({"image": "i"})).await;
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(message.contains("panicked") && !message.contains("password"), "{message}");
    assert_eq!(create(&hook, &json!({"image": "i", "replicas": 1})).await["allowed"], true);
}

#[tokio::test]
async fn what_is_no_review_is_refused() {
    let hook = Hook::validate::<WebApp>(|_| Ok(()));
    for body in [
        json!("x"),
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}),
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
    ] {
        assert_eq!(reply_to(&hook, &body).await.status, 400);
    }
}
