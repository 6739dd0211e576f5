//! What of a desired object a live one does not have.
//!
//! Only fields that are desired are looked at: what others added is theirs. Nothing is allocated where
//! nothing differs, because this runs for every child in every sync; only a long list in another order needs an
//! index, and a rewriting that was learned its path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::canonical::{named, present, same, same_fields, without_nulls};
use super::change::Change;
use super::learned::Learned;
use super::lists::{ListRule, MapKey, Rule, Rules};
use super::path::{Literal, Trail};
use super::quantity::same_quantity;

/// How many pairs of items are tried before the items of a list are put into an index.
const PAIRS_MAX: usize = 256;

/// What a live object must change to be as desired. Empty: it is as desired.
///
/// - Objects are compared field by field, and so are list items with a key; fields and items that only the
///   live object has are somebody else's. The order of such items doesn't matter, nor that of a set.
/// - Lists and maps that the schema calls atomic are compared as a whole.
/// - Numbers and quantities are compared by value. A desired null is a field that isn't desired.
/// - Of the object's own metadata only what an author can decide is looked at: name, namespace, labels,
///   annotations, owners and finalizers.
/// - `apiVersion` and `kind` say which object it is, and objects from a list don't carry them: they are not
///   compared.
/// - What `learned` knows to be the server's own rewriting is no difference.
pub fn compare(desired: &Value, live: &Value, rules: &Rules, learned: &Learned) -> Vec<Change> {
    let mut walk = Walk { learned, changes: Vec::new() };
    walk.value(desired, Some(live), rules.root(), &Trail::ROOT);
    walk.changes
}

struct Walk<'l> {
    learned: &'l Learned,
    changes: Vec<Change>,
}

impl Walk<'_> {
    fn value(&mut self, desired: &Value, live: Option<&Value>, rule: Rule<'_>, trail: &Trail<'_>) {
        match (desired, present(live)) {
            (Value::Null, _) => {}
            (Value::Object(wanted), Some(Value::Object(found))) if !rule.is_atomic_map() => {
                self.object(wanted, found, rule, trail);
            }
            (Value::Array(wanted), None) if wanted.is_empty() && *rule.list(wanted) != ListRule::Atomic => {
                // An empty list names no items, and so nothing: servers don't even record who applied it.
            }
            (Value::Array(wanted), Some(Value::Array(found))) if self.list(wanted, found, rule, trail) => {}
            (_, Some(found)) if same_whole(desired, found, rule) => {}
            (_, found) => self.found(desired, found, trail),
        }
    }

    fn object(
        &mut self,
        desired: &Map<String, Value>,
        live: &Map<String, Value>,
        rule: Rule<'_>,
        trail: &Trail<'_>,
    ) {
        for (name, wanted) in named(desired) {
            let found = live.get(name);
            // Most fields are equal strings, numbers and bools. They need no rule.
            let leaf = !wanted.is_object() && !wanted.is_array();
            if (leaf && found == Some(wanted)) || !rule.can_be_desired(name) {
                continue;
            }
            self.value(wanted, found, rule.field(name), &trail.field(name));
        }
    }

    /// Compares a list item by item, or returns false if it must be compared as a whole.
    fn list(&mut self, desired: &[Value], live: &[Value], rule: Rule<'_>, trail: &Trail<'_>) -> bool {
        match rule.list(desired) {
            ListRule::Atomic => return false,
            ListRule::Set => self.set(desired, live, trail),
            ListRule::Map(keys) => {
                // Items of equal keys can't be told apart by a path, and what was learned is known by its
                // path.
                if !self.learned.is_empty() && has_twins(desired, keys) {
                    return false;
                }
                let before = self.changes.len();
                let aligned = desired.len() == live.len()
                    && desired.iter().zip(live).all(|(a, b)| same_item(keys, a, b));
                if aligned {
                    for (wanted, found) in desired.iter().zip(live) {
                        self.value(wanted, Some(found), rule.item(), &trail.item(keys, wanted));
                    }
                    if self.changes.len() == before {
                        return true;
                    }
                }
                if has_twins(desired, keys) {
                    self.changes.truncate(before);
                    return false;
                }
                if !aligned {
                    self.keyed(desired, &Matches::new(desired, live, keys), rule.item(), trail);
                }
            }
        }
        true
    }

    fn keyed(&mut self, desired: &[Value], live: &Matches<'_>, rule: Rule<'_>, trail: &Trail<'_>) {
        for wanted in desired {
            let trail = trail.item(live.keys, wanted);
            match live.of(wanted) {
                Found::One(found) => self.value(wanted, Some(found), rule, &trail),
                Found::None => self.found(wanted, None, &trail),
                // Somebody added an item of the same key, and it may be the one that counts.
                Found::Twins(first) => self.found(wanted, Some(first), &trail),
            }
        }
    }

    fn set(&mut self, desired: &[Value], live: &[Value], trail: &Trail<'_>) {
        let index: Option<BTreeSet<Literal>> =
            (desired.len() * live.len() > PAIRS_MAX).then(|| live.iter().map(Literal::from).collect());
        let mut missing = BTreeSet::new();
        for wanted in desired {
            let found = match &index {
                Some(index) => index.contains(&Literal::from(wanted)),
                None => live.iter().any(|found| same(wanted, found)),
            };
            if !found && missing.insert(Literal::from(wanted)) {
                self.found(wanted, None, &trail.member(wanted));
            }
        }
    }

    /// A difference was found. It is a change, unless it is the server's own rewriting.
    fn found(&mut self, desired: &Value, live: Option<&Value>, trail: &Trail<'_>) {
        let path = trail.to_path();
        if self.learned.is_empty() || !self.learned.knows_that(&path, desired, live) {
            self.changes.push(Change { path, from: live.cloned(), to: Some(without_nulls(desired)) });
        }
    }
}

/// Whether two items of a list have the same keys.
pub(super) fn same_item(keys: &[MapKey], a: &Value, b: &Value) -> bool {
    keys.iter().all(|key| same(key.of(a), key.of(b)))
}

/// The keys of an item, in an order that can be looked up.
pub(super) fn item_key(keys: &[MapKey], item: &Value) -> Vec<Literal> {
    keys.iter().map(|key| Literal::from(key.of(item))).collect()
}

/// Whether two items of a list have equal keys.
fn has_twins(items: &[Value], keys: &[MapKey]) -> bool {
    if items.len() * items.len() <= PAIRS_MAX {
        return items.iter().enumerate().any(|(position, item)| {
            items.iter().skip(position + 1).any(|other| same_item(keys, item, other))
        });
    }
    let mut seen = BTreeSet::new();
    !items.iter().all(|item| seen.insert(item_key(keys, item)))
}

/// Finds the live item of a desired one: by trying all where they are few, by an index where they are many.
struct Matches<'a> {
    live: &'a [Value],
    keys: &'a [MapKey],
    index: Option<BTreeMap<Vec<Literal>, Found<'a>>>,
}

#[derive(Clone, Copy)]
enum Found<'a> {
    None,
    One(&'a Value),
    Twins(&'a Value),
}

impl<'a> Found<'a> {
    fn and(self, another: &'a Value) -> Self {
        match self {
            Self::None => Self::One(another),
            Self::One(first) | Self::Twins(first) => Self::Twins(first),
        }
    }
}

impl<'a> Matches<'a> {
    fn new(desired: &[Value], live: &'a [Value], keys: &'a [MapKey]) -> Self {
        let index = (desired.len() * live.len() > PAIRS_MAX).then(|| {
            let mut index = BTreeMap::new();
            for item in live {
                let entry = index.entry(item_key(keys, item)).or_insert(Found::None);
                *entry = entry.and(item);
            }
            index
        });
        Self { live, keys, index }
    }

    fn of(&self, wanted: &Value) -> Found<'a> {
        match &self.index {
            Some(index) => index.get(&item_key(self.keys, wanted)).copied().unwrap_or(Found::None),
            None => (self.live.iter().filter(|found| same_item(self.keys, wanted, found)))
                .fold(Found::None, Found::and),
        }
    }
}

/// Whether two values are the same as a whole, with quantities by value.
fn same_whole(a: &Value, b: &Value, rule: Rule<'_>) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            same_fields(a, b, |name, a, b| same_whole(a, b, rule.field(name)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_whole(a, b, rule.item()))
        }
        _ => same(a, b) || (rule.is_quantity() && same_quantity(a, b)),
    }
}
