use super::age::human_duration;
use super::*;
use expect_test::expect;
use jiff::SignedDuration;
use proptest::prelude::*;

/// Objects cut down to what matters, with the cells kube-apiserver gave for them.
const ROWS: &str = include_str!("testdata/rows.jsonl");

fn rows() -> impl Iterator<Item = Value> {
    ROWS.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn moment(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn built_in_rows_are_those_of_kube_apiserver() {
    for case in rows() {
        let printer = Printer::builtin(case["group"].as_str().unwrap(), case["kind"].as_str().unwrap());
        let row = printer.row(&case["object"], moment(&case["now"]), IncludeObject::None, "v1");
        assert_eq!(row["cells"], case["cells"], "{case}");
        assert_eq!(row.pointer("/conditions/0/reason"), case.get("condition"), "{case}");
        assert_eq!(row["cells"].as_array().unwrap().len(), printer.columns().as_array().unwrap().len());
    }
}

#[test]
fn kinds_without_columns_show_name_and_creation() {
    let printer = Printer::builtin("apiextensions.k8s.io", "CustomResourceDefinition");
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let row = printer.row(&object, Timestamp::UNIX_EPOCH, IncludeObject::None, "v1");
    assert_eq!(row, json!({"cells": ["a", "2026-01-01T00:00:00Z"], "object": null}));
}

#[test]
fn custom_columns_show_what_their_paths_lead_to() {
    let columns = [
        ("string", ".spec.s"),
        ("integer", ".spec.i"),
        ("number", ".spec.n"),
        ("boolean", ".spec.b"),
        ("date", ".spec.d"),
        ("string", ".spec.o"),
        ("string", ".spec.a[0]"),
        ("string", ".spec.a[9]"),
        ("string", ".status.conditions[?(@.type==\"Ready\")].status"),
        ("string", r".metadata.labels.a\.b/c"),
        ("string", ".spec.null"),
        ("integer", ".spec.s"),
        ("date", ".spec.i"),
        ("integer", ".spec.n"),
        ("date", ".metadata.creationTimestamp"),
    ];
    let columns: Vec<Value> =
        columns.iter().map(|(kind, path)| json!({"name": path, "type": kind, "jsonPath": path})).collect();
    let printer = Printer::custom(&columns);
    let metadata = json!({
        "name": "t", "labels": {"a.b/c": "lab"}, "creationTimestamp": "2026-11-15T11:31:59Z",
    });
    let cells = |spec: Value| {
        let status = json!({"conditions": [{"type": "Other"}, {"type": "Ready", "status": "True"}]});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        let now = "2026-11-15T11:31:59Z".parse().unwrap();
        printer.row(&object, now, IncludeObject::None, "v1")["cells"].to_string()
    };
    expect![[r#"["t","x",5,1.5,true,"91m","{\"a\":\"\\u003cb\\u003e\",\"z\":1}","p",null,"True","lab","<no value>",null,null,1,"0s"]"#]]
        .assert_eq(&cells(json!({
            "s": "x", "i": 5, "n": 1.5, "b": true, "d": "2026-11-15T10:00:00Z",
            "o": {"z": 1, "a": "<b>"}, "a": ["p", "q"], "null": null,
        })));
    expect![[r#"["t","7",5,3,null,"<invalid>",null,null,null,"True","lab",null,7,null,3,"0s"]"#]]
        .assert_eq(&cells(json!({"s": 7, "i": 5.7, "n": 3, "d": "nope", "a": [], "b": "x"})));
    expect![[r#"["t",null,null,1e+21,null,"<unknown>",null,null,null,"True","lab",null,null,null,-9223372036854775808,"0s"]"#]]
        .assert_eq(&cells(json!({"d": "", "n": 1e21})));
}

#[test]
fn custom_kinds_without_columns_show_their_age() {
    let columns = Printer::custom(&[]).columns();
    assert_eq!((&columns[0]["name"], &columns[1]["name"]), (&json!("Name"), &json!("Age")));
    assert_eq!(columns[1]["type"], "date");
}

#[test]
fn tables_carry_what_was_asked_for() {
    let printer = Printer::builtin("", "ServiceAccount");
    let object = json!({"kind": "ServiceAccount", "metadata": {"name": "a"}});
    let list = json!({"resourceVersion": "7", "continue": "c", "remainingItemCount": 3, "selfLink": "x"});
    let table = |include, headers| {
        let request = TableRequest { include, headers, version: "v1" };
        printer.table(&list, [&object], Timestamp::UNIX_EPOCH, request)
    };
    let first = table(IncludeObject::Metadata, true);
    assert_eq!(first["metadata"], json!({"resourceVersion": "7", "continue": "c", "remainingItemCount": 3}));
    assert_eq!(first["columnDefinitions"].as_array().unwrap().len(), 2);
    assert_eq!(first["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let later = table(IncludeObject::Object, false);
    assert_eq!((&later["columnDefinitions"], &later["rows"][0]["object"]), (&Value::Null, &object));
    assert_eq!(table(IncludeObject::None, false)["rows"][0]["object"], Value::Null);
}

#[test]
fn the_end_of_initial_events_is_seen_in_every_form() {
    let bookmark = json!({"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}});
    let row = Printer::builtin("", "Pod").row(&bookmark, Timestamp::UNIX_EPOCH, IncludeObject::None, "v1");
    assert_eq!(row["object"]["metadata"], bookmark["metadata"]);
}

#[test]
fn a_wrong_include_object_is_refused() {
    let error = IncludeObject::parse(Some("Bogus")).unwrap_err();
    assert_eq!(
        error.message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Bogus\": must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn durations_have_two_figures() {
    const DAY: i64 = 24 * 3600;
    for (seconds, expected) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3600, "2d1h"),
        (8 * DAY, "8d"),
        (365 * 2 * DAY - 1, "729d"),
        (365 * 2 * DAY, "2y"),
        (365 * 2 * DAY + DAY, "2y1d"),
        (365 * 9 * DAY, "9y"),
    ] {
        assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected, "{seconds}");
    }
}

fn mangled(value: Value, seed: u64) -> Value {
    // Replaces some of a tree by values of the wrong type.
    let wrong = [Value::Null, json!(7), json!("x"), json!([]), json!({}), json!(true)];
    let pick = |n: u64| wrong[usize::try_from(n % 6).unwrap()].clone();
    let next = |index: usize| seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(index as u64 + 1);
    match value {
        _ if seed.is_multiple_of(11) => pick(seed / 11),
        Value::Object(map) => {
            map.into_iter().enumerate().map(|(i, (k, v))| (k, mangled(v, next(i) >> 7))).collect()
        }
        Value::Array(items) => items.into_iter().enumerate().map(|(i, v)| mangled(v, next(i) >> 7)).collect(),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_object_makes_a_printer_panic(seed in any::<u64>()) {
        for case in rows() {
            let printer = Printer::builtin(case["group"].as_str().unwrap(), case["kind"].as_str().unwrap());
            let object = mangled(case["object"].clone(), seed);
            let row = printer.row(&object, moment(&case["now"]), IncludeObject::Metadata, "v1");
            prop_assert_eq!(row["cells"].as_array().unwrap().len(), printer.columns().as_array().unwrap().len());
        }
    }
}
