//! Places within a tree, and merge patches that turn one tree into another. Pure.

use serde_json::{Map, Value};

/// One step down a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    Item(usize),
}

/// The path of a field, as [`differences`](super::super::compare::differences) writes it.
pub(super) fn extended(path: &str, name: &str) -> String {
    if name.contains(['.', '/', '[']) {
        format!("{path}[{name:?}]")
    } else if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// `containers[0].image`.
pub(super) fn render(at: &[Step]) -> String {
    at.iter().fold(String::new(), |path, step| match step {
        Step::Field(name) => extended(&path, name),
        Step::Item(index) => format!("{path}[{index}]"),
    })
}

/// What stands at a place.
pub(super) fn get<'a>(tree: &'a Value, at: &[Step]) -> Option<&'a Value> {
    at.iter().try_fold(tree, |tree, step| match step {
        Step::Field(name) => tree.get(name),
        Step::Item(index) => tree.get(index),
    })
}

/// The tree with another value at a place, or with none. What the place is in must exist.
pub(super) fn put(tree: &Value, at: &[Step], value: Option<Value>) -> Value {
    let Some((step, rest)) = at.split_first() else { return value.unwrap_or_default() };
    let mut tree = tree.clone();
    match (step, &mut tree) {
        (Step::Field(name), Value::Object(fields)) => {
            if rest.is_empty() && value.is_none() {
                fields.remove(name);
            } else {
                let below = put(fields.get(name).unwrap_or(&Value::Null), rest, value);
                fields.insert(name.clone(), below);
            }
        }
        (Step::Item(index), Value::Array(items)) if *index < items.len() => {
            if rest.is_empty() && value.is_none() {
                items.remove(*index);
            } else {
                items[*index] = put(&items[*index], rest, value);
            }
        }
        _ => {}
    }
    tree
}

/// The JSON merge patch that turns one object into another. Lists are replaced as a whole. Such a patch cannot set a
/// field to null: [`merged`] tells whether it does what it should.
pub(in crate::simulation) fn patch_between(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, field) in new {
        match old.get(name) {
            Some(same) if same == field => {}
            Some(other) if other.is_object() => {
                patch.insert(name.clone(), patch_between(other, field));
            }
            _ => {
                patch.insert(name.clone(), field.clone());
            }
        }
    }
    Value::Object(patch)
}

/// What a JSON merge patch makes of a tree, as kube-apiserver does it: fields that are null go, even those of a list's
/// items, where RFC 7396 would keep them.
pub(in crate::simulation) fn merged(tree: &Value, patch: &Value) -> Value {
    let changes = match patch {
        Value::Object(changes) => changes,
        Value::Array(items) => return items.iter().map(|item| merged(&Value::Null, item)).collect(),
        scalar => return scalar.clone(),
    };
    let mut fields = tree.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            let below = merged(fields.get(name).unwrap_or(&Value::Null), change);
            fields.insert(name.clone(), below);
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn trees() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |below| {
            prop_oneof![
                prop::collection::vec(below.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", below, 0..3)
                    .prop_map(|fields| fields.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_patch_between_two_objects_turns_one_into_the_other(before in trees(), after in trees()) {
            let (before, after) = (json!({"spec": before}), json!({"spec": after}));
            prop_assert_eq!(merged(&before, &patch_between(&before, &after)), after);
        }
    }

    #[test]
    fn lists_are_patched_as_a_whole_and_lost_fields_with_null() {
        let before = json!({"a": {"b": [1, 2], "c": 3, "d": 4}});
        let after = json!({"a": {"b": [1], "c": 3}});
        assert_eq!(patch_between(&before, &after), json!({"a": {"b": [1], "d": null}}));
    }
}
