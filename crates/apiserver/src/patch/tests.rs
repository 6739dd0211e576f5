use super::*;
use crate::schema::{Additional, Member, PatchStrategy, Schema, SchemaRef, Type};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

fn scalar(kind: Type) -> SchemaRef {
    SchemaRef::new(Schema { kind: Some(kind), ..Schema::default() })
}

fn text_map() -> SchemaRef {
    let values = Additional::Values(scalar(Type::String));
    SchemaRef::new(Schema { kind: Some(Type::Object), additional: values, ..Schema::default() })
}

fn list(items: SchemaRef) -> SchemaRef {
    SchemaRef::new(Schema { kind: Some(Type::Array), items: Some(items), ..Schema::default() })
}

/// Fields with their merge key: `-` for none, `*` for lists of scalars.
fn object(fields: Vec<(&str, &str, SchemaRef)>) -> SchemaRef {
    let mut members = BTreeMap::new();
    let mut properties = BTreeMap::new();
    for (name, key, schema) in fields {
        let merge_key = (key != "-" && key != "*").then(|| key.to_owned());
        let patch = PatchStrategy { merge: key != "-", merge_key, ..PatchStrategy::default() };
        members.insert(name.to_owned(), Member { patch, ..Member::default() });
        properties.insert(name.to_owned(), schema);
    }
    let members = Some(Box::new(members));
    SchemaRef::new(Schema { kind: Some(Type::Object), properties, members, ..Schema::default() })
}

/// A kind with the lists that strategic merge treats specially.
fn pod() -> SchemaRef {
    let port = object(vec![
        ("containerPort", "-", scalar(Type::Integer)),
        ("protocol", "-", scalar(Type::String)),
        ("name", "-", scalar(Type::String)),
    ]);
    let container = object(vec![
        ("name", "-", scalar(Type::String)),
        ("image", "-", scalar(Type::String)),
        ("args", "-", list(scalar(Type::String))),
        ("ports", "containerPort", list(port)),
    ]);
    let volume = object(vec![
        ("name", "-", scalar(Type::String)),
        ("emptyDir", "-", text_map()),
        ("hostPath", "-", text_map()),
    ]);
    let spec = object(vec![
        ("containers", "name", list(container)),
        ("volumes", "name", list(volume)),
        ("tolerations", "-", list(text_map())),
    ]);
    let metadata = object(vec![("finalizers", "*", list(scalar(Type::String))), ("labels", "-", text_map())]);
    object(vec![("metadata", "-", metadata), ("spec", "-", spec)])
}

fn stored() -> Value {
    json!({
        "metadata": {"finalizers": ["a/b", "c/d"], "labels": {"x": "1", "y": "2"}},
        "spec": {
            "containers": [
                {"name": "a", "image": "x", "args": ["1", "2"]},
                {"name": "b", "image": "y", "ports": [
                    {"containerPort": 80, "protocol": "TCP"},
                    {"containerPort": 80, "protocol": "UDP"},
                ]},
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "tolerations": [{"key": "k"}],
        },
    })
}

fn strategic(patch: Value) -> Result<Value, ApiError> {
    strategic::apply(stored(), patch, &pod()).map_err(ApiError::from)
}

#[track_caller]
fn check_spec(patch: &Value, field: &str, expected: &Value) {
    assert_eq!(strategic(json!({"spec": patch})).unwrap()["spec"][field], *expected);
}

#[test]
fn keyed_lists_merge_and_new_items_come_first() {
    let (a, b) = (stored()["spec"]["containers"][0].clone(), stored()["spec"]["containers"][1].clone());
    let c = json!({"name": "c", "image": "z"});
    check_spec(&json!({"containers": [c]}), "containers", &json!([c, a, b]));
    let mut changed = a.clone();
    changed["image"] = json!("a2");
    check_spec(
        &json!({"containers": [c, {"name": "a", "image": "a2"}]}),
        "containers",
        &json!([c, changed, b]),
    );
    check_spec(&json!({"containers": [{"name": "b", "$patch": "delete"}]}), "containers", &json!([a]));
    check_spec(&json!({"containers": [{"$patch": "replace"}, c]}), "containers", &json!([c]));
    check_spec(&json!({"containers": null}), "containers", &Value::Null);
}

#[test]
fn items_with_equal_keys_are_one_to_the_patch() {
    let ports = |ports: Value| json!({"spec": {"containers": [{"name": "b", "ports": ports}]}});
    let result = |patch: Value| {
        let mut result = strategic(ports(patch)).unwrap();
        result["spec"]["containers"][1]["ports"].take()
    };
    assert_eq!(
        result(json!([{"containerPort": 80, "name": "w"}])),
        json!([{"containerPort": 80, "protocol": "TCP", "name": "w"}, {"containerPort": 80, "protocol": "UDP"}])
    );
    assert_eq!(result(json!([{"containerPort": 80, "$patch": "delete"}])), json!([]));
}

#[test]
fn an_order_list_orders() {
    let names = |patch: Value| -> Vec<String> {
        let result = strategic(json!({"spec": patch})).unwrap();
        let containers = result["spec"]["containers"].as_array().unwrap();
        containers.iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect()
    };
    let order = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    assert_eq!(
        names(json!({
            "$setElementOrder/containers": order(&["b", "n", "a"]),
            "containers": [{"name": "n", "image": "n"}],
        })),
        ["b", "n", "a"]
    );
    assert_eq!(names(json!({"$setElementOrder/containers": order(&["b", "a"])})), ["b", "a"]);
    assert_eq!(names(json!({"$setElementOrder/containers": order(&["b"])})), ["a", "b"]);
}

#[test]
fn scalar_lists_merge_by_value() {
    let finalizers =
        |patch: Value| strategic(json!({"metadata": patch})).unwrap()["metadata"]["finalizers"].clone();
    assert_eq!(finalizers(json!({"finalizers": ["e/f"]})), json!(["e/f", "a/b", "c/d"]));
    assert_eq!(finalizers(json!({"finalizers": ["c/d", "e/f", "e/f"]})), json!(["a/b", "c/d", "e/f"]));
    assert_eq!(finalizers(json!({"$deleteFromPrimitiveList/finalizers": ["a/b", "x"]})), json!(["c/d"]));
    assert_eq!(finalizers(json!({"$setElementOrder/finalizers": ["c/d", "a/b"]})), json!(["c/d", "a/b"]));
}

#[test]
fn lists_without_strategy_and_objects_follow_directives() {
    check_spec(&json!({"tolerations": [{"key": "q"}]}), "tolerations", &json!([{"key": "q"}]));
    check_spec(
        &json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}),
        "volumes",
        &json!([{"name": "v", "hostPath": {"path": "/x"}}]),
    );
    let labels = |patch: Value| {
        strategic(json!({"metadata": {"labels": patch}})).unwrap()["metadata"]["labels"].clone()
    };
    assert_eq!(labels(json!({"x": null, "z": "3"})), json!({"y": "2", "z": "3"}));
    assert_eq!(labels(json!({"$patch": "replace", "z": "3"})), json!({"z": "3"}));
    assert_eq!(labels(json!({"$patch": "delete"})), json!({}));
    assert_eq!(labels(json!({"$retainKeys": ["x"]})), json!({"x": "1"}));
    assert_eq!(labels(json!({"x": {"$patch": "delete"}})), json!({"y": "2"}));
}

#[test]
fn mistakes_in_strategic_patches_are_worded_as_kubernetes_does() {
    for (patch, code, message) in [
        (
            json!({"metadata": {"labels": {"$patch": "frob"}}}),
            500,
            "unknown patch type: frob in map: map[$patch:frob]",
        ),
        (
            json!({"metadata": {"labels": {"$patch": 1}}}),
            500,
            "unknown patch type: %!s(int64=1) in map: map[$patch:1]",
        ),
        (
            json!({"spec": {"containers": [{"$patch": "delete"}]}}),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": [{"image": "q", "env": [1, 2.5, null, true, {"a": "b"}]}]}}),
            500,
            "map: map[env:[1 2.5 <nil> true map[a:b]] image:q] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": [{"$patch": "merge"}]}}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"metadata": {"finalizers": ["c/d", {"a": 1}]}}),
            500,
            "list element types are not identical: [[a/b c/d] [c/d map[a:1]]]",
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["a/b"], "finalizers": ["c/d"]}}),
            500,
            "The order in patch list:\n[c/d]\n doesn't match $setElementOrder list:\n[a/b]\n",
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": "a/b"}}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"metadata": {"$setElementOrder/labels": ["a"]}}),
            500,
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"nam": "b"}]}}),
            500,
            "map: map[nam:b] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"$setElementOrder/volumes": [{"name": "v"}, "x"]}}),
            500,
            "expected a map[string]interface {}, but received a string",
        ),
        (json!({"spec": {"$setElementOrder/volumes": ["x"]}}), 500, "value for key 0 is not a map"),
        (
            json!({"spec": {"$setElementOrder/volumes": [{"name": "v"}], "volumes": [{"name": "v"}, {}]}}),
            500,
            "The order in patch list:\n[map[name:v] map[]]\n doesn't match $setElementOrder list:\n[map[name:v]]\n",
        ),
        (
            json!({"metadata": {"$setElementOrder": ["a"]}}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}),
            400,
            "invalid patch format of primitive list",
        ),
        (json!({"metadata": {"$retainKeys": "x"}}), 400, "invalid patch format of retainKeys"),
        (
            json!({"metadata": {"$retainKeys": ["finalizers"], "labels": {}}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        let error = strategic(patch).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (code, message));
        assert_eq!(error.reason, if code == 400 { "BadRequest" } else { "" });
    }
    assert_eq!(strategic(Value::Null).unwrap(), stored());
}

fn config() -> Value {
    json!({"metadata": {"finalizers": ["a", "b"]}, "data": {"k": "v", "x": "y"}})
}

fn json_patched(patch: &Value) -> Result<Value, ApiError> {
    json_patch::apply(config(), patch, true).map_err(ApiError::from)
}

#[test]
fn json_patches_change_what_they_name() {
    for (operation, pointer, expected) in [
        (json!({"op": "add", "path": "/data/new", "value": "a"}), "/data/new", json!("a")),
        (json!({"op": "add", "path": "/data/new"}), "/data/new", Value::Null),
        (json!({"op": "add", "path": "/data/a~1b~0c", "value": "1"}), "/data/a~1b~0c", json!("1")),
        (
            json!({"op": "add", "path": "/metadata/finalizers/-", "value": "c"}),
            "/metadata/finalizers",
            json!(["a", "b", "c"]),
        ),
        (
            json!({"op": "add", "path": "/metadata/finalizers/0", "value": "c"}),
            "/metadata/finalizers",
            json!(["c", "a", "b"]),
        ),
        (
            json!({"op": "add", "path": "/metadata/finalizers/-1", "value": "c"}),
            "/metadata/finalizers",
            json!(["a", "b", "c"]),
        ),
        (json!({"op": "add", "path": "ignored/m", "value": "1"}), "/m", json!("1")),
        (
            json!({"op": "replace", "path": "/metadata/finalizers/-1", "value": "c"}),
            "/metadata/finalizers",
            json!(["a", "c"]),
        ),
        (json!({"op": "replace", "path": "/data/none", "value": "a"}), "/data/none", json!("a")),
        (json!({"op": "replace", "path": "", "value": {"q": 1}}), "", json!({"q": 1})),
        (json!({"op": "remove", "path": "/data"}), "", json!({"metadata": {"finalizers": ["a", "b"]}})),
        (json!({"op": "remove", "path": "/metadata/finalizers/-1"}), "/metadata/finalizers", json!(["a"])),
        (json!({"op": "move", "from": "/data/k", "path": "/data/m"}), "/data", json!({"m": "v", "x": "y"})),
        (json!({"op": "copy", "from": "/data/k", "path": "/data/m"}), "/data/m", json!("v")),
        (json!({"op": "copy", "from": "/data/none", "path": "/data/m"}), "/data/m", Value::Null),
        (json!({"op": "test", "path": "/data", "value": {"x": "y", "k": "v"}}), "", config()),
        (json!({"op": "test", "path": "/data/none"}), "", config()),
        (json!({"op": "test", "path": "", "value": config()}), "", config()),
    ] {
        let result = json_patched(&json!([operation.clone()])).unwrap();
        assert_eq!(result.pointer(pointer), Some(&expected), "{operation}");
    }
    assert_eq!(json_patched(&Value::Null).unwrap(), config());
}

#[test]
fn json_patches_that_do_not_fit_are_unprocessable() {
    for operation in [
        json!({"op": "test", "path": "/data/k", "value": "z"}),
        json!({"op": "test", "path": "/data/k"}),
        json!({"op": "test", "path": "/none/none", "value": "z"}),
        json!({"op": "test", "path": "/metadata/finalizers/9", "value": "x"}),
        json!({"op": "remove", "path": "/data/none"}),
        json!({"op": "remove", "path": "/metadata/finalizers/-"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "replace", "path": "/none/none", "value": "a"}),
        json!({"op": "replace", "path": "/metadata/finalizers/3", "value": "a"}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "add", "path": "/none/new", "value": "a"}),
        json!({"op": "add", "path": "/metadata/finalizers/5", "value": "c"}),
        json!({"op": "add", "path": "/metadata/finalizers/-5", "value": "c"}),
        json!({"op": "add", "path": "/metadata/finalizers/x", "value": "c"}),
        json!({"op": "add", "path": "/data/k/z", "value": "c"}),
        json!({"op": "add", "value": 1}),
        json!({"op": "move", "from": "/data/none", "path": "/data/m"}),
        json!({"op": "move", "path": "/data/m"}),
        json!({"op": "copy", "from": "/none/none", "path": "/data/m"}),
        json!({"op": "frob", "path": "/data/m"}),
        json!({"path": "/data/m"}),
        Value::Null,
    ] {
        let error = json_patched(&json!([operation.clone()])).unwrap_err();
        assert_eq!((error.code, &*error.reason), (422, "Invalid"), "{operation}");
        assert_eq!(error.message, "the server rejected our request due to an error in our request");
        assert_eq!(error.to_status()["details"], json!({}));
    }
}

#[test]
fn bodies_that_are_no_json_patch_are_bad_requests() {
    for (patch, checked, message) in [
        (
            json!({}),
            true,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            json!([1]),
            true,
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([{"op": 1}]),
            true,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
        (json!({}), false, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (json!([1]), false, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
    ] {
        let error = ApiError::from(json_patch::apply(config(), &patch, checked).unwrap_err());
        assert_eq!((error.code, error.message.as_str()), (400, message));
    }
    let many = vec![json!({"op": "test", "path": "/data/k", "value": "v"}); 10_001];
    let error = json_patched(&Value::Array(many)).unwrap_err();
    let message =
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!((error.code, error.message.as_str()), (413, message));
    let patch = json!([{"op": "add", "path": "/x", "extra": 2}]);
    assert_eq!(json_patch::unknown_fields(&patch), ["json patch unknown field \"[0].extra\""]);
}

#[test]
fn merge_patches_merge() {
    let patched = |patch: Value| merge_patch::apply(config(), patch, true).map_err(ApiError::from);
    let result =
        patched(json!({"data": {"k": null, "n": "1"}, "new": {"a": null, "l": [{"b": null}, null]}}));
    assert_eq!(
        result.unwrap(),
        json!({
            "metadata": {"finalizers": ["a", "b"]},
            "data": {"x": "y", "n": "1"},
            "new": {"l": [{}, null]},
        })
    );
    assert_eq!(patched(json!({"data": [{"a": null}]})).unwrap()["data"], json!([{"a": null}]));
    let error = patched(json!([])).unwrap_err();
    let expected =
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!((error.code, error.message.as_str()), (400, expected));
    assert_eq!(patched(Value::Null).unwrap_err().message, "Invalid JSON Patch");
    assert_eq!(merge_patch::apply(config(), json!([{"a": null}]), false).unwrap(), json!([{}]));
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "metadata",
        "spec",
        "containers",
        "volumes",
        "finalizers",
        "labels",
        "name",
        "ports",
        "containerPort",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
        "op",
        "path",
        "value",
        "from",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        crate::extremes::numbers(),
        prop::sample::select(vec![
            "a",
            "b",
            "replace",
            "delete",
            "add",
            "move",
            "/spec/containers/0",
            "name"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(ToOwned::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_makes_anything_panic(patch in any_json(), operations in prop::collection::vec(any_json(), 0..4)) {
        let _ = strategic(patch.clone());
        let _ = strategic(json!({"spec": patch.clone(), "metadata": patch.clone()}));
        let _ = strategic(json!({"spec": {"containers": [patch.clone()]}}));
        let _ = merge_patch::apply(stored(), patch.clone(), true);
        let _ = json_patch::apply(stored(), &patch, false);
        let _ = json_patch::apply(stored(), &Value::Array(operations), true);
    }

    // Twice, not once: a list that replaces an object keeps the nulls in it until it replaces a list.
    #[test]
    fn merge_patches_settle(patch in any_json()) {
        let again = |target: Value| merge_patch::apply(target, patch.clone(), true);
        if let Ok(twice) = again(stored()).and_then(again) {
            prop_assert_eq!(again(twice.clone()).unwrap(), twice);
        }
    }
}

#[test]
fn an_object_as_its_own_patch_changes_nothing() {
    assert_eq!(merge_patch::apply(stored(), stored(), true).unwrap(), stored());
    let mut unique = stored();
    unique["spec"]["containers"][1]["ports"] = json!([{"containerPort": 80}, {"containerPort": 81}]);
    assert_eq!(strategic::apply(unique.clone(), unique.clone(), &pod()).unwrap(), unique);
}
