//! The whole of schema handling against answers recorded from kube-apiserver v1.36.3, and properties
//! that hold for any schema and object.

use super::*;
use crate::field::{FieldError, Path};
use serde_json::json;

/// Objects that were sent to a real server, with what it said: the stored object, or the causes.
const VALUES: &str = include_str!("golden/values.json");

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
        let errors = causes(&check_crd_schema(&case["schema"], &at, case["status"] == true));
        let expected = case["crd"].get("errors").cloned().unwrap_or_else(|| json!([]));
        if errors != expected {
            let name = &case["name"];
            differences.push(format!("{name}\n  expected {expected}\n  actual   {errors}\n"));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.concat());
}

fn check_golden(text: &str) {
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut differences = Vec::new();
    for case in &cases {
        let schema = CompiledSchema::new(read(&case["schema"]));
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
    apply_defaults(&mut new, schema);
    let verdict = if entry.get("old").is_some() {
        let mut old = object(&entry["old"]);
        normalise_numbers(&mut old);
        fit(&mut old, schema, Malformed::Drop).unwrap();
        apply_defaults(&mut old, schema);
        if status {
            let mut whole = old.clone();
            match new.get("status") {
                Some(status) => whole["status"] = status.clone(),
                None => drop(whole.as_object_mut().unwrap().remove("status")),
            }
            new = whole;
            validate_status(&new, &old, schema)
        } else {
            validate(&new, Some(&old), schema)
        }
    } else {
        validate(&new, None, schema)
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
    crate::decode::normalise_numbers(value);
}
