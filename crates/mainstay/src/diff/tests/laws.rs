//! Laws that hold for any two objects, whatever the schema.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::canonical::{same, text};
use super::super::{Desired, Extent, Learned, Rules, compare, difference, overlay};
use super::rules;

fn leaf() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(2.5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("1"),
        json!("1000m"),
        json!("TCP"),
        json!({}),
        json!([]),
    ])
}

/// Names that the schema of [`rules`] knows, most of them used against their type now and then.
fn field() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "name", "protocol", "keyed", "merged", "set", "atomic", "bare", "whole", "amount", "amounts", "spec",
        "x.y",
    ])
    .prop_map(str::to_owned)
}

fn list_field() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["keyed", "merged", "set", "atomic", "bare"]).prop_map(str::to_owned)
}

fn item_name() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!("a"), json!("b"), json!("c"), json!("d"), json!(null)])
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 60, 4, |inner| {
        let named = (item_name(), prop::collection::btree_map(field(), inner.clone(), 0..3))
            .prop_map(|(name, fields)| {
                let mut object: Map<String, Value> = fields.into_iter().collect();
                object.insert("name".to_owned(), name);
                Value::from(object)
            })
            .boxed();
        let lists = (list_field(), prop::collection::vec(named.clone(), 0..5))
            .prop_map(|(name, items)| json!({name: items}));
        prop_oneof![
            3 => prop::collection::btree_map(field(), inner.clone(), 0..5)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
            2 => prop::collection::vec(named, 0..4).prop_map(Value::from),
            3 => lists,
        ]
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    let owner = (item_name(), leaf()).prop_map(|(uid, name)| json!({"uid": uid, "name": name}));
    (
        prop::option::of(prop::collection::vec(leaf(), 0..3)),
        prop::option::of(prop::collection::vec(owner, 0..3)),
        prop::option::of(tree()),
    )
        .prop_map(|(finalizers, owners, labels)| {
            json!({"name": "web", "finalizers": finalizers, "ownerReferences": owners, "labels": labels})
        })
}

/// An object, and a second that shares much with it.
fn object() -> impl Strategy<Value = Value> {
    (metadata(), prop::collection::btree_map(field(), tree(), 0..4)).prop_map(|(metadata, fields)| {
        let mut object: Map<String, Value> = fields.into_iter().collect();
        object.insert("metadata".to_owned(), metadata);
        Value::from(object)
    })
}

/// Puts pieces of another object into one, so that two objects differ in places rather than altogether.
fn mixed(object: &Value, other: &Value, bits: &mut u64) -> Value {
    *bits = bits.rotate_left(1);
    match (object, other) {
        _ if bits.is_multiple_of(8) => other.clone(),
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let mut fields = Map::new();
            for name in names {
                let value = match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => Some(mixed(a, b, bits)),
                    (Some(a), None) => Some(a.clone()),
                    (None, b) => b.filter(|_| bits.is_multiple_of(4)).cloned(),
                };
                fields.extend(value.map(|value| (name.clone(), value)));
            }
            Value::from(fields)
        }
        (Value::Array(a), Value::Array(b)) => {
            let mut items: Vec<Value> = a.iter().zip(b).map(|(a, b)| mixed(a, b, bits)).collect();
            items.extend(a.iter().skip(b.len()).cloned());
            if *bits % 32 < 16 {
                items.reverse();
            }
            items.into()
        }
        _ => object.clone(),
    }
}

prop_compose! {
    fn pair()(a in object(), b in object(), mut bits in any::<u64>()) -> (Value, Value) {
        let b = mixed(&a, &b, &mut bits);
        (a, b)
    }
}

fn all_rules() -> [Rules; 3] {
    [rules(), Rules::unknown(), Rules::plain()]
}

proptest! {
    #[test]
    fn an_object_is_as_desired_when_it_is_itself(object in object()) {
        for rules in all_rules() {
            prop_assert_eq!(compare(&object, &object, &rules, &Learned::nothing()), []);
            prop_assert_eq!(difference(&object, &object, &rules, Extent::WithStatus), []);
        }
    }

    #[test]
    fn making_the_changes_makes_it_as_desired((live, desired) in pair()) {
        for rules in all_rules() {
            let changes = compare(&desired, &live, &rules, &Learned::nothing());
            let after = overlay(&live, &changes, &rules);
            prop_assert_eq!(compare(&desired, &after, &rules, &Learned::nothing()), [], "after {}", after);
        }
    }

    #[test]
    fn the_difference_makes_the_new_of_the_old((old, new) in pair()) {
        for rules in all_rules() {
            let changes = difference(&old, &new, &rules, Extent::WithStatus);
            let made = overlay(&old, &changes, &rules);
            prop_assert!(same(&made, &new), "{} instead of {}", made, new);
        }
    }

    #[test]
    fn what_was_learned_hides_nothing_else(
        (sent, response) in pair(),
        (other, another) in pair(),
        mut bits in any::<u64>(),
    ) {
        let desired = mixed(&sent, &other, &mut bits);
        let live = mixed(&response, &another, &mut bits);
        for rules in all_rules() {
            let rewritten = compare(&sent, &response, &rules, &Learned::nothing());
            let learned = Learned::from_response(&sent, &response, &rules);
            prop_assert_eq!(learned.is_empty(), rewritten.is_empty());
            prop_assert_eq!(compare(&sent, &response, &rules, &learned), []);

            for (desired, live) in [(&sent, &live), (&desired, &response), (&desired, &live)] {
                let all = compare(desired, live, &rules, &Learned::nothing());
                let told = compare(desired, live, &rules, &learned);
                prop_assert!(told.iter().all(|change| all.contains(change)));
                for hidden in all.iter().filter(|change| !told.contains(change)) {
                    prop_assert!(
                        rewritten.iter().any(|known| known.path == hidden.path
                            && same(known.to.as_ref().unwrap(), hidden.to.as_ref().unwrap())
                            && match (&known.from, &hidden.from) {
                                (Some(known), Some(hidden)) => same(known, hidden),
                                (known, hidden) => known.is_none() && hidden.is_none(),
                            }),
                        "hid {}", hidden
                    );
                }
            }
        }
    }

    #[test]
    fn values_are_the_same_exactly_when_their_canonical_text_is(a in tree(), b in tree(), mut bits in any::<u64>()) {
        let b = mixed(&a, &b, &mut bits);
        prop_assert_eq!(same(&a, &b), text(&a) == text(&b));
        prop_assert!(same(&a, &serde_json::from_str(&text(&a)).unwrap()));
    }

    #[test]
    fn the_hash_is_of_the_content(a in tree(), b in tree()) {
        let desired = |spec: &Value| {
            let child = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec});
            Desired::new(child).unwrap()
        };
        let (one, other) = (desired(&a), desired(&b));
        prop_assert_eq!(one.hash() == other.hash(), same(one.object(), other.object()));
        let reversed: Value = serde_json::from_str(&reversed(one.object())).unwrap();
        let reversed = Desired::new(reversed).unwrap();
        prop_assert_eq!(reversed.hash(), one.hash());
    }
}

/// The JSON of a value with the keys of its objects the other way round.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let fields: Vec<String> = object
                .iter()
                .rev()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), reversed(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(",")),
        _ => value.to_string(),
    }
}
