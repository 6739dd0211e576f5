//! What a patch may make of an object: so many levels, so many bytes, in so many steps.

use super::{PatchError, json_patch, merge_patch};
use crate::bounds::{BODY_DEPTH_MAX, STORED_DEPTH_MAX, depth_within};
use crate::status::ApiError;
use proptest::prelude::*;
use serde_json::{Value, json};

fn apply(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    json_patch::apply(target.clone(), patch, true)
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({"a": inner}))
}

#[test]
fn copies_that_double_are_refused_before_they_exhaust_memory() {
    let kilobyte = json!({"spec": {"z": "x".repeat(1000)}});
    let doublings = |count: usize| -> Value {
        (0..count).map(|at| json!({"op": "copy", "from": "/spec", "path": format!("/spec/z{at}")})).collect()
    };
    assert!(apply(&kilobyte, &doublings(11)).is_ok());
    let refused = apply(&kilobyte, &doublings(24)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Unable to complete the copy, the accumulated size increase of copy is 4152259, exceeding the limit 3145728"
    );
    // Clients are told nothing of it, as by kube-apiserver.
    let error = ApiError::from(refused);
    assert_eq!(error.code, 422);
    assert_eq!(error.message, "the server rejected our request due to an error in our request");
}

#[test]
fn copies_into_themselves_are_refused_before_they_exhaust_the_stack() {
    let target = json!({"d": {}});
    let nest = |count: usize| -> Value {
        (0..count).map(|_| json!({"op": "copy", "from": "/d", "path": "/d/d"})).collect()
    };
    let result = apply(&target, &nest(STORED_DEPTH_MAX - 2)).unwrap();
    assert_eq!(depth_within(&result, STORED_DEPTH_MAX), Some(STORED_DEPTH_MAX));
    assert_eq!(apply(&target, &nest(STORED_DEPTH_MAX - 1)), Err(PatchError::TooDeep));
    assert_eq!(apply(&target, &nest(9_000)), Err(PatchError::TooDeep));
    assert_eq!(ApiError::from(PatchError::TooDeep).code, 413);
}

#[test]
fn values_are_not_grafted_too_deep_down() {
    let target = nested(60);
    let path = "/a".repeat(59);
    for op in ["add", "replace"] {
        let graft = |depth: usize| json!([{"op": op, "path": format!("{path}/b"), "value": nested(depth)}]);
        assert!(apply(&target, &graft(STORED_DEPTH_MAX - 60)).is_ok(), "{op}");
        assert_eq!(apply(&target, &graft(STORED_DEPTH_MAX - 59)), Err(PatchError::TooDeep), "{op}");
    }
    let target = json!({"a": nested(60), "b": nested(65)});
    let path = |levels: usize| format!("/a{}", "/a".repeat(levels));
    let moved = |levels: usize| json!([{"op": "move", "from": "/b", "path": path(levels)}]);
    assert!(apply(&target, &moved(58)).is_ok());
    let target = json!({"a": nested(60), "b": nested(66)});
    assert!(apply(&target, &moved(58)).is_ok());
    assert_eq!(apply(&target, &moved(59)), Err(PatchError::TooDeep));
}

#[test]
fn shifting_long_lists_ten_thousand_times_is_refused() {
    let target = json!({"l": vec![0; 100_000]});
    let patch: Value = (0..10_000).map(|_| json!({"op": "add", "path": "/l/0", "value": 0})).collect();
    assert_eq!(apply(&target, &patch), Err(PatchError::MovesTooMuch));
    let target = json!({"l": vec![0; 1_000]});
    assert!(apply(&target, &patch).is_err(), "a thousand more each time is still too many");
    let target = json!({"l": []});
    let patch: Value = (0..10_000).map(|_| json!({"op": "add", "path": "/l/-", "value": 0})).collect();
    assert_eq!(apply(&target, &patch).unwrap()["l"].as_array().unwrap().len(), 10_000);
}

/// An operation that takes any part of a small object anywhere in it.
fn any_operation() -> impl Strategy<Value = Value> {
    let path = prop::collection::vec(
        prop::sample::select(vec!["a", "b", "0", "-", "-1", "9223372036854775807"]),
        0..8,
    );
    let path =
        path.prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect::<Vec<_>>().concat());
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    let value = prop_oneof![
        Just(Value::Null),
        Just(json!({"a": {"b": []}})),
        (0..=BODY_DEPTH_MAX).prop_map(nested),
        (0..2000usize).prop_map(|length| json!({"a": "x".repeat(length), "b": [[]]})),
    ];
    (op, path.clone(), path, value)
        .prop_map(|(op, from, path, value)| json!({"op": op, "from": from, "path": path, "value": value}))
}

proptest! {
    #[test]
    fn no_json_patch_makes_more_than_there_may_be(
        operations in prop::collection::vec(any_operation(), 0..60),
        depth in 0..=BODY_DEPTH_MAX,
    ) {
        let target = json!({"a": {"a": nested(depth.saturating_sub(2)), "b": []}, "b": [[{"a": {}}], {"b": {}}]});
        if let Ok(result) = apply(&target, &Value::Array(operations)) {
            prop_assert!(depth_within(&result, STORED_DEPTH_MAX).is_some());
            prop_assert!(result.to_string().len() < 2 * json_patch::COPIED_BYTES_MAX);
        }
    }
}

#[test]
fn a_merge_patch_is_no_deeper_than_what_it_is_made_of() {
    let merged = merge_patch::apply(nested(BODY_DEPTH_MAX), nested(BODY_DEPTH_MAX), true).unwrap();
    assert_eq!(depth_within(&merged, STORED_DEPTH_MAX), Some(BODY_DEPTH_MAX));
}
