//! The one form of a desired child, and what can't be desired.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::super::{Desired, DesiredError};

fn named() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}})
}

#[test]
fn a_child_is_brought_into_one_form() {
    let mut child = named();
    child["metadata"]["resourceVersion"] = json!("7");
    child["metadata"]["uid"] = json!("u");
    child["metadata"]["annotations"] = json!({"mainstay.dev/applied": "0000"});
    child["data"] = json!(null);
    let desired = Desired::new(child).unwrap();
    assert_eq!(desired.object(), &named());
    assert!(desired.is_only_named());
    assert_eq!((desired.api_version(), desired.kind()), ("v1", "ConfigMap"));
    assert_eq!((desired.namespace(), desired.name()), (Some("shop"), "web"));
    expect!["5e6bec0ec9c33c2b"].assert_eq(desired.hash());

    assert!(!desired.was_applied_to(desired.object()));
    assert!(desired.was_applied_to(&desired.to_apply()));
    assert_eq!(Desired::new(desired.to_apply()).unwrap(), desired);
}

#[test]
fn a_child_that_says_anything_is_more_than_named() {
    for (field, value) in [("data", json!({})), ("metadata", json!({"name": "web", "labels": {}}))] {
        let mut child = named();
        child[field] = value;
        assert!(!Desired::new(child).unwrap().is_only_named());
    }
}

#[test]
fn string_data_of_a_secret_becomes_data() {
    let secret = |data: Value| {
        let mut secret = named();
        secret["kind"] = json!("Secret");
        for (name, value) in data.as_object().unwrap() {
            secret[name] = value.clone();
        }
        Desired::new(secret).unwrap()
    };
    assert_eq!(
        secret(json!({"stringData": {"a": "hunter2"}, "data": {"a": "eA==", "b": "eQ=="}})),
        secret(json!({"data": {"a": "aHVudGVyMg==", "b": "eQ=="}})),
    );
    assert_eq!(secret(json!({"stringData": {"a": 1}})).object()["stringData"], json!({"a": 1}));
}

#[test]
fn what_cannot_be_desired_is_refused_by_name() {
    let refuse = |child: Value, expect: Expect| {
        let error: DesiredError = Desired::new(child).unwrap_err();
        expect.assert_eq(&error.to_string());
    };
    let mut child = named();
    child["status"] = json!({});
    refuse(
        child,
        expect![
            "the desired child ConfigMap shop/web has a status, which only the controller of its kind may set"
        ],
    );
    refuse(json!([]), expect!["a desired child must be an object, and this one is a list"]);
    refuse(
        json!({"kind": "X", "metadata": {"name": "x"}}),
        expect!["the desired child X x has no apiVersion"],
    );
    refuse(
        json!({"apiVersion": "v1", "metadata": {"name": "x"}}),
        expect!["the desired child of no kind x has no kind"],
    );
    refuse(
        json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": 1}}),
        expect!["the desired child X has no metadata.name"],
    );
}
