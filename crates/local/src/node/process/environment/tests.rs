use super::*;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn sources() -> Sources {
    let config: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "settings"},
        "data": {"colour": "blue", "app.size": "large", "SHARED": "config"},
    }))
    .unwrap();
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "keys"}, "data": {"password": "aHVudGVyMg==", "SHARED": "c2VjcmV0"},
    }))
    .unwrap();
    Sources {
        config_maps: [("settings".to_owned(), Some(config)), ("absent".to_owned(), None)].into(),
        secrets: [("keys".to_owned(), Some(secret)), ("absent".to_owned(), None)].into(),
    }
}

fn variables(container: Value) -> Result<BTreeMap<String, String>, String> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"containers": []},
    }))
    .unwrap();
    let container: Container = serde_json::from_value(container).unwrap();
    let allocatable = BTreeMap::new();
    let downward = Downward { pod: &pod, address: "127.4.5.6", host: "127.0.0.1", allocatable: &allocatable };
    let services = [("DB_SERVICE_HOST".to_owned(), "127.9.9.9".to_owned())].into();
    declared(&container, &sources(), &downward, &services)
}

fn check(env_from: Value, env: Value, expected: &[(&str, &str)]) {
    let found = variables(json!({"name": "main", "envFrom": env_from, "env": env})).unwrap();
    let found: Vec<(&str, &str)> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(found, expected);
}

fn fails(env_from: Value, env: Value, expected: &str) {
    let refused = variables(json!({"name": "main", "envFrom": env_from, "env": env})).unwrap_err();
    assert_eq!(refused, expected);
}

#[test]
fn values_refer_to_what_was_declared_before_and_to_services() {
    check(
        json!([]),
        json!([
            {"name": "LATE", "value": "$(FIRST)"},
            {"name": "FIRST", "value": "1"},
            {"name": "SECOND", "value": "$(FIRST)2"},
            {"name": "DB", "value": "tcp://$(DB_SERVICE_HOST)"},
            {"name": "KEPT", "value": "$$(FIRST)"},
            {"name": "EMPTY"},
        ]),
        &[
            ("DB", "tcp://127.9.9.9"),
            ("EMPTY", ""),
            ("FIRST", "1"),
            ("KEPT", "$(FIRST)"),
            ("LATE", "$(FIRST)"),
            ("SECOND", "12"),
        ],
    );
}

#[test]
fn later_declarations_win() {
    check(
        json!([{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}]),
        json!([{"name": "colour", "value": "red"}, {"name": "colour", "value": "$(colour)der"}]),
        &[("SHARED", "secret"), ("app.size", "large"), ("colour", "redder"), ("password", "hunter2")],
    );
}

#[test]
fn names_that_are_no_identifiers_are_kept_with_their_prefix() {
    check(
        json!([{"prefix": "my-", "configMapRef": {"name": "settings"}}]),
        json!([]),
        &[("my-SHARED", "config"), ("my-app.size", "large"), ("my-colour", "blue")],
    );
}

#[test]
fn values_come_from_fields_config_maps_and_secrets() {
    check(
        json!([]),
        json!([
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        ]),
        &[("COLOUR", "blue"), ("CPU", "0"), ("NAME", "web-0"), ("PASSWORD", "hunter2")],
    );
}

#[test]
fn optional_sources_may_be_absent() {
    check(
        json!([
            {"configMapRef": {"name": "absent", "optional": true}},
            {"secretRef": {"name": "absent", "optional": true}},
        ]),
        json!([
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "x", "optional": true}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x", "optional": true}}},
            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "x", "optional": true}}},
        ]),
        &[],
    );
}

#[test]
fn absent_sources_are_named_as_kubernetes_names_them() {
    fails(json!([{"configMapRef": {"name": "absent"}}]), json!([]), "configmap \"absent\" not found");
    fails(json!([{"secretRef": {"name": "absent"}}]), json!([]), "secret \"absent\" not found");
    let one = |reference: Value| json!([{"name": "A", "valueFrom": reference}]);
    fails(
        json!([]),
        one(json!({"configMapKeyRef": {"name": "settings", "key": "x"}})),
        "couldn't find key x in ConfigMap shop/settings",
    );
    fails(
        json!([]),
        one(json!({"secretKeyRef": {"name": "keys", "key": "x"}})),
        "couldn't find key x in Secret shop/keys",
    );
    fails(
        json!([]),
        one(json!({"secretKeyRef": {"name": "absent", "key": "x"}})),
        "secret \"absent\" not found",
    );
}

#[test]
fn host_name_is_the_pods_unless_it_is_given() {
    let spec = |value: Value| serde_json::from_value::<PodSpec>(value).unwrap();
    let plain = spec(json!({"containers": []}));
    assert_eq!(host_name("web-0", "shop", &plain), ("web-0".into(), None));
    let given = spec(json!({"containers": [], "hostname": "h", "subdomain": "web"}));
    assert_eq!(host_name("web-0", "shop", &given), ("h".into(), Some("web.shop.svc.cluster.local".into())));
    let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
    assert_eq!(host_name(&long, "shop", &plain).0, "a".repeat(62));
}
