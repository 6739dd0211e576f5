#![expect(clippy::needless_pass_by_value, reason = "fixtures and expectations are literals")]

use super::*;
use crate::field::FieldError;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(rule: NameCheck, text: &str, expect: Expect) {
    expect.assert_eq(&rule(text).join("\n"));
}

fn sentences(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn check_new(object: Value, expect: Expect) {
    let mut errors = Vec::new();
    validate_object_meta(&object, true, dns1123_subdomain, &mut errors);
    expect.assert_eq(&sentences(&errors));
}

fn check_update(new: Value, old: Value, expect: Expect) {
    let mut errors = Vec::new();
    validate_object_meta_update(&new, &old, &mut errors);
    expect.assert_eq(&sentences(&errors));
}

#[test]
fn names_that_are_fine_have_nothing_wrong() {
    for (rule, text) in [
        (dns1123_label as NameCheck, "a-1"),
        (dns1123_subdomain, "a.b-c.1"),
        (dns1035_label, "a1"),
        (label_key, "example.com/My_Name.1"),
        (label_key, "a"),
        (label_value, ""),
        (label_value, "My_value"),
        (path_segment_name, "system:node"),
        (port_name, "http-1"),
        (config_key, "..a".trim_start_matches("..")),
        (wildcard_subdomain, "*.example.com"),
    ] {
        assert!(rule(text).is_empty(), "{text}: {:?}", rule(text));
    }
}

#[test]
fn wrong_names_are_told_so_in_the_known_sentences() {
    check(dns1123_label, "a.b", expect!["must not contain dots"]);
    check(
        dns1123_label,
        "A",
        expect![
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ],
    );
    check(
        dns1123_subdomain,
        "a_b",
        expect![[
            r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]],
    );
    check(
        label_key,
        "/",
        expect![[r"
            prefix part must be non-empty
            name part must be non-empty
            name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]],
    );
    check(
        label_key,
        "a/b/c",
        expect![
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ],
    );
    check(label_value, &"a".repeat(64), expect!["must be no more than 63 bytes"]);
    check(dns1123_label, &"a".repeat(64), expect!["must be no more than 63 characters"]);
    check(
        path_segment_name,
        "a/%",
        expect![[r"
        may not contain '/'
        may not contain '%'"]],
    );
    check(path_segment_name, "..", expect!["may not be '..'"]);
    check(
        port_name,
        "-1--2",
        expect![[r"
        must contain at least one letter (a-z)
        must not contain consecutive hyphens
        must not begin or end with a hyphen"]],
    );
    check(config_key, "..a", expect!["must not start with '..'"]);
}

#[test]
fn a_prefix_may_end_in_a_dash() {
    assert_eq!(masked_prefix("web-"), "wea");
    assert_eq!(masked_prefix("-"), "-");
    assert_eq!(masked_prefix("web"), "web");
    check_new(json!({"metadata": {"generateName": "é-", "name": "a", "namespace": "b"}}), expect![[""]]);
}

#[test]
fn metadata_of_a_new_object_is_checked() {
    check_new(
        json!({"metadata": {}}),
        expect![[r"
            metadata.name: Required value: name or generateName is required
            metadata.namespace: Required value"]],
    );
    check_new(
        json!({"metadata": {"name": "a", "namespace": "b", "labels": {"a": "-"}, "finalizers": ["orphan", "foregroundDeletion"],
            "managedFields": [{"manager": "a\u{1}", "operation": "x", "fieldsType": "y"}]}}),
        expect![[r#"
            metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set
            metadata.managedFields[0].operation: Invalid value: "x": must be `Apply` or `Update`
            metadata.managedFields[0].fieldsType: Invalid value: "y": must be `FieldsV1`
            metadata.managedFields[0].manager: Invalid value: "a\x01": invalid character U+0001 (at position 1)"#]],
    );
}

#[test]
fn an_object_has_at_most_one_controller() {
    let owner =
        |name: &str| json!({"apiVersion": "v1", "kind": "A", "name": name, "uid": "1", "controller": true});
    check_new(
        json!({"metadata": {"name": "a", "namespace": "b", "ownerReferences": [owner("x"), owner("y")]}}),
        expect![[
            r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"x","uid":"1","controller":true},{"apiVersion":"v1","kind":"A","name":"y","uid":"1","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for A/x and A/y"#
        ]],
    );
    check_new(
        json!({"metadata": {"name": "a", "namespace": "b", "ownerReferences": [{"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""},
            {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"}]}}),
        expect![[r#"
            metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty
            metadata.ownerReferences.kind: Invalid value: "": must not be empty
            metadata.ownerReferences.name: Invalid value: "": must not be empty
            metadata.ownerReferences.uid: Invalid value: "": must not be empty
            metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: /v1, Kind=Event is disallowed from being an owner"#]],
    );
}

#[test]
fn owners_named_twice_are_dropped_with_a_warning() {
    let owner = json!({"apiVersion": "v1", "kind": "A", "name": "x", "uid": "1"});
    let mut object = json!({"metadata": {"ownerReferences": [owner, owner]}});
    let warning = object_meta::drop_repeated_owners(&mut object).unwrap();
    assert!(warning.ends_with("duplicate UID(s) observed: 1"), "{warning}");
    assert_eq!(object["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(object_meta::drop_repeated_owners(&mut object), None);
}

#[test]
fn annotations_have_a_size_limit() {
    check_new(
        json!({"metadata": {"name": "a", "namespace": "b", "annotations": {"A/B": "x".repeat(262_144)}}}),
        expect!["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn an_update_keeps_identity_and_brings_no_finalizers_to_the_dying() {
    check_update(
        json!({"metadata": {"name": "b", "uid": "2", "finalizers": ["a/b", "a/c"]}}),
        json!({"metadata": {"name": "a", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"], "generation": 2}}),
        expect![[r#"
            metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a/c"}
            metadata.resourceVersion: Invalid value: "": must be specified for an update
            metadata.generation: Invalid value: 0: must not be decremented
            metadata.name: Invalid value: "b": field is immutable
            metadata.uid: Invalid value: "2": field is immutable
            metadata.deletionTimestamp: Invalid value: null: field is immutable"#]],
    );
}

#[test]
fn selectors_are_checked() {
    let selector = json!({"matchLabels": {"a": "-"}, "matchExpressions": [
        {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]}, {"key": "", "operator": "x"}]});
    let mut errors = Vec::new();
    validate_label_selector(&selector, &crate::field::Path::of("selector"), &mut errors);
    expect![[r#"
        selector.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
        selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
        selector.matchExpressions[2].operator: Invalid value: "x": not a valid selector operator
        selector.matchExpressions[2].key: Invalid value: "": name part must be non-empty
        selector.matchExpressions[2].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#]]
    .assert_eq(&sentences(&errors));
}

#[test]
fn generated_names_fit_a_label() {
    assert_eq!(generate::generate_name("web-", || 0), "web-bbbbb");
    assert_eq!(generate::generate_name("web-", || 26 + 27), "web-9cbbb");
    assert_eq!(generate::generate_name(&"x".repeat(100), || 1).len(), LABEL_MAX);
    assert_eq!(generate::generate_name(&"é".repeat(100), || 1).len(), 63);
}

#[test]
fn addresses_are_checked() {
    let path = crate::field::Path::of("ip");
    let mut errors = Vec::new();
    for text in ["x", "010.0.0.1", "::ffff:1.2.3.4", "FE80::1", "10.0.0.1"] {
        address::validate_ip(text, &path, &mut errors);
    }
    for text in ["x", "10.0.0.1/24", "10.0.0.0/024", "::ffff:1.2.3.4/128", "10.0.0.0/24", "0.0.0.0/0"] {
        address::validate_legacy_cidr(text, &path, true, &mut errors);
    }
    expect![[r#"
        ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        ip: Invalid value: "010.0.0.1": must not have leading 0s
        ip: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address
        ip: Invalid value: "FE80::1": must be in canonical form ("fe80::1")
        ip: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
        ip: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length
        ip: Invalid value: "10.0.0.0/024": must not have leading 0s in IP or prefix length
        ip: Invalid value: "::ffff:1.2.3.4/128": must not have an IPv4-mapped IPv6 address"#]]
    .assert_eq(&sentences(&errors));
}
