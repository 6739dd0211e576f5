//! Objects as a real kube-apiserver v1.36.3 stored them, against what these rules make of the same input.

use super::super::pod::admit::{Surroundings, admit_pod, admit_pod_update};
use super::super::pod::{binding, ephemeral, eviction};
use super::super::{Env, Rules, rules};
use super::scale;
use serde_json::{Value, json};

const UID: &str = "UID";

fn env() -> Env<'static> {
    Env { now: jiff::Timestamp::UNIX_EPOCH, uid: &|| UID.to_owned(), dry_run: false }
}

fn surroundings() -> Surroundings<'static> {
    Surroundings {
        service_account: &|name| (name == "default").then(|| json!({"metadata": {"name": name}})),
        priority_class: &|_| None,
        default_priority_class: &|| None,
        node: &|_| None,
    }
}

/// The random end of a generated volume name differs from run to run.
fn without_random_names(object: &Value) -> Value {
    let text = object.to_string();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("kube-api-access-") {
        let end = at + "kube-api-access-".len();
        out.push_str(&rest[..end]);
        rest = &rest[end + 5..];
    }
    out.push_str(rest);
    serde_json::from_str(&out).unwrap()
}

fn rules_of(object: &Value) -> &'static Rules {
    let version = object["apiVersion"].as_str().unwrap();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    rules(group, object["kind"].as_str().unwrap()).unwrap()
}

/// The object as it would be stored, or what the server says instead.
fn create(mut object: Value) -> Result<Value, Vec<String>> {
    let rules = rules_of(&object);
    (rules.default)(&mut object);
    object["metadata"]["uid"] = UID.into();
    if object["kind"] == "Pod" {
        admit_pod(&mut object, "workloads", &env(), &surroundings()).map_err(|e| vec![e.message])?;
    }
    (rules.prepare_create)(&mut object, &env());
    let mut errors = Vec::new();
    (rules.validate)(&object, &mut errors);
    if !errors.is_empty() {
        return Err(errors.iter().map(ToString::to_string).collect());
    }
    let again = object.clone();
    (rules.default)(&mut object);
    assert_eq!(again, object, "defaults are not idempotent");
    object["metadata"].as_object_mut().unwrap().remove("uid");
    Ok(object)
}

#[test]
fn new_objects_are_stored_as_the_real_server_stores_them() {
    for fixture in [
        include_str!("../fixtures/created_pods.json"),
        include_str!("../fixtures/created_apps.json"),
        include_str!("../fixtures/created_batch.json"),
    ] {
        let pairs: Vec<Value> = serde_json::from_str(fixture).unwrap();
        for pair in pairs {
            let ours = without_random_names(&create(pair["input"].clone()).unwrap());
            let real = without_random_names(&pair["output"]);
            let differences = differences(&ours, &real);
            assert!(differences.is_empty(), "{}: {differences:#?}", pair["input"]["metadata"]["name"]);
        }
    }
}

fn differences(ours: &Value, real: &Value) -> Vec<String> {
    fn walk(path: &str, ours: &Value, real: &Value, out: &mut Vec<String>) {
        match (ours, real) {
            (Value::Object(a), Value::Object(b)) => {
                for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                    let null = Value::Null;
                    let (a, b) = (a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null));
                    walk(&format!("{path}.{key}"), a, b, out);
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (index, (a, b)) in a.iter().zip(b).enumerate() {
                    walk(&format!("{path}[{index}]"), a, b, out);
                }
            }
            (a, b) if a != b => out.push(format!("{path}: ours {a}, real {b}")),
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk("", ours, real, &mut out);
    out
}

#[test]
fn bad_objects_are_refused_in_the_real_servers_words() {
    let mut wrong = Vec::new();
    for fixture in [
        include_str!("../fixtures/refused_pods.json"),
        include_str!("../fixtures/refused_apps.json"),
        include_str!("../fixtures/refused_batch.json"),
    ] {
        let cases: Vec<Value> = serde_json::from_str(fixture).unwrap();
        for case in cases {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let mut real: Vec<String> = case["causes"].as_array().unwrap().iter().map(text).collect();
            if real.is_empty() {
                real.push(text(&case["message"]));
            }
            let mut ours = create(case["input"].clone()).err().unwrap_or_default();
            if case["unordered"] == true {
                real.sort();
                ours.sort();
            }
            if ours != real {
                let missing: Vec<&String> = real.iter().filter(|r| !ours.contains(r)).collect();
                let extra: Vec<&String> = ours.iter().filter(|o| !real.contains(o)).collect();
                wrong.push(format!("{}\n  missing {missing:#?}\n  extra {extra:#?}", case["input"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Sets the value at a path such as `spec/containers/0/image`; `-` appends, null removes.
fn change(object: &mut Value, path: &str, value: &Value) {
    let (head, rest) = path.split_once('/').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let slot = match object {
        Value::Array(items) if head == "-" => return items.push(value.clone()),
        Value::Array(items) => &mut items[head.parse::<usize>().unwrap()],
        Value::Object(map) if rest.is_none() && value.is_null() => {
            map.remove(head);
            return;
        }
        Value::Object(map) => map.entry(head).or_insert_with(|| json!({})),
        _ => panic!("no such path"),
    };
    match rest {
        Some(rest) => change(slot, rest, value),
        None => *slot = value.clone(),
    }
}

/// Applies a JSON merge patch.
fn merge(object: &mut Value, patch: &Value) {
    let (Value::Object(map), Value::Object(patch)) = (&mut *object, patch) else {
        *object = patch.clone();
        return;
    };
    for (key, value) in patch {
        match (value, map.get_mut(key)) {
            (Value::Null, _) => drop(map.remove(key)),
            (Value::Object(_), Some(inner @ Value::Object(_))) => merge(inner, value),
            _ => drop(map.insert(key.clone(), value.clone())),
        }
    }
}

fn update(mut new: Value, old: &Value, subresource: Option<&str>) -> Result<Value, Vec<String>> {
    let rules = rules_of(&new);
    (rules.default)(&mut new);
    let mut errors = Vec::new();
    match subresource {
        Some("status") => {
            (rules.prepare_status)(&mut new, old, &env());
            (rules.validate_status)(&new, old, &mut errors);
        }
        Some(_) => {
            ephemeral::prepare(&mut new, old);
            ephemeral::validate(&new, old, &mut errors);
        }
        None => {
            if new["kind"] == "Pod" {
                admit_pod_update(&mut new, old, &surroundings());
            }
            (rules.prepare_update)(&mut new, old, &env());
            (rules.validate_update)(&new, old, &mut errors);
        }
    }
    if errors.is_empty() { Ok(new) } else { Err(errors.iter().map(ToString::to_string).collect()) }
}

#[test]
fn updates_keep_and_refuse_what_the_real_server_does() {
    let groups: Vec<Value> = serde_json::from_str(include_str!("../fixtures/updates.json")).unwrap();
    let mut wrong = Vec::new();
    for group in groups {
        let old = &group["object"];
        for write in group["writes"].as_array().unwrap() {
            let mut new = old.clone();
            for (path, value) in write["change"].as_object().unwrap() {
                change(&mut new, path, value);
            }
            let ours = update(new, old, write.get("subresource").and_then(Value::as_str));
            let what = format!("{} {}", old["kind"], write["change"]);
            match (ours, write.get("result")) {
                (Ok(ours), Some(patch)) => {
                    let mut real = old.clone();
                    merge(&mut real, patch);
                    let differences = differences(&ours, &real);
                    if !differences.is_empty() {
                        wrong.push(format!("{what}: {differences:#?}"));
                    }
                }
                (Ok(_), None) => wrong.push(format!("{what}: accepted, real {}", write["causes"])),
                (Err(ours), Some(_)) => wrong.push(format!("{what}: refused {ours:#?}")),
                (Err(ours), None) => {
                    let real: Vec<String> = serde_json::from_value(write["causes"].clone()).unwrap();
                    if ours != real {
                        wrong.push(format!("{what}: refused {ours:#?}, real {real:#?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} writes differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn doubtful_objects_get_the_real_servers_warnings() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../fixtures/warnings.json")).unwrap();
    for case in cases {
        let stored = create(case["input"].clone()).unwrap();
        let ours = (rules_of(&stored).warnings)(&stored, None);
        assert_eq!(json!(ours), case["warnings"], "{}", case["input"]);
    }
}

/// Every value in an object, replaced by each of these in turn, must not bring the server down.
#[test]
fn odd_shapes_are_survived() {
    let odd = [json!(-1), json!("%"), json!([null]), json!({"a": []})];
    let mut seen = std::collections::HashSet::new();
    for fixture in [
        include_str!("../fixtures/created_pods.json"),
        include_str!("../fixtures/created_apps.json"),
        include_str!("../fixtures/created_batch.json"),
    ] {
        let mut pairs: Vec<Value> = serde_json::from_str(fixture).unwrap();
        // The richest object of each kind will do.
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair["output"].to_string().len()));
        for stored in pairs.iter().map(|pair| &pair["output"]) {
            if !seen.insert(stored["kind"].to_string()) {
                continue;
            }
            let mut paths = Vec::new();
            collect_paths(stored, String::new(), &mut paths);
            for (index, path) in paths.iter().enumerate() {
                for shape in &odd {
                    let mut object = stored.clone();
                    *object.pointer_mut(path).unwrap() = shape.clone();
                    survive_create(rules_of(stored), object.clone(), stored);
                    // Refused updates render whole specs, which takes its time; some of them will do.
                    if index % 16 == 0 {
                        survive_update(rules_of(stored), object, stored);
                    }
                }
            }
        }
    }
}

fn collect_paths(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_paths(value, format!("{path}/{key}"), paths);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect_paths(value, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

fn survive_create(rules: &Rules, mut object: Value, stored: &Value) {
    let mut errors = Vec::new();
    (rules.default)(&mut object);
    drop(admit_pod(&mut object.clone(), "n", &env(), &surroundings()));
    (rules.prepare_create)(&mut object.clone(), &env());
    (rules.prepare_status)(&mut object.clone(), stored, &env());
    (rules.validate)(&object, &mut errors);
    (rules.validate_status)(&object, stored, &mut errors);
    drop((rules.warnings)(&object, None));
    drop(eviction::decide(&object, std::slice::from_ref(&object), &env()));
    drop(binding::bind(&mut object.clone(), &object, &env()));
    scale::selector_string(&object["spec"]["selector"]);
}

fn survive_update(rules: &Rules, mut object: Value, stored: &Value) {
    let mut errors = Vec::new();
    (rules.default)(&mut object);
    admit_pod_update(&mut object.clone(), stored, &surroundings());
    (rules.prepare_update)(&mut object.clone(), stored, &env());
    (rules.prepare_update)(&mut stored.clone(), &object, &env());
    ephemeral::prepare(&mut object.clone(), stored);
    (rules.validate_update)(&object, stored, &mut errors);
    (rules.validate_update)(stored, &object, &mut errors);
    ephemeral::validate(&object, stored, &mut errors);
}
