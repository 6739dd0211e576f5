//! What webhooks are told of each kind of write.

use serde_json::{Value, json};

use crate::webhooks::stage::{Stage, play};
use crate::webhooks::{MAP, MAPS, map};

/// A mutating and a validating webhook for all writes of config maps, which say yes.
async fn watch_all(stage: &mut Stage) {
    let (mutate, validate) = (stage.hook("mutate", json!({})), stage.hook("validate", json!({})));
    stage.mutating(vec![mutate]).await;
    stage.validating(vec![validate]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn create_update_patch_and_delete_are_reviewed() {
    play(async |stage| {
        watch_all(stage).await;
        let created = stage.post(MAPS, map("a", "1")).await;
        assert_eq!((created.code, created.asked()), (201, vec!["/mutate", "/validate"]));
        let request = &created.reviews[0].1["request"];
        assert_eq!((&request["operation"], &request["oldObject"]), (&json!("CREATE"), &Value::Null));
        let replaced =
            stage.put(&format!("{MAP}?fieldManager=me&fieldValidation=Strict"), map("a", "2")).await;
        let request = &replaced.reviews[1].1["request"];
        assert_eq!(request["oldObject"]["data"]["key"], "1");
        assert_eq!(request["object"]["data"]["key"], "2");
        let patched = stage.merge(&format!("{MAP}?fieldManager=me"), json!({"data": {"key": "3"}})).await;
        assert_eq!(patched.asked().len(), 2);
        let unchanged = stage.merge(MAP, json!({"data": {"key": "3"}})).await;
        assert_eq!(unchanged.asked().len(), 2, "a write that changes nothing is still a write");
        let deleted =
            stage.delete(MAP, json!({"gracePeriodSeconds": 5, "propagationPolicy": "Background"})).await;
        let request = &deleted.reviews[0].1["request"];
        assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
        assert_eq!(request["oldObject"]["data"]["key"], "3");
        let gone = stage.delete(MAP, Value::Null).await;
        assert_eq!((gone.code, gone.asked().len()), (404, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_are_reviewed_as_far_as_they_come() {
    play(async |stage| {
        watch_all(stage).await;
        stage.post(MAPS, map("a", "1")).await;
        let twice = stage.post(MAPS, map("a", "1")).await;
        assert_eq!(twice.code, 409);
        let invalid = stage.post(MAPS, map("A_b", "1")).await;
        assert_eq!((invalid.code, invalid.asked()), (422, vec!["/mutate"]));
        let stale = stage.merge(MAP, json!({"metadata": {"resourceVersion": "1"}})).await;
        assert_eq!(stale.code, 409);
        let absent = stage.put(&format!("{MAPS}/b"), map("b", "1")).await;
        assert_eq!(absent.code, 404);
        let another = stage.delete(MAP, json!({"preconditions": {"uid": "x"}})).await;
        assert_eq!(another.code, 409);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_is_a_create_and_then_an_update() {
    play(async |stage| {
        watch_all(stage).await;
        let path = format!("{MAP}?fieldManager=me&force=true");
        let created = stage.apply(&path, map("a", "1")).await;
        assert_eq!((created.code, &created.reviews[0].1["request"]["operation"]), (201, &json!("CREATE")));
        let updated = stage.apply(&path, map("a", "2")).await;
        assert_eq!((updated.code, &updated.reviews[0].1["request"]["operation"]), (200, &json!("UPDATE")));
        stage.apply(&path, map("a", "2")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_name_is_known_to_validating_webhooks() {
    play(async |stage| {
        watch_all(stage).await;
        let mut generated = map("", "1");
        generated["metadata"] = json!({"generateName": "a-"});
        let created = stage.post(MAPS, generated).await;
        let (mutating, validating) = (&created.reviews[0].1["request"], &created.reviews[1].1["request"]);
        assert_eq!(mutating["object"]["metadata"].get("name"), None);
        assert_eq!(validating["object"]["metadata"]["name"], created.body["metadata"]["name"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collection_is_deleted_one_review_at_a_time() {
    play(async |stage| {
        for name in ["a", "b", "c"] {
            let mut map = map(name, "1");
            map["metadata"]["labels"] = json!({"take": (name != "c").to_string()});
            stage.post(MAPS, map).await;
        }
        watch_all(stage).await;
        let deleted = stage.delete(&format!("{MAPS}?labelSelector=take%3Dtrue"), Value::Null).await;
        assert_eq!(deleted.code, 200);
        let names = deleted.reviews.iter().filter(|(path, _)| path == "/validate");
        let names: Vec<_> =
            names.map(|(_, review)| review["request"]["oldObject"]["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["a", "b"]);
        let left = stage.get(&format!("{MAPS}?fieldSelector=metadata.name!=kube-root-ca.crt")).await;
        assert_eq!(left.body["items"][0]["metadata"]["name"], "c");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_is_told_and_changes_nothing() {
    play(async |stage| {
        let none = stage.hook("mutate", json!({}));
        let when_told = stage.hook("validate", json!({"sideEffects": "NoneOnDryRun"}));
        stage.mutating(vec![none]).await;
        stage.validating(vec![when_told]).await;
        let created = stage.post(&format!("{MAPS}?dryRun=All"), map("a", "1")).await;
        assert_eq!((created.code, created.asked()), (201, vec!["/mutate", "/validate"]));
        assert_eq!(created.reviews[1].1["request"]["dryRun"], true);
        assert_eq!(stage.get(MAP).await.code, 404);
        stage.post(MAPS, map("a", "1")).await;
        stage.merge(&format!("{MAP}?dryRun=All"), json!({"data": {"key": "2"}})).await;
        stage.apply(&format!("{MAP}?dryRun=All&fieldManager=me&force=true"), map("a", "3")).await;
        stage.delete(&format!("{MAP}?dryRun=All"), Value::Null).await;
        stage.delete(MAP, json!({"dryRun": ["All"]})).await;
        assert_eq!(stage.get(MAP).await.body["data"]["key"], "1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn write_that_completes_a_deletion_is_an_update() {
    play(async |stage| {
        let mut held = map("a", "1");
        held["metadata"]["finalizers"] = json!(["example.com/held"]);
        stage.post(MAPS, held).await;
        watch_all(stage).await;
        stage.delete(MAP, Value::Null).await;
        let again = stage.delete(MAP, Value::Null).await;
        assert_eq!(again.code, 200);
        let freed = stage.merge(MAP, json!({"metadata": {"finalizers": null}})).await;
        assert_eq!((freed.code, &freed.reviews[0].1["request"]["operation"]), (200, &json!("UPDATE")));
        assert_eq!(stage.get(MAP).await.code, 404);
    })
    .await;
}
