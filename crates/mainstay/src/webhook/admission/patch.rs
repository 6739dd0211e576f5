//! From what a mutating handler made of an object to the patch that the API server applies.
//!
//! A typed handler sees the object through its type. Fields that the type does not know are not its business and stay as
//! they are; fields that the type writes out of its own accord (defaults, nulls) are not changes. So what counts is the
//! difference between the type's two renderings, carried over to the object that was sent.

use json_patch::Patch;
use serde_json::{Map, Value};

/// The patch that takes `sent` to `sent` with the changes from `before` to `after`; `None` if nothing changes.
pub(super) fn plan_patch(sent: &Value, before: &Value, after: Value) -> Option<Patch> {
    let wanted = carry_over(sent, before, after);
    let patch = json_patch::diff(sent, &wanted);
    (!patch.0.is_empty()).then_some(patch)
}

/// `sent` with the changes from `before` to `after`.
fn carry_over(sent: &Value, before: &Value, after: Value) -> Value {
    if *before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            Value::Object(carry_over_fields(sent, before, after))
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after)) if sent.len() == before.len() => {
            Value::Array(carry_over_elements(sent, before, after))
        }
        (_, _, after) => after,
    }
}

fn carry_over_fields(
    sent: &Map<String, Value>,
    before: &Map<String, Value>,
    after: Map<String, Value>,
) -> Map<String, Value> {
    let kept = sent.iter().filter(|(name, _)| !before.contains_key(*name) && !after.contains_key(*name));
    let mut fields: Map<_, _> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in after {
        match (sent.get(&name), before.get(&name)) {
            // The type's own accord: nobody asked for it.
            (None, Some(before)) if *before == value => {}
            (Some(sent), Some(before)) => {
                let value = carry_over(sent, before, value);
                fields.insert(name, value);
            }
            _ => {
                fields.insert(name, value);
            }
        }
    }
    fields
}

/// Elements that are equal at the start and at the end are the same ones. What is between them is taken in pairs, or, if
/// there are not as many after as before, as it is.
fn carry_over_elements(sent: &[Value], before: &[Value], mut after: Vec<Value>) -> Vec<Value> {
    let shorter = before.len().min(after.len());
    let start = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let ends = before.iter().rev().zip(after.iter().rev());
    let end = ends.take_while(|(before, after)| before == after).count().min(shorter - start);
    let middle: Vec<_> = after.drain(start..after.len() - end).collect();
    let of_before = start..before.len() - end;
    let pairwise = middle.len() == of_before.len();
    let mut elements = sent[..start].to_vec();
    elements.extend(middle.into_iter().zip(of_before.start..).map(|(value, at)| {
        if pairwise && same_name(&before[at], &value) {
            carry_over(&sent[at], &before[at], value)
        } else {
            value
        }
    }));
    elements.extend_from_slice(&sent[of_before.end..]);
    elements
}

/// Whether an element may be a changed form of another: one with another `name` is another one.
fn same_name(before: &Value, after: &Value) -> bool {
    before.get("name") == after.get("name")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn patched(sent: &Value, before: &Value, after: Value) -> Value {
        let mut object = sent.clone();
        if let Some(patch) = plan_patch(sent, before, after) {
            json_patch::patch(&mut object, &patch).unwrap();
        }
        object
    }

    #[test]
    fn fields_that_the_type_does_not_know_stay() {
        let sent = json!({"spec": {"image": "a", "future": 1}, "other": true});
        let before = json!({"spec": {"image": "a"}});
        let after = json!({"spec": {"image": "b"}});
        assert_eq!(
            patched(&sent, &before, after),
            json!({"spec": {"image": "b", "future": 1}, "other": true})
        );
    }

    #[test]
    fn what_a_type_writes_of_its_own_accord_is_no_change() {
        let sent = json!({"spec": {}});
        let before = json!({"spec": {"replicas": 1, "status": null}});
        assert_eq!(plan_patch(&sent, &before, before.clone()), None);
        let after = json!({"spec": {"replicas": 2, "status": null}});
        assert_eq!(patched(&sent, &before, after), json!({"spec": {"replicas": 2}}));
    }

    #[test]
    fn a_removed_field_is_removed() {
        let sent = json!({"a": 1, "b": 2, "c": 3});
        assert_eq!(patched(&sent, &json!({"a": 1, "b": 2}), json!({"b": 2})), json!({"b": 2, "c": 3}));
    }

    #[test]
    fn list_elements_keep_unknown_fields_when_others_come_before_or_after() {
        let sent = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}]);
        let before = json!([{"name": "a"}, {"name": "b"}]);
        let after = json!([{"name": "0"}, {"name": "a"}, {"name": "b"}]);
        assert_eq!(
            patched(&sent, &before, after),
            json!([{"name": "0"}, {"name": "a", "x": 1}, {"name": "b", "x": 2}])
        );
        let after = json!([{"name": "a", "image": "i"}, {"name": "b"}]);
        assert_eq!(
            patched(&sent, &before, after),
            json!([{"name": "a", "image": "i", "x": 1}, {"name": "b", "x": 2}])
        );
        let after = json!([{"name": "c"}, {"name": "b"}]);
        assert_eq!(patched(&sent, &before, after), json!([{"name": "c"}, {"name": "b", "x": 2}]));
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[a~/]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab~/]{1,2}|name", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_type_that_knows_everything_gets_exactly_what_it_made(sent in tree(), after in tree()) {
            prop_assert_eq!(patched(&sent, &sent, after.clone()), after);
        }

        #[test]
        fn a_handler_that_changes_nothing_patches_nothing(sent in tree(), seen in tree()) {
            prop_assert_eq!(plan_patch(&sent, &seen, seen.clone()), None);
        }

        #[test]
        fn patches_apply_whatever_the_type_saw(sent in tree(), before in tree(), after in tree()) {
            patched(&sent, &before, after);
        }
    }
}
