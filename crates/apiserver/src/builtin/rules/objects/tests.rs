//! Each file in `fixtures/` holds writes of one kind and what kube-apiserver v1.36.3 made of them; the rules
//! must come to the same object, the same errors in the same order, and the same warnings.

use super::service::{Allocations, Ranges, begin_create, begin_update};
use crate::builtin::rules::names::{path_segment_name, validate_object_meta, validate_object_meta_update};
use crate::builtin::rules::{Env, Rules};
use crate::field::FieldError;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

#[derive(Deserialize)]
struct Fixture {
    group: String,
    kind: String,
    namespaced: bool,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    fact: String,
    create: Option<Value>,
    old: Option<Value>,
    #[serde(default)]
    patch: Value,
    subresource: Option<String>,
    result: Option<Value>,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

fn env() -> Env<'static> {
    Env { now: jiff::Timestamp::UNIX_EPOCH, uid: &|| "uid".to_owned(), dry_run: true }
}

/// What the rules make of a write.
type Outcome = (Value, Vec<String>, Vec<String>);

fn create(rules: &Rules, fixture: &Fixture, mut object: Value) -> Outcome {
    if fixture.namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    (rules.default)(&mut object);
    if let Err(error) = begin(fixture, &mut object, None) {
        return (object, error, Vec::new());
    }
    (rules.prepare_create)(&mut object, &env());
    let mut errors = Vec::new();
    validate_object_meta(&object, fixture.namespaced, rules.name, &mut errors);
    (rules.validate)(&object, &mut errors);
    let warnings = (rules.warnings)(&object, None);
    (object, sentences(&errors), warnings)
}

fn update(rules: &Rules, fixture: &Fixture, case: &Case, old: &Value) -> Outcome {
    let mut old = old.clone();
    old["metadata"]["resourceVersion"] = json!("1");
    old["metadata"]["uid"] = json!("uid");
    if fixture.namespaced {
        old["metadata"]["namespace"] = json!("default");
    }
    let mut new = old.clone();
    merge(&mut new, &case.patch);
    (rules.default)(&mut new);
    let status = case.subresource.as_deref() == Some("status");
    if !status && let Err(error) = begin(fixture, &mut new, Some(&old)) {
        return (new, error, Vec::new());
    }
    let mut errors = Vec::new();
    if status {
        (rules.prepare_status)(&mut new, &old, &env());
    } else {
        (rules.prepare_update)(&mut new, &old, &env());
    }
    validate_object_meta(&new, fixture.namespaced, path_segment_name, &mut errors);
    validate_object_meta_update(&new, &old, &mut errors);
    let validate = if status { rules.validate_status } else { rules.validate_update };
    validate(&new, &old, &mut errors);
    let warnings = (rules.warnings)(&new, Some(&old));
    (new, sentences(&errors), warnings)
}

/// Cluster IPs and node ports, as a dry run chooses them.
fn begin(fixture: &Fixture, new: &mut Value, old: Option<&Value>) -> Result<(), Vec<String>> {
    if fixture.kind != "Service" {
        return Ok(());
    }
    let (ranges, taken, random) = (Ranges::default(), Allocations::default(), &mut || 0);
    let done = match old {
        None => begin_create(new, &ranges, &taken, random, true),
        Some(old) => begin_update(new, old, &ranges, &taken, random, true),
    };
    done.map_err(|error| {
        let causes = error.to_status()["details"]["causes"].as_array().cloned().unwrap_or_default();
        let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
        once(causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))))
    })
}

/// Each sentence once, in order: the causes of an update repeat those about metadata.
fn sentences(errors: &[FieldError]) -> Vec<String> {
    once(errors.iter().map(ToString::to_string))
}

fn once(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    all.filter(|sentence| seen.insert(sentence.clone())).collect()
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}

/// Drops what says nothing and what the server makes up.
fn essence(mut value: Value) -> Value {
    if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields", "namespace"] {
            meta.remove(field);
        }
    }
    prune(&mut value);
    value
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn check(source: &str) {
    let fixture: Fixture = serde_json::from_str(source).unwrap();
    let rules = super::rules(&fixture.group, &fixture.kind).unwrap();
    let mut report = String::new();
    for case in &fixture.cases {
        let (object, errors, warnings) = match (&case.create, &case.old) {
            (Some(object), _) => create(rules, &fixture, object.clone()),
            (None, Some(old)) => update(rules, &fixture, case, old),
            (None, None) => panic!("{}: neither create nor old", case.fact),
        };
        if errors != case.errors {
            let _ =
                writeln!(report, "{}: errors\n  {errors:#?}\n  expected\n  {:#?}", case.fact, case.errors);
        }
        if let Some(expected) = &case.result {
            let (ours, theirs) = (essence(object), essence(expected.clone()));
            if ours != theirs {
                let _ = writeln!(report, "{}: result\n  {ours}\n  expected\n  {theirs}", case.fact);
            }
            if warnings != case.warnings {
                let _ =
                    writeln!(report, "{}: warnings {warnings:?}, expected {:?}", case.fact, case.warnings);
            }
        }
    }
    assert!(report.is_empty(), "{} {}\n{report}", fixture.group, fixture.kind);
}

macro_rules! facts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(include_str!(concat!("fixtures/", stringify!($name), ".json")));
        })*

        #[test]
        fn every_fixture_is_checked() {
            let names: Vec<&str> = vec![$(stringify!($name)),*];
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/builtin/rules/objects/fixtures");
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(names.contains(&name.as_str()), "{name} is not in the list of facts");
            }
        }
    };
}

facts! {
    config_map
    crd
    namespace
    secret
    service
}
