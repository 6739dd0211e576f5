//! Merging and ordering lists.

use super::complaints::{no_merge_key, unexpected, unknown_directive, wrong_type};
use super::{
    DIRECTIVE, Object, SET_ORDER, Shape, Strategy, directed_field, merge_object, without_directives,
};
use crate::patch::order::{Identity, Positions, arrange};
use crate::patch::{PatchError, go_print};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Carries out every `$setElementOrder/<field>`, which also merges that field's list.
pub(super) fn apply_orders(
    target: &mut Object,
    patch: &mut Object,
    shape: Shape<'_>,
) -> Result<(), PatchError> {
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in orders {
        let Some(order) = patch.remove(&key) else { continue };
        let Value::Array(order) = order else {
            return Err(wrong_type("[]interface {}", &order));
        };
        let field = directed_field(&key, SET_ORDER)?;
        let (current, wanted) = (take_list(target, field)?, take_list(patch, field)?);
        let (field_shape, strategy) = shape.field(field)?;
        check_order(wanted.as_deref().unwrap_or_default(), &order, strategy.merge_key())?;
        let both = (current.as_deref().unwrap_or_default(), wanted.as_deref().unwrap_or_default());
        let element = element_type(both.0, both.1);
        let identity = match strategy.merge_key() {
            Some(key) if element == Ok(Element::Object) => Identity::Field(key),
            _ => Identity::Scalar,
        };
        let server_order = Positions::of(both.0, identity);
        let merged = match (current, wanted) {
            (None, None) => continue,
            (Some(current), None) => current,
            (None, Some(wanted)) => wanted.into_iter().filter_map(without_directives).collect(),
            (Some(current), Some(wanted)) => {
                merge_list(current, wanted, field_shape.items(), strategy, false)?
            }
        };
        if let Some(key) = strategy.merge_key() {
            check_places(&merged, &order, key)?;
        }
        element?;
        if let Identity::Field(key) = identity {
            require_key(&order, key)?;
        }
        let merged = arrange(merged, &Positions::of(&order, identity), &server_order);
        target.insert(field.to_owned(), Value::Array(merged));
    }
    Ok(())
}

fn take_list(object: &mut Object, field: &str) -> Result<Option<Vec<Value>>, PatchError> {
    match object.remove(field) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type("[]interface {}", &other)),
    }
}

/// The search for an item's place stumbles over what is no object, but only if it gets there.
fn check_places(items: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    require_key(items, key)?;
    let Some(stray) = order.iter().position(|item| !item.is_object()) else {
        return Ok(());
    };
    let before = Positions::of(&order[..stray], Identity::Field(key));
    if items.iter().any(|item| before.get(item).is_none()) {
        return Err(unexpected(format!("value for key {stray} is not a map")));
    }
    Ok(())
}

/// The patch's items must appear in the order list, in that order; deleted ones aside.
fn check_order(items: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut remaining = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::Object(map) if map.get(DIRECTIVE).is_some_and(|directive| directive == "delete") => {}
            Value::Object(_) => remaining.push(item),
            _ if merge_key.is_some() => return Err(wrong_type("map[string]interface {}", item)),
            _ => remaining.push(item),
        }
    }
    let mut wanted = order.iter().peekable();
    for item in remaining {
        let directed = item.get(DIRECTIVE).is_some();
        // An item with a directive needs no place, unless the places have run out.
        let found = if directed { wanted.peek().is_some() } else { place_of(item, &mut wanted, merge_key)? };
        if !found {
            let print = |list: &[Value]| go_print(&Value::Array(list.to_vec()));
            return Err(unexpected(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                print(items),
                print(order)
            )));
        }
    }
    Ok(())
}

/// Advances to behind the place of an item.
fn place_of<'a>(
    item: &Value,
    wanted: &mut impl Iterator<Item = &'a Value>,
    merge_key: Option<&str>,
) -> Result<bool, PatchError> {
    for candidate in wanted {
        let same = match merge_key {
            None => candidate == item,
            Some(key) => {
                if !candidate.is_object() {
                    return Err(wrong_type("map[string]interface {}", candidate));
                }
                require_key(std::slice::from_ref(item), key)?;
                require_key(std::slice::from_ref(candidate), key)?;
                candidate.get(key) == item.get(key)
            }
        };
        if same {
            return Ok(true);
        }
    }
    Ok(false)
}

fn require_key(items: &[Value], key: &str) -> Result<(), PatchError> {
    match items.iter().find(|item| item.get(key).is_none()) {
        None => Ok(()),
        Some(item) if item.is_object() => Err(no_merge_key(item, key)),
        Some(item) => Err(wrong_type("map[string]interface {}", item)),
    }
}

pub(super) fn merge_list(
    mut current: Vec<Value>,
    patch: Vec<Value>,
    items: Shape<'_>,
    strategy: Strategy<'_>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if !strategy.merges() && !deletes {
        return Ok(patch);
    }
    if current.is_empty() && patch.is_empty() {
        return Ok(current);
    }
    if element_type(&current, &patch)? == Element::Object {
        let key = strategy.merge_key().ok_or_else(|| {
            unexpected(format!("cannot merge lists without merge key for {}", items.go_kind()))
        })?;
        return merge_keyed(current, patch, items, key);
    }
    let order = Positions::of(&patch, Identity::Scalar);
    if deletes {
        current.retain(|item| order.get(item).is_none());
        return Ok(current);
    }
    let server_order = Positions::of(&current, Identity::Scalar);
    let mut seen = HashSet::new();
    current.extend(patch);
    current.retain(|item| seen.insert(item.to_string()));
    Ok(arrange(current, &order, &server_order))
}

fn merge_keyed(
    mut current: Vec<Value>,
    patch: Vec<Value>,
    items: Shape<'_>,
    key: &str,
) -> Result<Vec<Value>, PatchError> {
    let (plain, replace) = carry_out_directives(&mut current, patch, key)?;
    let identity = Identity::Field(key);
    if replace {
        require_key(&plain, key)?;
        let order = Positions::of(&plain, identity);
        return Ok(arrange(plain, &Positions::of(&[], identity), &order));
    }
    let mut positions = HashMap::with_capacity(current.len());
    for (index, item) in current.iter().enumerate() {
        positions.entry(identity.of(item)).or_insert(index);
    }
    let server_order = Positions::of(&current, identity);
    let order = Positions::of(&plain, identity);
    for item in plain {
        require_key(std::slice::from_ref(&item), key)?;
        let index = *positions.entry(identity.of(&item)).or_insert(current.len());
        match (current.get_mut(index), item) {
            (Some(Value::Object(known)), Value::Object(patch)) => {
                *known = merge_object(std::mem::take(known), patch, items)?;
            }
            (_, item) => current.push(item),
        }
    }
    require_key(&current, key)?;
    Ok(arrange(current, &order, &server_order))
}

/// Deletes the items that `$patch: delete` names, and returns the items without directive and whether
/// they replace the list.
fn carry_out_directives(
    current: &mut Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, bool), PatchError> {
    let (mut plain, mut replace) = (Vec::with_capacity(patch.len()), false);
    let mut deleted = HashSet::new();
    for item in patch {
        match item.get(DIRECTIVE) {
            None => plain.push(item),
            Some(Value::String(directive)) if directive == "delete" => {
                require_key(std::slice::from_ref(&item), key)?;
                deleted.insert(Identity::Field(key).of(&item));
            }
            Some(Value::String(directive)) if directive == "replace" => replace = true,
            Some(Value::String(directive)) if directive == "merge" => {
                return Err(unexpected("merging lists cannot yet be specified in the patch"));
            }
            Some(other) => return Err(unknown_directive(other, &item)),
        }
    }
    if !deleted.is_empty() {
        current.retain(|item| item.get(key).is_none() || !deleted.contains(&Identity::Field(key).of(item)));
    }
    Ok((plain, replace))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Null,
    Bool,
    Integer,
    Float,
    String,
    Array,
    Object,
}

/// The one type that all items of both lists have.
fn element_type(current: &[Value], patch: &[Value]) -> Result<Element, PatchError> {
    let mut found = None;
    for item in current.iter().chain(patch) {
        let element = match item {
            Value::Null => Element::Null,
            Value::Bool(_) => Element::Bool,
            Value::Number(number) if number.is_f64() => Element::Float,
            Value::Number(_) => Element::Integer,
            Value::String(_) => Element::String,
            Value::Array(_) => Element::Array,
            Value::Object(_) => Element::Object,
        };
        match found {
            None if element == Element::Array => return Err(PatchError::Unprocessable),
            None => found = Some(element),
            Some(known) if known == element => {}
            Some(_) => {
                let lists = [current, patch].map(|list| go_print(&Value::Array(list.to_vec())));
                let lists = lists.join(" ");
                return Err(unexpected(format!("list element types are not identical: [{lists}]")));
            }
        }
    }
    found.ok_or_else(|| unexpected("no elements in any of the given slices"))
}
