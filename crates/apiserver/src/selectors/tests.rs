use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write as _;

fn labelled(labels: &Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

#[test]
fn every_operator_selects() {
    let object = labelled(&json!({"a": "b", "n": "5", "in": "in"}));
    for (selector, expected) in [
        ("", true),
        ("a", true),
        ("a=b", true),
        ("a==b", true),
        ("a!=b", false),
        ("x!=b", true),
        ("!a", false),
        ("! x", true),
        ("a in (c, b)", true),
        ("a in (c)", false),
        ("a notin (b)", false),
        ("x notin (b)", true),
        ("x in (b)", false),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("a>1", false),
        ("a=b,n>1,!x", true),
        ("a=b,x", false),
        ("in in (in)", true),
        ("  a  =  b  ", true),
        ("a in ()", false),
    ] {
        let parsed = LabelSelector::parse(selector).unwrap();
        assert_eq!(parsed.selects(&object), expected, "{selector}");
    }
    assert!(LabelSelector::parse("!a,b!=c").unwrap().selects(&json!({})));
    assert!(LabelSelector::parse("a in (,x)").unwrap().selects(&labelled(&json!({"a": ""}))));
}

fn check_refusals(selectors: &[&str], expected: &Expect) {
    let mut out = String::new();
    for selector in selectors {
        let error = LabelSelector::parse(selector).unwrap_err();
        assert_eq!((error.code, &*error.reason), (400, "BadRequest"));
        let _ = writeln!(out, "{selector:?}: {}", error.message);
    }
    expected.assert_eq(&out);
}

#[test]
fn bad_grammar_is_refused_in_kubernetes_words() {
    check_refusals(
        &[
            "a in (b,",
            "a in b",
            "a in (b c)",
            "a,",
            "a,,b",
            ",a",
            "a b",
            "a in",
            "a===b",
            "a=!b",
            "a!b",
            "!!a",
            "!",
            "=",
            "()",
            "a in (b)c",
            "a in (=)",
            "a=b=c",
            "!a=b",
            "a\0b",
            "a=>b",
            "a<=b",
        ],
        &expect![[r#"
            "a in (b,": unable to parse requirement: found '', expected: ',', or identifier
            "a in b": unable to parse requirement: found 'b' expected: '('
            "a in (b c)": unable to parse requirement: found 'c', expected: ',' or ')'
            "a,": found '', expected: identifier after ','
            "a,,b": found ',', expected: identifier after ','
            ",a": found ',', expected: !, identifier, or 'end of string'
            "a b": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
            "a in": unable to parse requirement: found '' expected: '('
            "a===b": unable to parse requirement: found '=', expected: identifier
            "a=!b": unable to parse requirement: found '!', expected: identifier
            "a!b": unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt
            "!!a": unable to parse requirement: found '!', expected: identifier
            "!": unable to parse requirement: found '', expected: identifier
            "=": found '=', expected: !, identifier, or 'end of string'
            "()": found '(', expected: !, identifier, or 'end of string'
            "a in (b)c": found 'c', expected: ',' or 'end of string'
            "a in (=)": unable to parse requirement: found '=', expected: ',', ')' or identifier
            "a=b=c": found '=', expected: ',' or 'end of string'
            "!a=b": found '=', expected: ',' or 'end of string'
            "a\0b": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
            "a=>b": unable to parse requirement: found '>', expected: identifier
            "a<=b": unable to parse requirement: found '=', expected: identifier
        "#]],
    );
}

#[test]
fn bad_keys_and_values_are_refused_in_kubernetes_words() {
    let long = format!("a={}", "b".repeat(64));
    check_refusals(
        &["a>x", "-a", "a/b/c", "/a", "a/", "A_b/c=d", "a=-b", "a in (x,-y,-z)", &long, "a=é"],
        &expect![[r#"
            "a>x": unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer
            "-a": unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            "a/b/c": unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            "/a": unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty
            "a/": unable to parse requirement: <nil>: Invalid value: "a/": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            "A_b/c=d": unable to parse requirement: <nil>: Invalid value: "A_b/c": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            "a=-b": unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            "a in (x,-y,-z)": unable to parse requirement: [values[0][a]: Invalid value: "-y": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), values[1][a]: Invalid value: "-z": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]
            "a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": unable to parse requirement: values[0][a]: Invalid value: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": must be no more than 63 bytes
            "a=é": unable to parse requirement: values[0][a]: Invalid value: "é": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        "#]],
    );
}

#[test]
fn selector_objects_select_and_print() {
    let object = json!({
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"},
        ],
    });
    let selector = LabelSelector::from_object(&object).unwrap().unwrap();
    assert_eq!(selector.to_string(), "a=2,!a,b=1,c in (x,y)");
    assert!(LabelSelector::from_object(&json!({})).unwrap().unwrap().is_everything());
    assert_eq!(LabelSelector::from_object(&Value::Null).unwrap(), None);
    let bad = json!({"matchExpressions": [{"key": "c", "operator": "in"}]});
    assert_eq!(
        LabelSelector::from_object(&bad).unwrap_err(),
        "\"in\" is not a valid label selector operator"
    );
}

fn field_refusal(selector: &str, support: &FieldSupport) -> String {
    let error = FieldSelector::parse(selector).and_then(|parsed| parsed.for_kind(support)).unwrap_err();
    assert_eq!((error.code, &*error.reason), (400, "BadRequest"));
    error.message
}

#[test]
fn bad_field_selectors_are_refused_in_kubernetes_words() {
    let config_map = FieldSupport::builtin("", "ConfigMap");
    for (selector, expected) in [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name=a,x", "invalid selector: 'metadata.name=a,x'; can't understand 'x'"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b"),
        (r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \"),
        (
            "spec.foo=1",
            "\"spec.foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
    ] {
        assert_eq!(field_refusal(selector, &config_map), expected, "{selector}");
    }
    let unsupported = "field label not supported: spec.foo";
    assert_eq!(field_refusal("spec.foo=1", &FieldSupport::builtin("", "Pod")), unsupported);
    assert_eq!(field_refusal("spec.foo=1", &FieldSupport::custom(true, [".spec.bar"])), unsupported);
    let job = FieldSupport::builtin("batch", "Job");
    assert_eq!(field_refusal("spec.foo=1", &job), "field label \"spec.foo\" not supported for Job");
    let node = FieldSupport::builtin("", "Node");
    assert_eq!(field_refusal("metadata.namespace=x", &node), "field label not supported: metadata.namespace");
}

#[test]
fn fields_select() {
    let pod = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    });
    let custom = json!({"metadata": {"name": "web"}, "spec": {"size": 3, "on": true, "color": "a,b"}});
    let pods = FieldSupport::builtin("", "Pod");
    let customs = FieldSupport::custom(false, [".spec.size", ".spec.on", ".spec.color", ".spec.none"]);
    for (support, object, selector, expected) in [
        (&pods, &pod, "", true),
        (&pods, &pod, ",", true),
        (&pods, &pod, "=", true),
        (&pods, &pod, "metadata.name=web,metadata.namespace==default", true),
        (&pods, &pod, "metadata.name!=web", false),
        (&pods, &pod, "spec.host=n1,status.phase=Running", true),
        (&pods, &pod, "spec.hostNetwork=false,status.podIP=", true),
        (&customs, &custom, "spec.size=3,spec.on=true", true),
        (&customs, &custom, r"spec.color=a\,b,spec.none=", true),
        (&customs, &custom, "spec.none!=", false),
    ] {
        let filter = FieldSelector::parse(selector).unwrap().for_kind(support).unwrap();
        assert_eq!(filter.selects(object), expected, "{selector}");
    }
}

#[test]
fn one_event_is_selected_through_both_groups() {
    let old = json!({"involvedObject": {"name": "web"}, "source": {"component": "kubelet"}});
    let new = json!({"regarding": {"name": "web"}, "reportingController": "kubelet"});
    for (group, selector) in
        [("", "involvedObject.name=web,source=kubelet"), ("events.k8s.io", "regarding.name=web")]
    {
        let support = FieldSupport::builtin(group, "Event");
        let filter = FieldSelector::parse(selector).unwrap().for_kind(&support).unwrap();
        assert!(filter.selects(&old) && filter.selects(&new));
    }
}

#[test]
fn an_exact_name_is_known() {
    let filter = FieldSelector::parse("metadata.name=a,metadata.namespace!=b").unwrap();
    let filter = filter.for_kind(&FieldSupport::builtin("", "ConfigMap")).unwrap();
    assert_eq!(filter.name(), Some("a"));
}

proptest! {
    #[test]
    fn label_selectors_survive_printing(text in r"[ab!=<>(),\x00 1/in-]{0,24}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }

    #[test]
    fn field_selectors_survive_printing(text in r"[ab!=,\\.é]{0,24}") {
        // Terms are sorted as they were written, `==` before `=a`, and printed with one sign.
        let terms = |text: &str| {
            let selector = FieldSelector::parse(text).ok()?.to_string();
            let mut terms: Vec<String> = selector.split(',').map(str::to_owned).collect();
            terms.sort_unstable();
            Some((selector, terms))
        };
        if let Some((printed, sorted)) = terms(&text) {
            prop_assert_eq!(terms(&printed).map(|(_, sorted)| sorted), Some(sorted));
        }
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}") {
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }
}
