use super::super::hook::Hook;
use super::super::matching::{is_exempt, wanted_form};
use super::super::{Attributes, Equivalents, Gvk, Gvr, Operation, Served};
use super::{ONE_FORM, config_map, create_config_map};
use serde_json::{Value, json};

fn everything() -> Value {
    json!({
        "name": "x",
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
        "namespaceSelector": {},
        "objectSelector": {},
    })
}

/// Whether a webhook that differs from [`everything`] in one field wants the request.
fn wants(field: &str, value: Value, attributes: &Attributes<'_>) -> bool {
    let mut hook = everything();
    hook[field] = value;
    let object = config_map();
    wanted_form(&Hook::new(&hook), attributes, Some(&object), None).unwrap().is_some()
}

fn request<'a>(
    operation: Operation,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
) -> Attributes<'a> {
    let (group, resource) = resource.split_once('/').unwrap_or(("", resource));
    let resource = Gvr { group, version: "v1", resource };
    Attributes { operation, resource, subresource, namespace, ..create_config_map() }
}

#[test]
fn rules_choose_by_operation_group_version_resource_and_scope() {
    use Operation::{Create, Delete, Update};
    // operations, groups, versions, resources, scope; request; expected
    let cases = [
        ("CREATE", "", "v1", "pods", "*", request(Create, "pods", "", "a"), true),
        ("UPDATE", "", "v1", "pods", "*", request(Create, "pods", "", "a"), false),
        ("*", "", "v1", "pods", "*", request(Delete, "pods", "", "a"), true),
        ("*", "apps", "v1", "pods", "*", request(Create, "pods", "", "a"), false),
        ("*", "*", "v2", "pods", "*", request(Create, "pods", "", "a"), false),
        ("*", "apps", "*", "deployments", "*", request(Create, "apps/deployments", "", "a"), true),
        ("*", "*", "*", "*", "*", request(Create, "pods", "", "a"), true),
        ("*", "*", "*", "*", "*", request(Update, "pods", "status", "a"), false),
        ("*", "*", "*", "*/*", "*", request(Update, "pods", "status", "a"), true),
        ("*", "*", "*", "*/*", "*", request(Update, "pods", "", "a"), true),
        ("*", "*", "*", "pods/*", "*", request(Update, "pods", "exec", "a"), true),
        ("*", "*", "*", "pods/*", "*", request(Update, "pods", "", "a"), true),
        ("*", "*", "*", "pods/*", "*", request(Update, "nodes", "status", ""), false),
        ("*", "*", "*", "*/status", "*", request(Update, "nodes", "status", ""), true),
        ("*", "*", "*", "*/status", "*", request(Update, "nodes", "", ""), false),
        ("*", "*", "*", "pods/status", "*", request(Update, "pods", "exec", "a"), false),
        ("*", "*", "*", "*", "Namespaced", request(Create, "pods", "", "a"), true),
        ("*", "*", "*", "*", "Namespaced", request(Create, "nodes", "", ""), false),
        ("*", "*", "*", "*", "Cluster", request(Create, "nodes", "", ""), true),
        ("*", "*", "*", "*", "Cluster", request(Create, "pods", "", "a"), false),
        // A Namespace is cluster-scoped though requests for it carry a namespace.
        ("*", "*", "*", "*", "Cluster", request(Create, "namespaces", "", "a"), true),
        ("*", "*", "*", "*", "Namespaced", request(Create, "namespaces", "", "a"), false),
    ];
    for (operation, group, version, resource, scope, attributes, expected) in cases {
        let rule = json!({"operations": [operation], "apiGroups": [group], "apiVersions": [version],
            "resources": [resource], "scope": scope});
        let wanted = wants("rules", json!([rule]), &attributes);
        let (verb, asked) = (attributes.operation.name(), attributes.resource.resource);
        assert_eq!(wanted, expected, "{rule} for {verb} {asked}/{}", attributes.subresource);
    }
}

#[test]
fn without_rules_nothing_is_wanted() {
    assert!(!wants("rules", json!([]), &create_config_map()));
}

#[test]
fn namespace_selector_sees_the_labels_of_the_namespace() {
    let namespace = json!({"metadata": {"name": "test", "labels": {"team": "a"}}});
    let attributes = Attributes { namespace_object: Some(&namespace), ..create_config_map() };
    assert!(wants("namespaceSelector", json!({"matchLabels": {"team": "a"}}), &attributes));
    assert!(!wants("namespaceSelector", json!({"matchLabels": {"team": "b"}}), &attributes));
    let absent = json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]});
    assert!(!wants("namespaceSelector", absent, &attributes));
}

#[test]
fn cluster_scoped_objects_are_never_exempt_by_namespace_selector() {
    let nodes = request(Operation::Create, "nodes", "", "");
    assert!(wants("namespaceSelector", json!({"matchLabels": {"team": "b"}}), &nodes));
}

#[test]
fn a_namespace_is_selected_by_its_new_labels_and_when_deleted_by_its_stored_ones() {
    let mut hook = everything();
    hook["namespaceSelector"] = json!({"matchLabels": {"team": "new"}});
    let hook = Hook::new(&hook);
    let stored = json!({"metadata": {"labels": {"team": "old"}}});
    let given = json!({"metadata": {"labels": {"team": "new"}}});
    let update = request(Operation::Update, "namespaces", "", "test");
    let update = Attributes { namespace_object: Some(&stored), ..update };
    assert!(wanted_form(&hook, &update, Some(&given), Some(&stored)).unwrap().is_some());
    let delete = Attributes { operation: Operation::Delete, ..update };
    assert!(wanted_form(&hook, &delete, None, Some(&given)).unwrap().is_none());
}

#[test]
fn a_missing_namespace_is_an_error_only_for_webhooks_that_apply() {
    let mut hook = everything();
    hook["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    let object = config_map();
    let error = wanted_form(&Hook::new(&hook), &create_config_map(), Some(&object), None).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (404, "namespaces \"test\" not found"));
    hook["objectSelector"] = json!({"matchLabels": {"other": "object"}});
    assert_eq!(wanted_form(&Hook::new(&hook), &create_config_map(), Some(&object), None), Ok(None));
    hook["objectSelector"] = json!({});
    hook["rules"] = json!([]);
    assert_eq!(wanted_form(&Hook::new(&hook), &create_config_map(), Some(&object), None), Ok(None));
}

#[test]
fn object_selector_sees_the_new_or_the_old_object() {
    let mut hook = everything();
    hook["objectSelector"] = json!({"matchLabels": {"a": "b"}});
    let hook = Hook::new(&hook);
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let plain = json!({"metadata": {}});
    for (object, old, expected) in [
        (Some(&labelled), None, true),
        (Some(&plain), Some(&labelled), true),
        (None, Some(&labelled), true),
        (Some(&plain), Some(&plain), false),
        (None, None, false),
    ] {
        let form = wanted_form(&hook, &create_config_map(), object, old).unwrap();
        assert_eq!(form.is_some(), expected, "{object:?} {old:?}");
    }
}

#[test]
fn equivalent_policy_wants_the_form_that_a_rule_names() {
    let form = |version| Served {
        resource: Gvr { group: "g", version, resource: "things" },
        kind: Gvk { group: "g", version, kind: "Thing" },
    };
    let served = [form("v1"), form("v2"), form("v3")];
    let equivalents = Equivalents { served: &served, ..ONE_FORM };
    let attributes = Attributes {
        kind: form("v1").kind,
        resource: form("v1").resource,
        equivalents,
        ..create_config_map()
    };
    let rule = |version: &str| json!({"operations": ["*"], "apiGroups": ["g"], "apiVersions": [version], "resources": ["things"]});
    let object = config_map();
    for (policy, rules, expected) in [
        ("Exact", json!([rule("v2")]), None),
        ("Equivalent", json!([rule("v2")]), Some(form("v2"))),
        ("Equivalent", json!([rule("v3"), rule("v2")]), Some(form("v3"))),
        ("Equivalent", json!([rule("v3"), rule("v1")]), Some(form("v1"))),
        ("Equivalent", json!([rule("v4")]), None),
    ] {
        let mut hook = everything();
        hook["matchPolicy"] = policy.into();
        hook["rules"] = rules;
        assert_eq!(wanted_form(&Hook::new(&hook), &attributes, Some(&object), None), Ok(expected), "{hook}");
    }
}

#[test]
fn admission_configurations_are_exempt() {
    let kind = |group, kind| Attributes { kind: Gvk { group, version: "v1", kind }, ..create_config_map() };
    assert!(is_exempt(&kind("admissionregistration.k8s.io", "MutatingWebhookConfiguration")));
    assert!(is_exempt(&kind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")));
    assert!(!is_exempt(&kind("example.com", "MutatingWebhookConfiguration")));
    assert!(!is_exempt(&kind("", "ConfigMap")));
}

#[test]
fn webhooks_are_called_by_configuration_name_and_then_in_order() {
    let configuration = |name: &str, hooks: [&str; 2]| json!({"metadata": {"name": name}, "webhooks": hooks.map(|name| json!({"name": name}))});
    let configurations = [configuration("b", ["z", "a"]), configuration("a", ["y", "b"])];
    let names: Vec<&str> = Hook::in_order(&configurations).iter().map(|hook| hook.name).collect();
    assert_eq!(names, ["y", "b", "z", "a"]);
}
