//! The live object with the applied configuration laid over it.

use super::node::{Form, Node};
use super::path::Element;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Lays `applied` over `live`, both valid. What only one of them has is kept.
pub(super) fn merge(live: &Value, applied: &Value, node: Node<'_>) -> Value {
    match node.form(applied) {
        Form::Scalar => applied.clone(),
        Form::List => {
            let live = live.as_array().map_or(&[][..], Vec::as_slice);
            let over = applied.as_array().map_or(&[][..], Vec::as_slice);
            if node.is_atomic_list() || (live.is_empty() && over.is_empty()) {
                return applied.clone();
            }
            Value::Array(merge_items(live, over, node))
        }
        Form::Map => {
            let Some(live) = live.as_object().filter(|map| !map.is_empty() && !node.is_atomic_map()) else {
                return applied.clone();
            };
            match applied.as_object() {
                Some(over) => Value::Object(merge_fields(live, over, node)),
                None => Value::Object(live.clone()),
            }
        }
    }
}

fn merge_fields(live: &Map<String, Value>, over: &Map<String, Value>, node: Node<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in live {
        let merged = match over.get(key) {
            // Valid objects have no fields that may not be there.
            Some(over) => merge(value, over, node.field(key).unwrap_or(Node::Deduced)),
            None => value.clone(),
        };
        out.insert(key.clone(), merged);
    }
    for (key, value) in over {
        if !live.contains_key(key) {
            out.insert(key.clone(), value.clone());
        }
    }
    out
}

/// An item of the applied list, and what is live under the same key.
struct Over<'a> {
    item: &'a Value,
    live: Live<'a>,
    merged: bool,
}

enum Live<'a> {
    None,
    One(&'a Value),
    /// The same key several times: the applied item replaces them all.
    Several,
}

impl Over<'_> {
    const fn is_shared(&self) -> bool {
        !matches!(self.live, Live::None)
    }

    fn merge(&mut self, item: Node<'_>) -> Value {
        self.merged = true;
        match self.live {
            Live::One(live) => merge(live, self.item, item),
            Live::None | Live::Several => self.item.clone(),
        }
    }
}

/// Items that both have stand in the applied order; those that only the live list has keep their place
/// before the shared item that followed them.
fn merge_items(live: &[Value], over: &[Value], node: Node<'_>) -> Vec<Value> {
    let mut places: BTreeMap<Element, usize> = BTreeMap::new();
    let mut overs: Vec<Over<'_>> = Vec::with_capacity(over.len());
    for item in over {
        if let Ok(element) = node.element(item) {
            places.insert(element, overs.len());
            overs.push(Over { item, live: Live::None, merged: false });
        }
    }
    let lives: Vec<(&Value, Option<usize>)> =
        live.iter().filter_map(|item| Some((item, places.get(&node.element(item).ok()?).copied()))).collect();
    for (item, place) in &lives {
        if let Some(over) = place.and_then(|place| overs.get_mut(place)) {
            over.live = if over.is_shared() { Live::Several } else { Live::One(item) };
        }
    }
    interleave(&lives, &mut overs, node.item())
}

fn interleave(lives: &[(&Value, Option<usize>)], overs: &mut [Over<'_>], item: Node<'_>) -> Vec<Value> {
    let mut out = Vec::with_capacity(lives.len().max(overs.len()));
    let mut lives = lives.iter().peekable();
    let (mut next, mut shared) = (0, 0);
    loop {
        while shared < overs.len() && (shared < next || !overs[shared].is_shared()) {
            shared += 1;
        }
        match lives.peek() {
            Some((live, None)) => {
                out.push((*live).clone());
                lives.next();
                continue;
            }
            Some((_, Some(place))) if *place == next => {
                lives.next();
            }
            Some((_, Some(place))) => {
                // Another shared item comes first; this one will stand where the applied list has it.
                let waits = shared < overs.len() && shared != *place;
                if waits || overs[*place].merged {
                    lives.next();
                }
                if waits {
                    continue;
                }
            }
            None => {}
        }
        match overs.get_mut(next) {
            Some(over) => out.push(over.merge(item)),
            None if lives.peek().is_none() => return out,
            // Every applied item is merged by now, so each turn takes a live one.
            None => continue,
        }
        next += 1;
    }
}
