//! Laws that hold for any schema.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::compounds::smallest;
use super::super::judge::refusals;
use super::super::place::merged;
use super::*;

/// Schemas as they stand in definitions, with names that mean something and names that do not.
pub(super) fn schemas() -> impl Strategy<Value = Value> {
    let tree = scalars().prop_recursive(3, 24, 4, |below| {
        prop_oneof![
            3 => objects(below.clone()),
            1 => (below.clone(), 0..2_u64, 2..4_u64).prop_map(|(items, min, max)| {
                json!({"type": "array", "items": items, "minItems": min, "maxItems": max})
            }),
            1 => below.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    });
    objects(tree)
}

fn objects(below: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "replicas", "image", "port", "timeout", "labels", "storage", "alpha", "beta",
    ]);
    prop::collection::btree_map(name, (below, any::<bool>()), 1..5).prop_map(|fields| {
        let required: Vec<&str> =
            fields.iter().filter(|(_, (_, required))| *required).map(|(name, _)| *name).collect();
        let properties: BTreeMap<&str, &Value> =
            fields.iter().map(|(name, (schema, _))| (*name, schema)).collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "boolean", "nullable": true})),
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "x"})),
        Just(json!({"type": "string", "enum": ["a", "b", "c"]})),
        Just(json!({"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}})),
        (0..8_u64, 0..8_u64).prop_map(|(min, more)| {
            json!({"type": "string", "minLength": min, "maxLength": min + more})
        }),
        prop::sample::select(vec!["date-time", "date", "duration", "ipv4", "ipv6", "cidr", "mac", "uri", "hostname", "email", "uuid", "byte"])
            .prop_map(|format| json!({"type": "string", "format": format})),
        (-9..9_i64, 0..9_i64, any::<bool>(), 1..4_i64).prop_map(|(min, more, exclusive, factor)| {
            json!({"type": "integer", "minimum": min, "maximum": min + more, "exclusiveMinimum": exclusive, "multipleOf": factor})
        }),
        (-9..9_i64, 1..9_i64, any::<bool>()).prop_map(|(min, more, exclusive)| {
            json!({"type": "number", "minimum": min, "maximum": min + more, "exclusiveMaximum": exclusive})
        }),
    ]
}

/// The paths of everything that has no fields, items or entries of its own. What is in a map counts as the map.
fn leaves(path: &str, schema: &Value, found: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, below) in properties {
            leaves(&format!("{path}.{name}"), below, found);
        }
    } else if let Some(items) = schema.get("items") {
        leaves(&format!("{path}[0]"), items, found);
    } else {
        found.push(path.to_owned());
    }
}

/// The smallest valid object of a schema and what is walked of it.
pub(super) fn sample(schema: &Value) -> Option<(Value, SpecWalk)> {
    let spec = smallest(&Schema::read(schema), "spec")?;
    let walk = walk_of(schema, &spec);
    Some((spec, walk))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_valid_and_is_what_its_patch_does(json in schemas()) {
        let schema = Schema::read(&json);
        let Some((spec, walk)) = sample(&json) else { return Ok(()) };
        let spec = schema.complete(&spec);
        for change in &walk.changes {
            let after = schema.complete(&change.spec);
            prop_assert_eq!(refusals(&schema, &after), BTreeSet::default(), "{}", change.label);
            prop_assert_eq!(merged(&spec, &change.patch["spec"]), change.spec.clone(), "{}", change.label);
            prop_assert_ne!(&after, &spec, "{}", change.label);
        }
    }

    #[test]
    fn every_leaf_is_changed_or_told(json in schemas()) {
        let Some((_, walk)) = sample(&json) else { return Ok(()) };
        let mut expected = Vec::new();
        leaves("spec", &json, &mut expected);
        for leaf in expected {
            let changed = walk.changes.iter().any(|change| change.path.starts_with(&leaf));
            let told = walk.untouched.iter().filter_map(|line| line.split(": ").next()).any(|path| leaf.starts_with(path));
            prop_assert!(changed || told, "{leaf} is neither in {:#?}", walk);
        }
    }

    #[test]
    fn changes_are_few_in_order_and_always_the_same(json in schemas()) {
        let Some((spec, walk)) = sample(&json) else { return Ok(()) };
        prop_assert!(walk.changes.is_sorted_by_key(|change| &change.path));
        for group in walk.changes.chunk_by(|one, other| one.path == other.path) {
            prop_assert!(group.len() <= 6, "{group:#?}");
        }
        prop_assert_eq!(walk_of(&json, &spec), walk);
    }

    #[test]
    fn no_two_changes_in_a_row_are_of_one_path(json in schemas(), seed: u64) {
        let Some((_, walk)) = sample(&json) else { return Ok(()) };
        let found = sequences(&walk, seed, 5, 7);
        prop_assert_eq!(found.len(), 5);
        let mut paths: Vec<&str> = walk.changes.iter().map(|change| change.path.as_str()).collect();
        paths.dedup();
        for sequence in &found {
            prop_assert_eq!(sequence.len(), if paths.len() > 1 { 7 } else { paths.len() });
            let path = |index: usize| &walk.changes[index].path;
            prop_assert!(sequence.windows(2).all(|pair| path(pair[0]) != path(pair[1])));
        }
        prop_assert_eq!(sequences(&walk, seed, 5, 7), found);
    }
}
