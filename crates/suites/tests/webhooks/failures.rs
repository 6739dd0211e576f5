//! Webhooks that give no usable answer.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::webhooks::hooks::Answer;
use crate::webhooks::stage::play;
use crate::webhooks::{MAPS, map};

/// A `clientConfig` for a port that nobody listens on.
async fn nobody() -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    json!({"url": format!("https://{}", listener.local_addr().unwrap())})
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_webhook_fails_the_request_unless_it_is_to_be_ignored() {
    play(async |stage| {
        let nobody = nobody().await;
        stage.call(nobody["url"].as_str().unwrap().trim_start_matches("https://"), "{nobody}");
        let ignored = json!({"clientConfig": nobody, "failurePolicy": "Ignore"});
        let needed = json!({
            "clientConfig": nobody, "failurePolicy": "Fail", "objectSelector": {"matchLabels": {"strict": "true"}},
        });
        let hooks = vec![stage.hook("ignored", ignored.clone()), stage.hook("needed", needed.clone())];
        stage.mutating(hooks.clone()).await;
        stage.validating(hooks).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(created.code, 201);
        let mut strict = map("b", "1");
        strict["metadata"]["labels"] = json!({"strict": "true"});
        let refused = stage.post(MAPS, strict).await;
        assert_eq!(refused.code, 500);
        assert!(refused.message().contains("connect: connection refused"), "{}", refused.message());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_webhook_is_given_up() {
    play(async |stage| {
        stage.hooks.says("/ignored", Answer::Silence);
        stage.hooks.says("/validate", Answer::Silence);
        let ignored = stage.hook("ignored", json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"}));
        let validate = stage.hook("validate", json!({"timeoutSeconds": 1}));
        stage.mutating(vec![ignored]).await;
        stage.validating(vec![validate]).await;
        let refused = stage.post(MAPS, map("a", "1")).await;
        assert_eq!((refused.code, refused.asked()), (500, vec!["/ignored", "/validate"]));
        assert!(refused.message().contains("context deadline exceeded"), "{}", refused.message());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_are_named() {
    play(async |stage| {
        let answers = [
            ("uid", Answer::Say(json!({"allowed": true, "uid": "x"}))),
            ("html", Answer::Raw(200, "<html>".into())),
            ("empty", Answer::Raw(200, String::new())),
            ("error", Answer::Raw(503, "later".into())),
            (
                "no-response",
                Answer::Raw(
                    200,
                    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}).to_string(),
                ),
            ),
            ("other-kind", Answer::Raw(200, json!({"kind": "Pod", "apiVersion": "v1"}).to_string())),
            ("patch-type", Answer::Say(json!({"allowed": true, "patch": "W10="}))),
            ("misfit", Answer::Patch(json!([{"op": "remove", "path": "/data/nothing"}]))),
            ("no-patch", Answer::Patch(json!({"op": "remove"}))),
            ("empty-patch", Answer::Patch(json!([]))),
            ("test", Answer::Patch(json!([{"op": "test", "path": "/data/key", "value": "2"}]))),
        ];
        stage.hooks.on("/mutate", {
            let answers = answers.clone();
            move |review| {
                let name = review["request"]["name"].as_str().unwrap_or_default();
                let found = answers.iter().find(|(wanted, _)| *wanted == name);
                found.map_or_else(Answer::yes, |(_, answer)| answer.clone())
            }
        });
        let mutate = stage.hook("mutate", json!({}));
        stage.mutating(vec![mutate]).await;
        for (name, _) in answers {
            stage.post(MAPS, map(name, "1")).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serving_certificate_vouches_for_itself() {
    play(async |stage| {
        let pinned = |path: &str| json!({"clientConfig": stage.hooks.pinned_at(path)});
        let (mutate, validate) =
            (stage.hook("mutate", pinned("/mutate")), stage.hook("validate", pinned("/validate")));
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!((created.code, created.asked()), (201, vec!["/mutate", "/validate"]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_and_missing_places_are_named() {
    play(async |stage| {
        let mut untrusted = stage.hooks.at("/mutate");
        untrusted.as_object_mut().unwrap().remove("caBundle");
        let service = json!({"service": {"namespace": stage.namespace(), "name": "none"}});
        let only = |name: &str| json!([{"name": "only", "expression": format!("request.name == '{name}'")}]);
        let hooks = vec![
            stage.hook("untrusted", json!({"clientConfig": untrusted, "matchConditions": only("untrusted")})),
            stage.hook("service", json!({"clientConfig": service, "matchConditions": only("service")})),
        ];
        stage.mutating(hooks).await;
        for name in ["untrusted", "service"] {
            assert_eq!(stage.post(MAPS, map(name, "1")).await.code, 500);
        }
    })
    .await;
}
