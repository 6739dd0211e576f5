//! What holds for all writes.

use super::kind::{World, widget};
use crate::apply::set::FieldSet;
use crate::extremes::SIGNED;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn word() -> impl Strategy<Value = Value> {
    select(vec!["a", "b", "c"]).prop_map(Value::from)
}

fn by_key(items: Vec<Value>, keys: &'static [&'static str]) -> Value {
    let key = |item: &Value| keys.iter().map(|key| item[key].to_string()).collect::<String>();
    items.into_iter().map(|item| (key(&item), item)).collect::<BTreeMap<_, _>>().into_values().collect()
}

/// A field that may be absent.
fn field(
    name: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Map<String, Value>> {
    of(value).prop_map(move |value| value.into_iter().map(|value| (name.to_owned(), value)).collect())
}

fn item() -> impl Strategy<Value = Value> {
    let port = (select(vec![80, 443]), select(vec!["TCP", "UDP"]), field("name", word())).prop_map(
        |(port, protocol, mut rest)| {
            rest.extend([("port".to_owned(), json!(port)), ("protocol".to_owned(), json!(protocol))]);
            Value::Object(rest)
        },
    );
    let ports = vec(port, 1..3).prop_map(|ports| by_key(ports, &["port", "protocol"]));
    (word(), field("value", word()), field("ports", ports)).prop_map(|(name, value, ports)| {
        let mut item = value;
        item.extend(ports);
        item.insert("name".to_owned(), name);
        Value::Object(item)
    })
}

/// Specs without empty lists and maps, which stay behind when what fills them is gone.
fn spec() -> impl Strategy<Value = Value> {
    let free = btree_map("[uv]", prop_oneof![word(), word().prop_map(|word| json!({"p": word}))], 1..3);
    let parts = (
        field("text", word()),
        field("count", prop_oneof![(0..3).prop_map(Value::from), select(&SIGNED[..]).prop_map(Value::from)]),
        field("labels", btree_map("[kl]", word(), 1..3).prop_map(|labels| json!(labels))),
        field("selector", btree_map("[st]", word(), 1..3).prop_map(|labels| json!(labels))),
        field("tags", subsequence(vec!["a", "b", "c"], 1..3).prop_map(Value::from)),
        field("args", vec(word(), 1..3).prop_map(Value::from)),
        field("items", vec(item(), 1..4).prop_map(|items| by_key(items, &["name"]))),
        field("free", free.prop_map(|free| json!(free))),
        field("nested", word().prop_map(|word| json!({"b": {"c": word}}))),
    );
    parts.prop_map(|parts| {
        let (text, count, labels, selector, tags, args, items, free, nested) = parts;
        let parts = [text, count, labels, selector, tags, args, items, free, nested];
        json!({ "spec": parts.into_iter().flatten().collect::<Map<String, Value>>() })
    })
}

#[derive(Clone, Debug)]
struct Step {
    who: &'static str,
    body: Value,
}

fn step() -> impl Strategy<Value = Step> {
    (select(vec!["a", "b", "c", "a!", "b!", "=a", "=u"]), spec()).prop_map(|(who, body)| Step { who, body })
}

fn world(steps: &[Step]) -> World {
    let mut world = World::new(widget());
    for step in steps {
        world.step(step.who, &step.body);
    }
    world
}

fn is_tracked(object: &Value) -> bool {
    object["metadata"]["managedFields"].is_array()
}

fn applied_by<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| entry["operation"] == "Apply" && entry["manager"] == manager)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn applying_again_gives_the_identical_object(steps in vec(step(), 0..5), last in spec()) {
        let mut world = world(&steps);
        world.step("x!", &last);
        let once = world.live.clone();
        prop_assert_eq!(world.step("x", &last), "x: ok\n");
        prop_assert_eq!(world.live, once);
    }

    #[test]
    fn applying_nothing_takes_back_what_was_added(steps in vec(step(), 1..4), added in spec()) {
        let mut world = world(&steps);
        let Some(before) = world.live.clone().filter(is_tracked) else { return Ok(()) };
        // Without force nothing of others is changed, so all can be taken back.
        if world.step("x", &added) != "x: ok\n" {
            return Ok(());
        }
        world.step("x", &json!({}));
        let after = world.live.unwrap();
        prop_assert!(applied_by(&after, "x").is_none());
        prop_assert_eq!(&after["metadata"]["managedFields"], &before["metadata"]["managedFields"]);
        prop_assert_eq!(without_empty(&after["spec"]), without_empty(&before["spec"]));
    }

    #[test]
    fn nobody_loses_a_field_to_an_apply_without_force(steps in vec(step(), 1..5), body in spec()) {
        let mut world = world(&steps);
        let before = world.live.clone();
        let told = world.step("x", &body);
        if told == "x: ok\n" {
            for entry in before.iter().filter_map(|o| o["metadata"]["managedFields"].as_array()).flatten() {
                let after = world.live.as_ref().unwrap()["metadata"]["managedFields"].as_array().unwrap();
                prop_assert!(after.contains(entry));
            }
        } else {
            prop_assert!(told.contains("Apply failed with"), "{}", told);
            prop_assert_eq!(world.live, before);
        }
    }

    #[test]
    fn what_is_applied_is_in_the_object(steps in vec(step(), 0..5), body in spec()) {
        let mut world = world(&steps);
        world.step("x!", &body);
        let again = widget().update(world.live.as_ref(), world.live.as_ref().unwrap(), "probe", 99);
        // A replace with the same object is no change.
        prop_assert_eq!(Some(&again), world.live.as_ref());
        for (key, value) in body["spec"].as_object().unwrap() {
            if value.is_string() || value.is_number() || key == "selector" || key == "args" {
                prop_assert_eq!(&again["spec"][key], value);
            }
        }
    }

    #[test]
    fn field_sets_survive_their_json_form(fields in fields()) {
        let set = FieldSet::parse(&fields).unwrap();
        prop_assert_eq!(&FieldSet::parse(&set.to_value()).unwrap(), &set);
        prop_assert_eq!(&set.clone().union(set.clone()), &set);
        prop_assert_eq!(&set.intersection(&set), &set);
        prop_assert!(set.clone().difference(&set).is_empty());
    }

    #[test]
    fn set_algebra_holds(a in fields(), b in fields()) {
        let (a, b) = (FieldSet::parse(&a).unwrap(), FieldSet::parse(&b).unwrap());
        let both = a.intersection(&b);
        let only_a = a.clone().difference(&b);
        prop_assert_eq!(&only_a.clone().union(both.clone()), &a);
        prop_assert!(only_a.intersection(&b).is_empty());
        prop_assert_eq!(a.clone().union(b.clone()), b.clone().union(a.clone()));
        prop_assert_eq!(b.contains_all(&a), only_a.is_empty());
        prop_assert!(only_a.contains_all(&a.recursive_difference(&b)));
    }
}

/// The value less what is empty, and with lists sorted: an apply may reorder what it shares.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (key.clone(), without_empty(value)));
            let fields: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
            if fields.is_empty() { Value::Null } else { Value::Object(fields) }
        }
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(without_empty).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        scalar => scalar.clone(),
    }
}

fn fields() -> impl Strategy<Value = Value> {
    let key = select(vec!["f:a", "f:b", r#"k:{"n":1}"#, r#"k:{"n":10}"#, r#"v:"x""#, "v:9", "v:10", "i:0"]);
    let key = key.prop_map(str::to_owned);
    let leaf = Just(json!({})).boxed();
    leaf.prop_recursive(3, 20, 4, move |inner| {
        (btree_map(key.clone(), inner, 0..4), any::<bool>()).prop_map(|(mut fields, member)| {
            if member {
                fields.insert(".".to_owned(), json!({}));
            }
            json!(fields)
        })
    })
}
