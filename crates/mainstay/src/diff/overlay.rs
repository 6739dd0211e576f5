//! Changes, made to an object in memory.

use serde_json::{Map, Value};

use super::canonical::same;
use super::change::Change;
use super::compare::same_item;
use super::lists::{Rule, Rules};
use super::path::{Step, item_like};

/// A copy of an object with these changes made: what the server will have when it has taken them over.
///
/// What is on the way to a field and isn't there, or isn't an object or a list, is made.
#[must_use]
pub fn overlay(object: &Value, changes: &[Change], rules: &Rules) -> Value {
    let mut object = object.clone();
    for Change { path, to, .. } in changes {
        put(&mut object, path.steps(), to.as_ref(), rules.root());
    }
    object
}

/// Puts a value at the end of the steps, or takes away what is there.
fn put(target: &mut Value, steps: &[Step], to: Option<&Value>, rule: Rule<'_>) {
    let Some((step, rest)) = steps.split_first() else {
        *target = to.cloned().unwrap_or_default();
        return;
    };
    match step {
        Step::Field(name) => {
            let Some(object) = as_object(target, to.is_some()) else { return };
            match (object.get_mut(&**name), to) {
                (Some(_), None) if rest.is_empty() => {
                    object.remove(&**name);
                }
                (Some(field), _) => put(field, rest, to, rule.field(name)),
                (None, None) => {}
                (None, Some(_)) => {
                    put(object.entry(&**name).or_insert(Value::Null), rest, to, rule.field(name));
                }
            }
        }
        Step::Item(keys) => {
            let Some(list) = as_list(target, to.is_some()) else { return };
            let like = item_like(keys);
            let keys = rule.keys(keys.iter().map(|(name, _)| &**name));
            put_into(list, rest, to, rule.item(), like.clone(), |item| same_item(&keys, item, &like));
        }
        Step::Member(value) => {
            let Some(list) = as_list(target, to.is_some()) else { return };
            let value = value.to_value();
            put_into(list, rest, to, rule.item(), value.clone(), |item| same(item, &value));
        }
        Step::Index(index) => {
            let Some(list) = as_list(target, to.is_some()) else { return };
            if rest.is_empty() && to.is_none() {
                if *index < list.len() {
                    list.remove(*index);
                }
            } else if let Some(item) = list.get_mut(*index) {
                put(item, rest, to, rule.item());
            } else if to.is_some() {
                list.push(Value::Null);
                list.last_mut().into_iter().for_each(|item| put(item, rest, to, rule.item()));
            }
        }
    }
}

/// Goes on in the item that `is_it`, which is added if it isn't there. At the end of the path it becomes the
/// only one.
fn put_into(
    list: &mut Vec<Value>,
    rest: &[Step],
    to: Option<&Value>,
    rule: Rule<'_>,
    new: Value,
    is_it: impl Fn(&Value) -> bool,
) {
    if rest.is_empty() {
        let first = list.iter().position(&is_it);
        let mut position = 0;
        list.retain(|item| {
            position += 1;
            (to.is_some() && first == Some(position - 1)) || !is_it(item)
        });
        match (to, first) {
            (None, _) => {}
            (Some(to), None) => list.push(to.clone()),
            (Some(to), Some(first)) => list[first] = to.clone(),
        }
        return;
    }
    match (list.iter_mut().find(|item| is_it(item)), to) {
        (Some(item), _) => put(item, rest, to, rule),
        (None, None) => {}
        (None, Some(_)) => {
            list.push(new);
            list.last_mut().into_iter().for_each(|item| put(item, rest, to, rule));
        }
    }
}

fn as_object(value: &mut Value, make: bool) -> Option<&mut Map<String, Value>> {
    if make && !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

fn as_list(value: &mut Value, make: bool) -> Option<&mut Vec<Value>> {
    if make && !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut()
}
