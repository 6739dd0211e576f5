use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kind::Scope;

fn kind() -> Kind {
    Kind::new("apps/v1", "Deployment", "deployments", Scope::Namespaced)
}

fn with(prune: &[&str], metadata_only: bool, json: &str) -> Result<Object, Unreadable> {
    let prune = Prune::new(prune.iter().copied()).unwrap();
    read_object(&Shape::new(&kind(), &Options { prune, metadata_only }), json.as_bytes())
}

fn full() -> Value {
    json!({
        "kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "00112233-4455-6677-8899-aabbccddeeff",
            "resourceVersion": "1234", "generation": 7, "deletionTimestamp": "2024-01-01T00:00:00Z",
            "labels": {"app": "web", "quote\"d": "ü"},
            "annotations": {"a/b": "line\nbreak", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "plain"},
                {"apiVersion": "v1", "kind": "App", "name": "a", "uid": "controlling", "controller": true},
            ],
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"replicas": 3, "containers": [{"name": "a", "env": [1, 2]}, {"name": "b", "env": []}, 5]},
        "status": {"ready": 1.5e300, "big": 18_446_744_073_709_551_615_u64},
    })
}

#[test]
fn header_says_what_the_object_says() {
    let object = with(&[], false, &full().to_string()).unwrap();
    assert_eq!(object.key(), &Key::namespaced("shop", "web"));
    assert_eq!(object.uid(), "00112233-4455-6677-8899-aabbccddeeff");
    assert_eq!((object.revision(), object.resource_version()), (1234, "1234"));
    assert_eq!((object.generation(), object.is_deleting()), (7, true));
    assert_eq!(object.controller_uid(), Some("controlling"));
    assert_eq!(object.owners().iter().map(|owner| &*owner.uid).collect::<Vec<_>>(), ["plain", "controlling"]);
    assert_eq!(object.label("quote\"d").as_deref(), Some("ü"));
    assert_eq!(object.labels().len(), 2);
    assert_eq!(object.annotation("a/b").as_deref(), Some("line\nbreak"));
    assert_eq!(object.annotation("absent"), None);
    assert_eq!(object.field("/spec/containers/1/name"), Some(json!("b")));
    assert_eq!(object.field("/metadata/annotations/a~1b"), Some(json!("line\nbreak")));
    for absent in ["/spec/absent", "/spec/replicas/x", "spec", "/spec/containers/7"] {
        assert_eq!(object.field(absent), None);
    }
    assert_eq!(object.field("").unwrap(), object.value());
    assert_eq!(object.kind(), &kind());
}

#[test]
fn bare_object_has_an_empty_header() {
    let json = r#"{"metadata":{"name":"x","labels":null,"ownerReferences":null,"deletionTimestamp":null}}"#;
    let object = with(&[], false, json).unwrap();
    assert_eq!((object.uid(), object.revision(), object.generation()), ("", 0, 0));
    assert_eq!((object.controller_uid(), object.is_deleting()), (None, false));
    assert_eq!((object.labels().len(), object.owners().len(), object.key()), (0, 0, &Key::cluster("x")));
}

#[test]
fn item_of_a_list_and_metadata_only_answer_get_their_kind() {
    let object = with(&[], false, r#"{"metadata":{"name":"x"},"data":{}}"#).unwrap();
    assert_eq!(
        object.json(),
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"data":{}}"#
    );
    let json =
        r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"},"spec":{}}"#;
    let object = with(&[], true, json).unwrap();
    assert_eq!(object.json(), r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"}}"#);
}

#[test]
fn numbers_and_text_stay_as_they_were_written() {
    let data = r#"{"n":1.10,"big":123456789012345678901234567890,"t":"\u003ca\u003e\\"}"#;
    let object = with(&[], false, &format!(r#"{{"metadata":{{"name":"x"}},"data":{data}}}"#)).unwrap();
    assert!(object.json().ends_with(&format!(r#""data":{data}}}"#)));
}

#[test]
fn named_fields_are_dropped_and_no_others() {
    let prune = [
        "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
        "/spec/containers/*/env",
        "/status",
        "/absent/x",
        "/spec/replicas/x",
    ];
    let object = with(&prune, false, &full().to_string()).unwrap();
    let mut expected = full();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    expected["metadata"]["annotations"] = json!({"a/b": "line\nbreak"});
    expected["spec"]["containers"] = json!([{"name": "a"}, {"name": "b"}, 5]);
    expected.as_object_mut().unwrap().remove("status");
    assert_eq!(object.value(), expected);
    assert_eq!(object.annotation("a/b").as_deref(), Some("line\nbreak"));
}

#[test]
fn what_is_no_object_is_refused() {
    for json in ["", "7", "[]", "{", "{}x", r#"{"metadata":7}"#, r#"{"metadata":{"name":"x"}}{"#] {
        assert!(matches!(with(&[], false, json), Err(Unreadable::Json(_))), "{json}");
    }
    for json in ["{}", r#"{"metadata":{}}"#, r#"{"metadata":{"name":""}}"#] {
        assert!(matches!(with(&[], false, json), Err(Unreadable::Nameless)), "{json}");
    }
}

#[test]
fn text_that_no_parser_would_take_is_refused_by_name() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        with(&[], false, &format!(r#"{{"metadata":{{"name":"x"}},"text":"[{{\"[","data":{open}{close}}}"#))
    };
    assert!(nested(DEPTH_MAX - 1).unwrap().value().is_object());
    assert!(matches!(nested(DEPTH_MAX), Err(Unreadable::TooDeep { name }) if name == "x"));
}

#[test]
fn misfit_names_the_field() {
    let mut value = full();
    value["spec"] =
        json!({"selector": {}, "template": {"spec": {"containers": [{"name": "a"}, {"name": 7}]}}});
    let object = with(&[], false, &value.to_string()).unwrap();
    let error = object.parse::<k8s_openapi::api::apps::v1::Deployment>().unwrap_err();
    assert_eq!(error.field, "spec.template.spec.containers[1].name");
    assert_eq!(
        error.to_string(),
        "Deployment.apps/v1 shop/web: spec.template.spec.containers[1].name does not fit its type"
    );
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("expected a string"));
}

/// Names that meet each other and the prunes often.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("managedFields".to_owned()),
        "[a-c/~\"\\\\é\n]{0,3}",
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Removes as [`Prune`] says, on a tree.
fn remove(value: &mut Value, names: &[String]) {
    let Some((first, rest)) = names.split_first() else { return };
    let keep = |matches: bool, value: &mut Value| {
        if matches && rest.is_empty() {
            return false;
        }
        if matches {
            remove(value, rest);
        }
        true
    };
    match value {
        Value::Object(map) => map.retain(|name, value| keep(first == "*" || first == name, value)),
        Value::Array(items) => items.retain_mut(|value| keep(first == "*", value)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_what_parsing_removing_and_printing_gives(
        metadata in prop::collection::btree_map(name(), tree(), 0..5),
        object in prop::collection::btree_map(name(), tree(), 0..5),
        paths in prop::collection::vec(prop::collection::vec(prop_oneof![name(), Just("*".into())], 1..4), 0..4),
        in_metadata in any::<bool>(),
    ) {
        let mut value = Value::Object(object.into_iter().collect());
        value["apiVersion"] = "apps/v1".into();
        value["kind"] = "Deployment".into();
        value["metadata"] = Value::Object(metadata.into_iter().collect());
        value["metadata"]["name"] = "n\"ame".into();
        value["metadata"]["resourceVersion"] = "12".into();
        let escape = |name: &String| name.replace('~', "~0").replace('/', "~1");
        let mut pointers = Vec::new();
        let mut expected = value.clone();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        for mut path in paths {
            if in_metadata {
                path.insert(0, "metadata".into());
            }
            let pointer = format!("/{}", path.iter().map(escape).collect::<Vec<_>>().join("/"));
            if Prune::new([pointer.clone()]).is_ok() {
                pointers.push(pointer);
                remove(&mut expected, &path);
            }
        }
        let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
        let kept = with(&pointers, false, &value.to_string()).unwrap();
        prop_assert_eq!(kept.value(), expected.clone());
        prop_assert_eq!(kept.json().len(), expected.to_string().len(), "no byte more than printing gives");
        prop_assert_eq!(kept.revision(), 12);
        prop_assert_eq!(kept.key().name(), "n\"ame");
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(with(&pointers, false, &pretty).unwrap().value(), expected);
    }
}
