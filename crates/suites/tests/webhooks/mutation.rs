//! What becomes of the changes that webhooks make, and of their refusals and warnings.

use serde_json::{Value, json};

use crate::webhooks::hooks::Answer;
use crate::webhooks::stage::play;
use crate::webhooks::{MAP, MAPS, map};

/// Sets an entry of a config map.
fn set(key: &str, value: &str) -> Answer {
    Answer::Patch(json!([{"op": "add", "path": format!("/data/{key}"), "value": value}]))
}

#[tokio::test(flavor = "multi_thread")]
async fn patch_is_stored_and_seen_by_those_after_it() {
    play(async |stage| {
        stage.hooks.says("/first", set("first", "1"));
        stage.hooks.on("/second", |review| {
            let seen = review["request"]["object"]["data"]["first"].as_str().unwrap_or("nothing").to_owned();
            set("second", &format!("saw {seen}"))
        });
        let (second, first) = (stage.hook("second", json!({})), stage.hook("first", json!({})));
        let validate = stage.hook("validate", json!({}));
        stage.mutating(vec![first, second]).await;
        stage.validating(vec![validate]).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(created.asked(), ["/first", "/second", "/validate"]);
        assert_eq!(created.reviews[2].1["request"]["object"]["data"]["second"], "saw 1");
        assert_eq!(stage.get(MAP).await.body["data"], json!({"first": "1", "key": "1", "second": "saw 1"}));
        stage.merge(MAP, json!({"data": {"first": "2"}})).await;
        assert_eq!(stage.get(MAP).await.body["data"]["first"], "1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_object_is_defaulted_and_checked_again() {
    const PODS: &str = "/api/v1/namespaces/{ns}/pods";
    play(async |stage| {
        stage.hooks.on("/mutate", |review| match review["request"]["object"]["metadata"]["name"].as_str() {
            Some("sidecar") => {
                let container = json!({"name": "sidecar", "image": "s", "unknown": 1});
                Answer::Patch(json!([{"op": "add", "path": "/spec/containers/-", "value": container}]))
            }
            Some("invalid") => Answer::Patch(json!([{"op": "replace", "path": "/spec/restartPolicy", "value": "Maybe"}])),
            Some("mistyped") => Answer::Patch(json!([{"op": "replace", "path": "/spec/restartPolicy", "value": 1}])),
            _ => Answer::Patch(json!([{"op": "replace", "path": "/metadata/name", "value": "other"}])),
        });
        let pods = json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
        let mutate = stage.hook("mutate", json!({"rules": pods}));
        let validate = stage.hook("validate", json!({"rules": pods}));
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        let pod = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"containers": [{"name": "main", "image": "m"}]},
            })
        };
        let created = stage.post(PODS, pod("sidecar")).await;
        assert_eq!(created.code, 201);
        assert_eq!(created.body["spec"]["containers"][1]["imagePullPolicy"], "Always");
        assert_eq!(stage.post(PODS, pod("invalid")).await.code, 422);
        assert_eq!(stage.post(PODS, pod("mistyped")).await.code, 500);
        stage.post(PODS, pod("renamed")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_ask_are_invoked_once_more() {
    play(async |stage| {
        stage.hooks.on("/count", |review| {
            let seen = review["request"]["object"]["data"].as_object().map_or(0, serde_json::Map::len);
            set("seen", &seen.to_string())
        });
        stage.hooks.says("/add", set("added", "1"));
        stage.hooks.says("/late", set("added", "1"));
        let count = stage.hook("count", json!({"reinvocationPolicy": "IfNeeded"}));
        let add = stage.hook("add", json!({}));
        let late = stage.hook("late", json!({"reinvocationPolicy": "IfNeeded"}));
        stage.mutating(vec![count, add, late]).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(created.asked(), ["/count", "/add", "/late", "/count", "/late"]);
        assert_eq!(created.body["data"], json!({"key": "1", "seen": "3", "added": "1"}));
        stage.merge(MAP, json!({"data": {"key": "2"}})).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_object_passes_through_a_mutating_webhook() {
    play(async |stage| {
        stage.hooks.says("/mutate", set("key", "of the webhook"));
        let mutate = stage.hook("mutate", json!({}));
        stage.mutating(vec![mutate]).await;
        let path = format!("{MAP}?fieldManager=me");
        let created = stage.apply(&path, map("a", "1")).await;
        assert_eq!((created.code, &created.body["data"]["key"]), (201, &json!("of the webhook")));
        assert_eq!(created.body["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
        stage.apply(&path, map("a", "1")).await;
        stage.hooks.says("/mutate", set("more", "1"));
        stage.apply(&path, map("a", "2")).await;
        let mut less = map("a", "2");
        less["data"] = json!({"other": "3"});
        stage.apply(&path, less).await;
        stage.apply(&format!("{MAP}?fieldManager=you"), map("a", "4")).await;
        stage.get(MAP).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_that_spoils_managed_fields_changes_none() {
    play(async |stage| {
        stage.hooks.says(
            "/mutate",
            Answer::Patch(json!([{"op": "replace", "path": "/metadata/managedFields/0/fieldsV1", "value": {"nonsense": 1}}])),
        );
        let mutate = stage.hook("mutate", json!({}));
        stage.mutating(vec![mutate]).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(created.code, 201);
        stage.hooks.says("/mutate", Answer::Patch(json!([{"op": "remove", "path": "/metadata/managedFields"}])));
        stage.merge(MAP, json!({"data": {"key": "2"}})).await;
        stage.get(MAP).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_carries_message_and_code() {
    play(async |stage| {
        let answers = [
            ("plain", json!({"allowed": false})),
            ("message", json!({"allowed": false, "status": {"message": "not on a Friday", "code": 418}})),
            ("reason", json!({"allowed": false, "status": {"reason": "Forbidden", "code": 403}})),
            ("success", json!({"allowed": false, "status": {"message": "fine", "code": 200}})),
            ("details", json!({"allowed": false, "status": {
                "message": "no", "reason": "Invalid", "code": 422,
                "details": {"name": "n", "kind": "k", "causes": [{"reason": "R", "message": "m", "field": "f"}]},
            }})),
        ];
        for stage_of in ["mutate", "validate"] {
            stage.hooks.on(&format!("/{stage_of}"), {
                let answers = answers.clone();
                move |review| {
                    let name = &review["request"]["name"];
                    let wanted = name.as_str().and_then(|name| name.strip_prefix(&format!("{stage_of}-")));
                    let found = answers.iter().find(|(name, _)| wanted == Some(name));
                    found.map_or_else(Answer::yes, |(_, response)| Answer::Say(response.clone()))
                }
            });
        }
        let (mutate, validate) = (stage.hook("mutate", json!({})), stage.hook("validate", json!({})));
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        for (name, _) in answers {
            stage.post(MAPS, map(&format!("mutate-{name}"), "1")).await;
            stage.post(MAPS, map(&format!("validate-{name}"), "1")).await;
        }
        let refused = stage.post(MAPS, map("validate-message", "1")).await;
        assert_eq!(refused.code, 418);
        assert_eq!(refused.message(), r#"admission webhook "validate.example.com" denied the request: not on a Friday"#);
        assert_eq!(stage.get(&format!("{MAPS}/validate-message")).await.code, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_update_and_delete_change_nothing() {
    play(async |stage| {
        stage.hooks.on("/validate", |review| match review["request"]["operation"].as_str() {
            Some("CREATE") => Answer::yes(),
            _ => Answer::Say(json!({"allowed": false, "status": {"message": "kept"}})),
        });
        let validate = stage.hook("validate", json!({}));
        stage.validating(vec![validate]).await;
        let version = stage.post(MAPS, map("a", "1")).await.body["metadata"]["resourceVersion"].clone();
        stage.put(MAP, map("a", "2")).await;
        stage.apply(&format!("{MAP}?fieldManager=me&force=true"), map("a", "2")).await;
        stage.delete(MAP, Value::Null).await;
        stage.delete(&format!("{MAPS}?fieldSelector=metadata.name%3Da"), Value::Null).await;
        assert_eq!(stage.get(MAP).await.body["metadata"]["resourceVersion"], version);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_reach_the_client_also_with_a_refusal() {
    play(async |stage| {
        let long = "long ".repeat(60);
        stage.hooks.says(
            "/mutate",
            Answer::Say(json!({"allowed": true, "warnings": ["one", "two \"quoted\" ü", "one"]})),
        );
        stage.hooks.on("/validate", move |review| {
            let allowed = review["request"]["name"] == "a";
            Answer::Say(json!({"allowed": allowed, "warnings": ["three\nlines", long]}))
        });
        let (mutate, validate) = (stage.hook("mutate", json!({})), stage.hook("validate", json!({})));
        stage.mutating(vec![mutate]).await;
        stage.validating(vec![validate]).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(created.warnings[0], r#"299 - "one""#);
        let refused = stage.post(MAPS, map("b", "1")).await;
        assert_eq!((refused.code, refused.warnings.len()), (400, created.warnings.len()));
        stage.delete(MAP, Value::Null).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_cannot_be_changed() {
    play(async |stage| {
        stage.post(MAPS, map("a", "1")).await;
        stage.hooks.says("/mutate", set("key", "2"));
        let mutate = stage.hook("mutate", json!({}));
        stage.mutating(vec![mutate]).await;
        let refused = stage.delete(MAP, Value::Null).await;
        assert_eq!(refused.code, 500);
    })
    .await;
}
