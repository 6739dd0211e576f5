//! Webhooks that are answered by a function: no network, and time that a test decides.

use crate::seams::{MAPS, map, send, succeed};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mainstay_apiserver::{ApiServer, WebhookTransport};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const HOST: &str = "https://hooks.example.com";

/// Answers by the path of the URL, and remembers what it was asked.
#[derive(Clone, Default)]
struct Hooks {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hooks {
    fn urls(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(url, _)| url.clone()).collect()
    }
}

impl WebhookTransport for Hooks {
    fn post<'a>(&'a self, url: &'a str, review: Bytes) -> BoxFuture<'a, Result<Bytes, String>> {
        let review: Value = serde_json::from_slice(&review).unwrap();
        self.asked.lock().unwrap().push((url.to_owned(), review.clone()));
        let answer = |mut response: Value| {
            response["uid"] = review["request"]["uid"].clone();
            let kind = "AdmissionReview";
            Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": kind, "response": response})
                .to_string()
                .into())
        };
        // `[{"op":"add","path":"/data/painted","value":"yes"}]`
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEvcGFpbnRlZCIsInZhbHVlIjoieWVzIn1d";
        let answered = match url.strip_prefix(HOST).unwrap() {
            "/paint" => answer(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})),
            "/refuse-red" => {
                let red = review["request"]["object"]["data"]["key"] == "red";
                answer(json!({"allowed": !red, "status": {"message": "not that colour"}}))
            }
            "/down" => Err("dial tcp 10.0.0.1:443: connect: connection refused".to_owned()),
            "/nonsense" => Ok("nonsense".into()),
            "/slow" => {
                let late = answer(json!({"allowed": true}));
                return async move {
                    tokio::time::sleep(Duration::from_secs(8)).await;
                    late
                }
                .boxed();
            }
            other => panic!("nobody is at {other}"),
        };
        std::future::ready(answered).boxed()
    }
}

/// A server with one webhook for config maps.
async fn with_webhook(kind: &str, path: &str, more: Value) -> (ApiServer, Hooks) {
    let hooks = Hooks::default();
    let server = ApiServer::builder().webhook_transport(hooks.clone()).build().unwrap();
    let mut webhook = json!({
        "name": "maps.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("{HOST}{path}")},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    });
    webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let plural = kind.to_lowercase() + "s";
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "hooks"}, "webhooks": [webhook],
    });
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    succeed(&server, "POST", &path, configuration).await;
    (server, hooks)
}

const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

#[tokio::test(start_paused = true)]
async fn mutating_webhook_is_answered_by_a_function() {
    let (server, hooks) = with_webhook(MUTATING, "/paint", json!({})).await;
    let made = succeed(&server, "POST", MAPS, map("a", "1")).await;
    assert_eq!(made["data"], json!({"key": "1", "painted": "yes"}));
    let (url, review) = hooks.asked.lock().unwrap()[0].clone();
    assert_eq!(url, format!("{HOST}/paint"), "without the timeout that HTTP would show");
    assert_eq!(
        (&review["kind"], &review["request"]["operation"]),
        (&json!("AdmissionReview"), &json!("CREATE"))
    );
    assert_eq!(review["request"]["object"]["data"], json!({"key": "1"}));
}

#[tokio::test(start_paused = true)]
async fn validating_webhook_is_answered_by_a_function() {
    let (server, hooks) = with_webhook(VALIDATING, "/refuse-red", json!({})).await;
    succeed(&server, "POST", MAPS, map("a", "blue")).await;
    let (code, status) = send(&server, "POST", MAPS, map("b", "red")).await;
    let expected = "admission webhook \"maps.example.com\" denied the request: not that colour";
    assert_eq!((code, &status["message"]), (400, &json!(expected)));
    assert_eq!(send(&server, "GET", &format!("{MAPS}/b"), Value::Null).await.0, 404);
    assert_eq!(hooks.urls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failure_is_worded_as_one_of_a_network_and_the_policy_decides() {
    for kind in [MUTATING, VALIDATING] {
        let (server, hooks) = with_webhook(kind, "/down", json!({"failurePolicy": "Fail"})).await;
        let (code, status) = send(&server, "POST", MAPS, map("a", "1")).await;
        let expected = "Internal error occurred: failed calling webhook \"maps.example.com\": failed to call webhook: \
            Post \"https://hooks.example.com/down?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused";
        assert_eq!((code, &status["message"]), (500, &json!(expected)), "{kind}");
        assert_eq!(send(&server, "GET", &format!("{MAPS}/a"), Value::Null).await.0, 404);
        assert_eq!(hooks.urls().len(), 1, "asked once");

        let (server, hooks) = with_webhook(kind, "/down", json!({"failurePolicy": "Ignore"})).await;
        succeed(&server, "POST", MAPS, map("a", "1")).await;
        assert_eq!(hooks.urls().len(), 1, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_that_is_no_review_is_a_failure_too() {
    let (server, _) = with_webhook(VALIDATING, "/nonsense", json!({"failurePolicy": "Fail"})).await;
    let (code, status) = send(&server, "POST", MAPS, map("a", "1")).await;
    let message = status["message"].as_str().unwrap();
    let begin = "Internal error occurred: failed calling webhook \"maps.example.com\": ";
    assert!(code == 500 && message.starts_with(begin), "{code} {message}");
}

#[tokio::test(start_paused = true)]
async fn slow_webhook_is_given_up_by_the_paused_clock() {
    let (server, _) = with_webhook(VALIDATING, "/slow", json!({"timeoutSeconds": 3})).await;
    let (begin, real) = (Instant::now(), std::time::Instant::now());
    let (code, status) = send(&server, "POST", MAPS, map("a", "1")).await;
    let expected = "Internal error occurred: failed calling webhook \"maps.example.com\": failed to call webhook: \
        Post \"https://hooks.example.com/slow?timeout=3s\": context deadline exceeded";
    assert_eq!((code, &status["message"]), (500, &json!(expected)));
    assert_eq!(begin.elapsed().as_secs(), 3);
    let more = json!({"timeoutSeconds": 3, "failurePolicy": "Ignore"});
    let (server, _) = with_webhook(VALIDATING, "/slow", more).await;
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    assert_eq!(begin.elapsed().as_secs(), 6);
    // With time enough it is waited for.
    let (server, _) = with_webhook(VALIDATING, "/slow", json!({"timeoutSeconds": 9})).await;
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    assert_eq!(begin.elapsed().as_secs(), 14);
    assert!(real.elapsed() < Duration::from_mins(1));
}
