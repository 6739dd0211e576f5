//! What a collection holds, now or as of a retained revision.

use super::object::Placed;
use super::{CollectionId, Expired, Key, Object, Revision, Store};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds as _};
use std::sync::Arc;
use tokio::time::Instant;

/// A part of a list, as of one revision.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The objects in order.
    pub items: Vec<Arc<Object>>,
    /// The revision they are all as of.
    pub revision: Revision,
    /// How many come after them.
    pub rest: usize,
}

impl Store {
    /// The objects of a namespace (or all), as of a revision (or now), that come after `after`.
    pub(crate) fn list(
        &self,
        id: &CollectionId,
        namespace: Option<&str>,
        at: Option<Revision>,
        after: Option<&Key>,
    ) -> Result<Listing, Expired> {
        self.page(id, namespace, at, after, usize::MAX)
    }

    /// The first `limit` of those.
    pub(crate) fn page(
        &self,
        id: &CollectionId,
        namespace: Option<&str>,
        at: Option<Revision>,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Listing, Expired> {
        let state = self.read();
        let revision = at.unwrap_or(state.revision);
        let oldest = state.compacted.max(state.ages.oldest(Instant::now())).min(state.revision);
        if revision < oldest {
            return Err(Expired { oldest });
        }
        let Some(collection) = state.collections.get(id) else {
            return Ok(Listing { items: Vec::new(), revision, rest: 0 });
        };
        // A place in another namespace is before or after everything.
        if let (Some(after), Some(namespace)) = (after, namespace)
            && *after.namespace != *namespace
        {
            return Ok(Listing { items: Vec::new(), revision, rest: 0 });
        }
        let start = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(ns)) => Bound::Included(Key::new(ns, "")),
            (None, None) => Bound::Unbounded,
        };
        // No namespace is in order between another and that one with a zero behind it.
        let end = namespace.map_or(Bound::Unbounded, |ns| Bound::Excluded(Key::new(&format!("{ns}\0"), "")));
        let newest = collection.objects.range::<Key, _>((start.as_ref(), end.as_ref()));
        let mut newest = newest.map(|Placed(object)| object);
        let changed = collection.position_after(revision);
        if changed == collection.events.len() {
            let items = newest.by_ref().take(limit).cloned().collect();
            return Ok(Listing { items, revision, rest: newest.count() });
        }
        // What each key changed since then held at that time.
        let mut past: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        for event in collection.events.range(changed..) {
            let key = &event.object.key;
            if (start.as_ref(), end.as_ref()).contains(key) {
                past.entry(key).or_insert(event.previous.as_ref());
            }
        }
        let mut then = merge(newest, past);
        let items = then.by_ref().take(limit).cloned().collect();
        Ok(Listing { items, revision, rest: then.count() })
    }
}

/// The objects of `newest`, with those of `past` in the place of theirs. Both are in order.
fn merge<'a>(
    newest: impl Iterator<Item = &'a Arc<Object>>,
    past: BTreeMap<&'a Key, Option<&'a Arc<Object>>>,
) -> impl Iterator<Item = &'a Arc<Object>> {
    let (mut newest, mut past) = (newest.peekable(), past.into_iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let Some((key, _)) = past.peek() else { return newest.next() };
            match newest.peek() {
                Some(object) if object.key < **key => return newest.next(),
                Some(object) if object.key == **key => drop(newest.next()),
                _ => {
                    if let Some((_, Some(object))) = past.next() {
                        return Some(object);
                    }
                }
            }
        }
    })
}
