//! Each file in `fixtures/` holds writes of one kind and what kube-apiserver v1.36.3 made of them; the rules
//! must come to the same object, the same errors in the same order, and the same warnings.

use super::service::allocate::{Allocations, Ranges, begin_create, begin_update};
use super::{checks_own_metadata, event, wants_standard_finalizers};
use crate::builtin::rules::names::object_meta::validate_standard_finalizers;
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
        object["metadata"]["namespace"] = json!("test");
    }
    if fixture.group == "events.k8s.io" {
        event::to_core(&mut object);
    }
    (rules.default)(&mut object);
    if let Err(error) = begin(fixture, &mut object, None) {
        return (object, error, Vec::new());
    }
    (rules.prepare_create)(&mut object, &env());
    let mut errors = Vec::new();
    let own = checks_own_metadata(&fixture.group, &fixture.kind);
    if !own {
        validate_object_meta(&object, fixture.namespaced, rules.name, &mut errors);
    }
    if !own && wants_standard_finalizers(&fixture.group, &fixture.kind) {
        validate_standard_finalizers(&object, &mut errors);
    }
    (rules.validate)(&object, &mut errors);
    if errors.is_empty() {
        validate_object_meta(&object, fixture.namespaced, path_segment_name, &mut errors);
    }
    let warnings = (rules.warnings)(&object, None);
    if fixture.group == "events.k8s.io" {
        event::from_core(&mut object);
        object.as_object_mut().unwrap().remove("apiVersion");
    }
    (object, sentences(&errors), warnings)
}

fn update(rules: &Rules, fixture: &Fixture, case: &Case, old: &Value) -> Outcome {
    let mut old = old.clone();
    old["metadata"]["resourceVersion"] = json!("1");
    old["metadata"]["uid"] = json!("uid");
    if fixture.namespaced {
        old["metadata"]["namespace"] = json!("test");
    }
    let mut new = old.clone();
    merge(&mut new, &case.patch);
    if fixture.group == "events.k8s.io" {
        event::to_core(&mut old);
        event::to_core(&mut new);
    }
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
    if !status && wants_standard_finalizers(&fixture.group, &fixture.kind) {
        validate_standard_finalizers(&new, &mut errors);
    }
    let validate = if status { rules.validate_status } else { rules.validate_update };
    validate(&new, &old, &mut errors);
    let warnings = (rules.warnings)(&new, Some(&old));
    if fixture.group == "events.k8s.io" {
        event::from_core(&mut new);
        new.as_object_mut().unwrap().remove("apiVersion");
    }
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
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    prune(&mut value);
    value
}

/// Whether a decoded object would read the same without it.
fn says_nothing(value: &Value) -> bool {
    [Value::Null, json!({}), json!([]), json!(""), json!(0)].contains(value)
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|_, value| !says_nothing(value));
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
        const SOURCES: &[(&str, &str)] =
            &[$((stringify!($name), include_str!(concat!("fixtures/", stringify!($name), ".json")))),*];

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
    claim
    cluster_role
    cluster_role_binding
    config_map
    crd
    endpoint_slice
    endpoints
    event
    event_core
    ingress
    ingress_class
    lease
    mutating_webhooks
    metadata
    namespace
    network_policy
    node
    priority_class
    role
    role_binding
    secret
    service
    service_account
    storage_class
    validating_webhooks
    volume
}

mod odd_shapes {
    //! Whatever stands in an object, the rules answer and do not panic.

    use super::*;
    use proptest::prelude::*;

    /// Every word that stands in a fixture: names of fields and values that mean something.
    fn words() -> Vec<String> {
        let mut words = vec![String::new(), "x".into(), "None".into(), "é-".into()];
        for (_, source) in SOURCES {
            collect(&serde_json::from_str(source).unwrap(), &mut words);
        }
        words.sort();
        words.dedup();
        words
    }

    fn collect(value: &Value, words: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                words.extend(map.keys().cloned());
                map.values().for_each(|value| collect(value, words));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, words)),
            Value::String(text) if text.len() < 64 => words.push(text.clone()),
            _ => {}
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let words = words();
        let word = proptest::sample::select(words);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..70_000).prop_map(Value::from),
            crate::extremes::numbers(),
            word.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((word.clone(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Puts a random tree in the place of a random part of an object.
    fn disturb(object: &mut Value, path: &[usize], part: Value) {
        let [step, rest @ ..] = path else {
            *object = part;
            return;
        };
        match object {
            Value::Object(map) if !map.is_empty() => {
                let count = map.len();
                disturb(map.values_mut().nth(step % count).unwrap(), rest, part);
            }
            Value::Array(items) if !items.is_empty() => {
                let count = items.len();
                disturb(&mut items[step % count], rest, part);
            }
            other => *other = part,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn rules_never_panic(part in tree(), path in proptest::collection::vec(0_usize..8, 0..5), pick in 0_usize..1000) {
            let (_, source) = SOURCES[pick % SOURCES.len()];
            let fixture: Fixture = serde_json::from_str(source).unwrap();
            let rules = super::super::rules(&fixture.group, &fixture.kind).unwrap();
            let case = &fixture.cases[pick / SOURCES.len() % fixture.cases.len()];
            let original = case.create.as_ref().or(case.old.as_ref()).unwrap();
            let mut object = original.clone();
            disturb(&mut object, &path, part);
            // The server itself makes sure that there is an object with metadata.
            if !object.is_object() {
                object = json!({});
            }
            if !object["metadata"].is_object() {
                object["metadata"] = json!({});
            }
            create(rules, &fixture, object.clone());
            let mut new = object.clone();
            (rules.default)(&mut new);
            (rules.prepare_update)(&mut new, original, &env());
            (rules.validate_update)(&new, original, &mut Vec::new());
            (rules.prepare_status)(&mut new, original, &env());
            (rules.validate_status)(&new, original, &mut Vec::new());
            (rules.warnings)(&new, Some(original));
        }

        #[test]
        fn defaults_are_set_once(part in tree(), path in proptest::collection::vec(0_usize..8, 0..5), pick in 0_usize..1000) {
            let (_, source) = SOURCES[pick % SOURCES.len()];
            let fixture: Fixture = serde_json::from_str(source).unwrap();
            let rules = super::super::rules(&fixture.group, &fixture.kind).unwrap();
            let case = &fixture.cases[pick / SOURCES.len() % fixture.cases.len()];
            let mut once = case.create.as_ref().or(case.old.as_ref()).unwrap().clone();
            disturb(&mut once, &path, part);
            (rules.default)(&mut once);
            let mut twice = once.clone();
            (rules.default)(&mut twice);
            prop_assert_eq!(once, twice);
        }
    }
}
