use super::super::patching::{apply, decode};
use super::config_map;
use serde_json::{Value, json};

fn check(operations: &Value, expected: &str) {
    let outcome = apply(&config_map(), operations).map(|object| object["data"].to_string());
    assert_eq!(outcome.unwrap_or_else(|why| why), expected, "{operations}");
}

#[test]
fn patches_change_the_object() {
    check(&json!([{"op": "add", "path": "/data/b", "value": "2"}]), r#"{"a":"1","b":"2"}"#);
    check(&json!([{"op": "replace", "path": "/data/zzz", "value": "1"}]), r#"{"a":"1","zzz":"1"}"#);
    check(&json!([{"op": "remove", "path": "/data"}]), "null");
}

#[test]
fn a_patch_that_does_not_fit_says_which_operation() {
    let good = json!({"op": "add", "path": "/data/b", "value": "2"});
    let late = |bad: Value| json!([good, good, bad, good]);
    check(
        &late(json!({"op": "remove", "path": "/data/zzz"})),
        "error in remove for path: '/data/zzz': Unable to remove nonexistent key: zzz: missing value",
    );
    check(
        &late(json!({"op": "test", "path": "/data/a", "value": "zzz"})),
        "testing value /data/a failed: test failed",
    );
    check(&late(json!({"op": "zap", "path": "/data/a"})), "Unexpected kind: zap");
    check(
        &late(json!({"op": "add", "path": "/nope/a", "value": "zzz"})),
        "add operation does not apply: doc is missing path: \"/nope/a\": missing value",
    );
    check(
        &late(json!({"op": "copy", "from": "/nope/a", "path": "/data/c"})),
        "copy operation does not apply: doc is missing from path: /nope/a: missing value",
    );
    check(&late(json!({"op": "add"})), "add operation failed to decode path: missing value");
    // The state in which the operation fails is that after the ones before it.
    check(
        &json!([{"op": "add", "path": "/list", "value": []}, {"op": "remove", "path": "/list/3"}]),
        "error in remove for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
    );
}

#[test]
fn what_is_no_patch_is_undecodable() {
    assert_eq!(decode(b"hello").unwrap_err(), "invalid character 'h' looking for beginning of value");
    assert_eq!(
        decode(b"{}").unwrap_err(),
        "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
    );
    assert_eq!(decode(b"[").unwrap_err(), "unexpected end of JSON input");
    assert_eq!(decode(b"[]").unwrap(), json!([]));
}

#[test]
fn a_webhook_can_make_no_more_of_an_object_than_a_client() {
    let object = json!({"spec": {"z": "x".repeat(1000), "d": {}}});
    let doubled: Value =
        (0..24).map(|at| json!({"op": "copy", "from": "/spec", "path": format!("/spec/z{at}")})).collect();
    let refused = apply(&object, &doubled).unwrap_err();
    assert!(
        refused.starts_with("Unable to complete the copy, the accumulated size increase of copy is "),
        "{refused}"
    );
    assert!(refused.ends_with(", exceeding the limit 3145728"), "{refused}");
    let nested: Value =
        (0..9_000).map(|_| json!({"op": "copy", "from": "/spec/d", "path": "/spec/d/d"})).collect();
    let refused = apply(&object, &nested).unwrap_err();
    assert!(refused.ends_with("the object would be nested deeper than 125 levels"), "{refused}");
}
