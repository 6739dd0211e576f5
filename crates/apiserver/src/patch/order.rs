//! In which order a merged list ends up.
//!
//! Items that the patch names stand in the patch's order, the others in the object's, and the two are
//! merged so that an item of the object stays before those it stood before.

use serde_json::Value;
use std::collections::HashMap;

/// Tells list items apart: by a field, or by the whole scalar.
#[derive(Clone, Copy)]
pub(super) enum Identity<'a> {
    Field(&'a str),
    Scalar,
}

impl Identity<'_> {
    /// Two items are the same if this text is.
    pub(super) fn of(self, item: &Value) -> String {
        match self {
            Identity::Field(name) => item.get(name).unwrap_or(&Value::Null).to_string(),
            Identity::Scalar => item.to_string(),
        }
    }
}

/// Where each identity stands first in a list.
pub(super) struct Positions<'a> {
    identity: Identity<'a>,
    first: HashMap<String, usize>,
}

impl<'a> Positions<'a> {
    pub(super) fn of(items: &[Value], identity: Identity<'a>) -> Self {
        let mut first = HashMap::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            first.entry(identity.of(item)).or_insert(index);
        }
        Positions { identity, first }
    }

    pub(super) fn get(&self, item: &Value) -> Option<usize> {
        self.first.get(&self.identity.of(item)).copied()
    }
}

/// Orders a merged list. `patch_order` is the order the patch asks for, `server_order` the object's.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &Positions<'_>,
    server_order: &Positions<'_>,
) -> Vec<Value> {
    let (patched, others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| patch_order.get(item).is_some());
    let place = |item: Value, order: &Positions<'_>| (order.get(&item), server_order.get(&item), item);
    let mut patched: Vec<Placed> = patched.into_iter().map(|item| place(item, patch_order)).collect();
    let mut others: Vec<Placed> = others.into_iter().map(|item| place(item, server_order)).collect();
    sort(&mut patched);
    sort(&mut others);

    let mut out = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, at, item) in patched {
        while let Some((_, other_at, _)) = others.peek() {
            match (other_at, at) {
                (Some(other), Some(at)) if *other < at => out.extend(others.next().map(|(_, _, item)| item)),
                _ => break,
            }
        }
        out.push(item);
    }
    out.extend(others.map(|(_, _, item)| item));
    out
}

/// Rank in the list it is sorted by, rank in the object's list, the item.
type Placed = (Option<usize>, Option<usize>, Value);

/// Above this length Go sorts in blocks, and the order of items without a rank is nobody's promise.
const INSERTION_MAX: usize = 20;

fn sort(items: &mut [Placed]) {
    if items.len() > INSERTION_MAX || items.iter().all(|(rank, _, _)| rank.is_some()) {
        items.sort_by_key(|(rank, _, _)| *rank);
        return;
    }
    // Kubernetes' comparison calls an item without rank smaller than everything, and everything smaller
    // than it; what comes out depends on the sort being an insertion sort.
    for end in 1..items.len() {
        for at in (1..=end).rev() {
            let smaller = match (items[at].0, items[at - 1].0) {
                (Some(left), Some(right)) => left < right,
                _ => true,
            };
            if !smaller {
                break;
            }
            items.swap(at, at - 1);
        }
    }
}
