//! The whole of schema handling against answers recorded from kube-apiserver v1.36.3, and properties
//! that hold for any schema and object.

use super::*;
use crate::decode;
use crate::field::{FieldError, Path};
use serde_json::json;
use std::sync::atomic::AtomicBool;

/// Objects that were sent to a real server, with what it said: the stored object, or the causes.
const VALUES: &str = include_str!("golden/values.json");

/// Somebody waits for the verdict.
static WANTED: AtomicBool = AtomicBool::new(false);

#[test]
fn objects_are_judged_as_kubernetes_judges_them() {
    check_golden(VALUES);
}

/// The same for rules.
const RULES: &str = include_str!("golden/rules.json");

#[test]
fn rules_are_evaluated_as_kubernetes_evaluates_them() {
    check_golden(RULES);
}

/// Schemas that a real server was asked to make definitions of, with what it said.
const SCHEMAS: &str = include_str!("golden/schemas.json");

#[test]
fn schemas_are_judged_as_kubernetes_judges_them() {
    let cases: Vec<Value> = serde_json::from_str(SCHEMAS).unwrap();
    let spec = Path::of("spec");
    let validation = spec.field("validation");
    let at = validation.field("openAPIV3Schema");
    let mut differences = Vec::new();
    for case in &cases {
        let errors = causes(&check_crd_schema(&case["schema"], &at, case["status"] == true, false));
        let expected = case["crd"].get("errors").cloned().unwrap_or_else(|| json!([]));
        if errors != expected {
            let name = &case["name"];
            differences.push(format!("{name}\n  expected {expected}\n  actual   {errors}\n"));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.concat());
}

/// A schema and what a real server published of it.
const OPENAPI: &str = include_str!("golden/openapi.json");

#[test]
fn kinds_are_published_as_kubernetes_publishes_them() {
    let golden: Value = serde_json::from_str(OPENAPI).unwrap();
    let kind = PublishedKind {
        group: "schema.lab",
        version: "v1",
        kind: "Meta",
        list_kind: "MetaList",
        selectable_fields: &[],
    };
    let components = publish(Some(&golden["schema"]), &kind);
    assert_eq!(Value::Object(components), golden["components"]);
}

fn check_golden(text: &str) {
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut differences = Vec::new();
    for case in &cases {
        let schema = CompiledSchema::read(&case["schema"]);
        for kind in ["create", "update"] {
            for entry in case[kind].as_array().unwrap_or(&Vec::new()) {
                let expected = expected(entry);
                let actual = answer(entry, &schema, case["name"] == "status");
                if expected != actual {
                    let name = &case["name"];
                    let (old, new) = (&entry["old"], &entry["new"]);
                    differences
                        .push(format!("{name} {old} -> {new}\n  expected {expected}\n  actual   {actual}\n"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.concat());
}

fn expected(entry: &Value) -> Value {
    let mut wanted = entry.clone();
    let map = wanted.as_object_mut().unwrap();
    map.remove("old");
    map.remove("new");
    wanted
}

fn object(body: &Value) -> Value {
    let mut object = json!({"apiVersion": "schema.lab/v1", "kind": "Case", "metadata": {"name": "x"}});
    for (name, value) in body.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

/// What the pipeline would answer, in the form the recording has.
fn answer(entry: &Value, schema: &CompiledSchema, status: bool) -> Value {
    let mut new = object(&entry["new"]);
    normalise_numbers(&mut new);
    let unknown = fit(&mut new, schema, Malformed::Refuse).unwrap();
    let mut warnings: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {}", crate::field::go_quote(path))).collect();
    apply_defaults(&mut new, schema).unwrap();
    let verdict = if entry.get("old").is_some() {
        let mut old = object(&entry["old"]);
        normalise_numbers(&mut old);
        fit(&mut old, schema, Malformed::Drop).unwrap();
        apply_defaults(&mut old, schema).unwrap();
        if status {
            let mut whole = old.clone();
            match new.get("status") {
                Some(status) => whole["status"] = status.clone(),
                None => drop(whole.as_object_mut().unwrap().remove("status")),
            }
            new = whole;
            validate_status(&new, &old, schema, Vec::new(), &WANTED)
        } else {
            validate(&new, Some(&old), schema, Vec::new(), &WANTED)
        }
    } else {
        validate(&new, None, schema, Vec::new(), &WANTED)
    };
    warnings.extend(verdict.warnings);
    let mut out = json!({});
    if verdict.errors.is_empty() {
        let mut body = new;
        for name in ["apiVersion", "kind", "metadata"] {
            body.as_object_mut().unwrap().remove(name);
        }
        out["object"] = body;
    } else {
        out["code"] = 422.into();
        out["errors"] = causes(&verdict.errors);
    }
    if !warnings.is_empty() {
        warnings.sort();
        out["warnings"] = warnings.into();
    }
    out
}

/// Causes sorted, since Kubernetes gives them in the random order of Go's maps.
fn causes(errors: &[FieldError]) -> Value {
    let mut causes: Vec<Vec<String>> =
        errors.iter().map(|e| vec![e.problem.reason().to_owned(), e.field.clone(), e.body()]).collect();
    causes.sort();
    json!(causes)
}

/// As decoding does it: whole floats are integers.
fn normalise_numbers(value: &mut Value) {
    *value = decode::parse(value.to_string().as_bytes(), decode::Encoding::Json).unwrap().value;
}

mod properties {
    //! What holds for any schema and any object.

    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 6] = ["spec", "a", "b", "metadata", "kind", "x.y"];

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            crate::extremes::numbers(),
            (-9.0..9.0f64).prop_map(Value::from),
            prop::sample::select(vec!["", "a", "10.0.0.1", "2020-01-01T00:00:00Z", "1h", "(", "é"])
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let names = prop::sample::select(NAMES.to_vec());
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((names, inner), 0..4).prop_map(|entries| {
                    Value::Object(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
                }),
            ]
        })
    }

    /// Keywords that make sense and some that do not.
    fn any_schema() -> impl Strategy<Value = Value> {
        let scalar = prop::sample::select(vec![
            json!({"type": "string"}),
            json!({"type": "string", "default": "a", "maxLength": 1, "pattern": "^a"}),
            json!({"type": "integer", "minimum": 1, "nullable": true}),
            json!({"type": "number", "multipleOf": 0.5, "default": 1}),
            json!({"type": "boolean", "default": true}),
            json!({"type": "string", "format": "date-time"}),
            json!({"x-kubernetes-int-or-string": true}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "string", "enum": ["a", null]}),
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf || size(self) > 1"}]}),
            json!({"type": "nonsense", "pattern": "(", "x-kubernetes-validations": [{"rule": "self.("}, 5]}),
            json!(5),
        ]);
        scalar.prop_recursive(4, 40, 4, |inner| {
            let names = prop::sample::select(NAMES.to_vec());
            let fields = prop::collection::vec((names, inner.clone()), 0..4).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            });
            let list_type = prop::sample::select(vec!["atomic", "set", "map", "other"]);
            prop_oneof![
                (fields, any::<bool>(), any::<bool>()).prop_map(|(fields, preserve, embedded)| json!({
                    "type": "object", "properties": fields, "required": ["a"],
                    "x-kubernetes-preserve-unknown-fields": preserve,
                    "x-kubernetes-embedded-resource": embedded,
                    "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a == self.a"}],
                })),
                inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values})),
                Just(json!({"type": "object", "additionalProperties": true})),
                (inner.clone(), list_type).prop_map(|(items, list)| json!({
                    "type": "array", "items": items, "x-kubernetes-list-type": list,
                    "x-kubernetes-list-map-keys": ["a"],
                })),
                prop::collection::vec(inner, 1..3)
                    .prop_map(|branches| json!({"anyOf": branches, "oneOf": branches, "not": branches[0]})),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pruning_twice_is_pruning_once(schema in any_schema(), value in any_value()) {
            let schema = read(&schema);
            let mut once = value;
            prune(&mut once, &schema);
            let mut twice = once.clone();
            prop_assert_eq!(prune(&mut twice, &schema), Vec::<String>::new());
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn defaulting_twice_is_defaulting_once(schema in any_schema(), value in any_value()) {
            let schema = read(&schema);
            let mut once = value;
            apply_defaults(&mut once, &schema).unwrap();
            let mut twice = once.clone();
            apply_defaults(&mut twice, &schema).unwrap();
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn nothing_panics(schema in any_schema(), new in any_value(), old in any_value()) {
            check_crd_schema(&schema, &Path::of("schema"), true, false);
            let compiled = CompiledSchema::read(&schema);
            let (mut new, mut old) = (new, old);
            let _ = fit(&mut new, &compiled, Malformed::Refuse);
            let _ = fit(&mut old, &compiled, Malformed::Drop);
            apply_defaults(&mut new, &compiled).unwrap();
            validate(&new, Some(&old), &compiled, Vec::new(), &WANTED);
            validate_status(&new, &old, &compiled, Vec::new(), &WANTED);
            validate(&new, None, &compiled, Vec::new(), &WANTED);
        }

        #[test]
        fn what_is_valid_stays_valid_when_nothing_changes(schema in any_schema(), value in any_value()) {
            let compiled = CompiledSchema::read(&schema);
            if validate(&value, None, &compiled, Vec::new(), &WANTED).errors.is_empty() {
                let errors = validate(&value, Some(&value), &compiled, Vec::new(), &WANTED).errors;
                prop_assert!(errors.is_empty(), "{:?}", errors);
            }
        }
    }
}

#[test]
fn defaults_cannot_make_an_object_too_large() {
    let schema = read(&json!({"type": "object", "properties": {"rows": {"type": "array", "items": {
        "type": "object", "properties": {"a": {"type": "string", "default": "x".repeat(3000)}}}}}}));
    let object = |rows: usize| json!({"rows": vec![json!({}); rows]});
    let mut small = object(500);
    apply_defaults(&mut small, &schema).unwrap();
    assert!(small.to_string().len() > 1_500_000);
    // 60 kB that would be 60 MB.
    let mut large = object(20_000);
    assert_eq!(apply_defaults(&mut large, &schema), Err(TooManyDefaults));
    assert!(large.to_string().len() < 2 << 20, "no more than that is added");
    let error = crate::status::ApiError::from(TooManyDefaults);
    assert_eq!((error.code, &*error.message), (500, "etcdserver: request is too large"));
}
