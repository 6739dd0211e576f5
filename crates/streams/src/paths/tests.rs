//! Classes and schemas that fit each other, and some that do not.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

/// A kind with these fields in its spec.
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn schema(properties: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn reference() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}})
}

fn text(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        writeln!(text, "{problem}").unwrap();
        text
    })
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_fit(paths: PathsConfig, secret_refs: &[&str], schema: Value, expected: Expect) {
    let secret_refs: Vec<String> = secret_refs.iter().map(|path| (*path).to_owned()).collect();
    expected.assert_eq(&text(&check(&paths, &secret_refs, &schema)));
}

#[test]
fn a_kind_needs_no_more_than_a_reference_to_a_template() {
    check_fit(PathsConfig::default(), &[], schema(json!({"jobTemplateRef": reference()})), expect![[r#""#]]);
    check_fit(
        PathsConfig::default(),
        &[],
        schema(json!({"jobTemplateRef": {"type": "string"}})),
        expect![[r#""#]],
    );
    let open = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    check_fit(PathsConfig::default(), &["login"], open, expect![[r#""#]]);
    check_fit(
        PathsConfig::default(),
        &[],
        schema(json!({})),
        expect![[r#"
        spec.paths.jobTemplateRef: the kind has no spec.jobTemplateRef, and no other field is given that refers to a template
    "#]],
    );
}

#[test]
fn a_kind_of_schedules_alone_is_fine() {
    let paths = PathsConfig {
        scheduled_job_template_ref: "spec.batch.jobTemplateRef".into(),
        schedule: "spec.batch.schedule".into(),
        ..PathsConfig::default()
    };
    let batch = |schedule: &str| {
        let schema =
            schema(json!({"batch": {"type": "object", "properties": {"jobTemplateRef": reference()}}}));
        let mut schema = schema;
        let batch = &mut schema["properties"]["spec"]["properties"]["batch"]["properties"];
        batch[schedule] = json!({"type": "string"});
        schema
    };
    check_fit(paths.clone(), &[], batch("schedule"), expect![[r#""#]]);
    check_fit(
        paths,
        &[],
        batch("cron"),
        expect![[r#"
        spec.paths.schedule: leads to spec.batch.schedule, but the kind has no spec.batch.schedule
        spec.paths.jobTemplateRef: the kind has no spec.jobTemplateRef, and no other field is given that refers to a template
    "#]],
    );
}

#[test]
fn a_path_that_was_given_has_to_lead_somewhere() {
    let paths = PathsConfig {
        suspended: "spec.execution.suspended".into(),
        backfill_job_template_ref: "spec.backfill..ref".into(),
        ..PathsConfig::default()
    };
    let fields = json!({
        "jobTemplateRef": reference(), "execution": {"type": "object", "properties": {}},
        "sink": {"type": "object", "additionalProperties": {"type": "string"}},
    });
    check_fit(
        paths,
        &["login", "sink.secretRef", "execution.key"],
        schema(fields),
        expect![[r#"
        spec.paths.backfillJobTemplateRef: leads to spec.backfill..ref, but the kind has no spec.backfill
        spec.paths.suspended: leads to spec.execution.suspended, but the kind has no spec.execution.suspended
        spec.secretRefs[0]: leads to spec.login, but the kind has no spec.login
        spec.secretRefs[2]: leads to spec.execution.key, but the kind has no spec.execution.key
    "#]],
    );
}

#[test]
fn what_is_there_has_to_be_of_the_right_type() {
    let fields = json!({
        "jobTemplateRef": {"type": "array", "items": reference()},
        "backfillJobTemplateRef": {"type": "object", "properties": {"key": {"type": "string"}}},
        "suspended": {"type": "string"},
        "schedule": {"x-kubernetes-int-or-string": true},
        "login": {"type": "array", "items": reference()},
        "logins": {"type": "array", "items": {"type": "integer"}},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
    });
    check_fit(
        PathsConfig::default(),
        &["login", "logins", "free"],
        schema(fields),
        expect![[r#"
        spec.paths.jobTemplateRef: leads to spec.jobTemplateRef, which is a list, must be an object with a name, or a string; another path can be given
        spec.paths.backfillJobTemplateRef: leads to spec.backfillJobTemplateRef, which is an object, must be an object with a name, or a string; another path can be given
        spec.paths.suspended: leads to spec.suspended, which is a string, must be a boolean; another path can be given
        spec.paths.schedule: leads to spec.schedule, which is an integer or a string, must be a string; another path can be given
        spec.secretRefs[1]: leads to spec.logins, which is a list, must be an object with a name, a string, or a list of these
    "#]],
    );
}

#[test]
fn a_path_can_lead_into_metadata_or_be_declared_absent() {
    let paths = PathsConfig {
        suspended: String::new(),
        schedule: "metadata.labels.schedule".into(),
        ..PathsConfig::default()
    };
    let fields = json!({"jobTemplateRef": reference(), "suspended": {"type": "string"}});
    check_fit(paths, &[], schema(fields), expect![[r#""#]]);
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "it is written in place")]
fn check_status(status: Value, expected: Expect) {
    let schema = json!({"type": "object", "properties": {"status": status}});
    expected.assert_eq(&text(&status_problems(&schema)));
}

#[test]
fn an_open_status_keeps_everything() {
    check_status(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), expect![[r#""#]]);
    check_status(json!({"x-kubernetes-preserve-unknown-fields": true}), expect![[r#""#]]);
}

#[test]
fn what_a_status_would_lose_is_told() {
    let status = json!({
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["Pending", "Running", "Suspended", "Failed"]},
            "configurationHash": {"type": "string"},
            "observedGeneration": {"type": "string"},
            "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "history": {"type": "array", "items": {"type": "object", "properties": {
                "number": {"type": "integer"}, "kind": {"type": "string"}, "job": {"type": "string"},
            }}},
        },
    });
    check_status(
        status,
        expect![[r#"
            status.backfillAsked: is not in the kind's schema, so the server drops it
            status.backfills: is not in the kind's schema, so the server drops it
            status.begun: is not in the kind's schema, so the server drops it
            status.crashed: is not in the kind's schema, so the server drops it
            status.failures: is not in the kind's schema, so the server drops it
            status.history[].endedAt: is not in the kind's schema, so the server drops it
            status.history[].exitCode: is not in the kind's schema, so the server drops it
            status.history[].outcome: is not in the kind's schema, so the server drops it
            status.history[].reason: is not in the kind's schema, so the server drops it
            status.history[].startedAt: is not in the kind's schema, so the server drops it
            status.initialised: is not in the kind's schema, so the server drops it
            status.nextAttempt: is not in the kind's schema, so the server drops it
            status.observedGeneration: has the type string in the kind's schema, must have integer
            status.phase: may not be Backfilling, Scheduled, CrashLoopDetected by the kind's schema
            status.reloaded: is not in the kind's schema, so the server drops it
            status.restarts: is not in the kind's schema, so the server drops it
            status.rollout: is not in the kind's schema, so the server drops it
            status.run: is not in the kind's schema, so the server drops it
            status.runsStarted: is not in the kind's schema, so the server drops it
        "#]],
    );
    expect![[r#"
        status: is not in the kind's schema, so the server drops it
    "#]]
    .assert_eq(&text(&status_problems(&json!({"type": "object"}))));
}

#[test]
fn a_status_is_cut_down_to_what_its_schema_names() {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "phase": {"type": "string", "enum": ["Running", "Failed"]},
        "run": {"type": "object", "properties": {"number": {"type": "string"}, "job": text}},
        "history": {"type": "array", "items": {"type": "object", "properties": {"reason": text}}},
        "anything": {"x-kubernetes-preserve-unknown-fields": true},
    }});
    let status = json!({
        "phase": "Running", "run": {"number": 1, "job": "a", "attempt": 0}, "restarts": 3,
        "history": [{"reason": "Deleted", "number": 1}], "anything": {"else": [1]},
    });
    let expected = json!({
        "phase": "Running", "run": {"job": "a"}, "history": [{"reason": "Deleted"}], "anything": {"else": [1]},
    });
    assert_eq!(kept(&status, &schema), Some(expected));
    assert_eq!(kept(&json!({"phase": "Pending"}), &schema), Some(json!({})));
    assert_eq!(kept(&status, &Value::Null), None);
}

#[test]
fn what_breaks_a_rule_is_left_out_with_what_needs_it() {
    let check = |value: Value, schema: Value, expected: Option<Value>| {
        assert_eq!(kept(&value, &schema), expected, "{value} by {schema}");
    };
    let text = |rules: Value| {
        let mut schema = json!({"type": "string"});
        schema.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
        schema
    };
    check(json!("abc"), text(json!({"maxLength": 2})), None);
    check(json!("äöü"), text(json!({"maxLength": 3, "minLength": 3})), Some(json!("äöü")));
    check(json!("Running"), text(json!({"pattern": "^R"})), Some(json!("Running")));
    check(json!("Running"), text(json!({"pattern": "^r"})), None);
    check(json!("now"), text(json!({"format": "date-time"})), None);
    check(json!("now"), text(json!({"format": "uuid"})), None);
    check(json!(3), json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}), None);
    check(json!(3), json!({"type": "integer", "maximum": 3}), Some(json!(3)));
    check(json!(3_000_000_000_u64), json!({"type": "integer", "format": "int32"}), None);
    check(
        json!(3),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}]}),
        Some(json!(3)),
    );
    check(json!(3), json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}), None);
    check(json!(null), json!({"type": "string", "nullable": true}), Some(json!(null)));
    check(json!(null), json!({"type": "string"}), None);
    check(
        json!([1, 2, 3]),
        json!({"type": "array", "maxItems": 2, "items": {"type": "integer"}}),
        Some(json!([1, 2])),
    );
    check(json!([1, "a"]), json!({"type": "array", "minItems": 2, "items": {"type": "integer"}}), None);
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
    });
    let items = json!([{"type": "a", "status": "1"}, {"type": "a"}, {"status": "2"}]);
    check(items, keyed, Some(json!([{"type": "a", "status": "1"}])));
    let needs = json!({
        "type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "default": "x"}},
    });
    check(json!({"a": "1"}), needs.clone(), Some(json!({"a": "1"})));
    check(json!({"a": "12", "b": "1"}), needs.clone(), None);
    let holds = json!({"type": "object", "properties": {"run": needs, "phase": {"type": "string"}}});
    check(json!({"run": {"a": "12"}, "phase": "Running"}), holds, Some(json!({"phase": "Running"})));
    let few = json!({"type": "object", "maxProperties": 1, "required": ["b"], "additionalProperties": {"type": "integer"}});
    check(json!({"a": 1, "b": 2}), few, Some(json!({"b": 2})));
}

#[test]
fn a_kind_whose_status_holds_nothing_is_known() {
    let status = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let text = json!({"type": "string"});
    assert!(!keeps_nothing(&status(json!({"phase": text}), json!([]))));
    assert!(keeps_nothing(&status(json!({"phase": text}), json!(["url"]))));
    assert!(keeps_nothing(&status(json!({"url": text}), json!([]))));
    assert!(keeps_nothing(&Value::Null));
}
