//! How many pods each `ReplicaSet` of a Deployment should have next. Pure: sizes in, sizes out.
//!
//! One call is one move. What follows it (pods that come and go, statuses that say so) leads to the next, until there is none.
//!
//! - While a Deployment rolls, its sets never want more pods than [`Wish::most`], and none is taken away that would leave fewer than
//!   [`Wish::least`] available.
//! - A change of the number of replicas amid a rollout is shared among the sets by their sizes, so that the rollout becomes neither
//!   bolder nor more timid by it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::limits::Wish;

/// A `ReplicaSet`, as far as sizes depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) created: Option<Timestamp>,
    /// How many pods it should have now.
    pub(super) size: i32,
    /// How many pods it says it has.
    pub(super) actual: i32,
    /// How many of them are available.
    pub(super) available: i32,
    /// How many replicas the Deployment wanted when it last decided on this set.
    pub(super) desired: Option<i32>,
    /// How many pods there might be at most then.
    pub(super) most: Option<i32>,
}

/// All sets of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sets {
    /// The one with the present template.
    pub(super) new: Option<Set>,
    /// The others.
    pub(super) old: Vec<Set>,
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Move {
    /// The new set is to be made, of this size.
    pub(super) create: Option<i32>,
    /// The sizes of those sets that were decided on. Their annotations tell of this decision, also where the size stays.
    pub(super) sizes: BTreeMap<String, i32>,
}

impl Move {
    pub(super) fn is_nothing(&self) -> bool {
        self.create.is_none() && self.sizes.is_empty()
    }

    fn of(sizes: impl IntoIterator<Item = (String, i32)>) -> Self {
        Self { create: None, sizes: sizes.into_iter().collect() }
    }
}

impl Set {
    fn is_active(&self) -> bool {
        self.size > 0
    }

    fn age(&self) -> (Option<Timestamp>, &str) {
        (self.created, &self.name)
    }

    fn resized(&self, size: i32) -> Option<(String, i32)> {
        (size != self.size).then(|| (self.name.clone(), size))
    }
}

impl Sets {
    fn all(&self) -> impl Iterator<Item = &Set> {
        self.old.iter().chain(&self.new)
    }

    fn active(&self) -> Vec<&Set> {
        self.all().filter(|set| set.is_active()).collect()
    }

    fn total(&self) -> i64 {
        self.all().map(|set| i64::from(set.size)).sum()
    }

    fn new_size(&self) -> i32 {
        self.new.as_ref().map_or(0, |new| new.size)
    }

    /// Old sets that should have pods, the oldest first.
    fn active_old(&self) -> Vec<&Set> {
        let mut old: Vec<&Set> = self.old.iter().filter(|set| set.is_active()).collect();
        old.sort_by_key(|set| set.age());
        old
    }

    /// Whether the number of replicas was changed since the last decision on a set that has pods. Sets that are replaced at once are
    /// never sized in proportion: as long as several have pods, the old ones are on their way out.
    pub(super) fn is_rescaled(&self, wish: &Wish) -> bool {
        let active = self.active();
        let rescaled = active.iter().any(|set| set.desired.is_some_and(|desired| desired != wish.replicas));
        rescaled && (wish.rolls || active.len() <= 1)
    }
}

/// The move of a Deployment that is paused, or whose number of replicas was changed. `pods` is how many pods it says it has.
pub(super) fn rescale(wish: &Wish, sets: &Sets, pods: i32) -> Move {
    let active = sets.active();
    match active[..] {
        [] => {
            let newest = sets.new.as_ref().or_else(|| sets.old.iter().max_by_key(|set| set.age()));
            Move::of(newest.and_then(|set| set.resized(wish.replicas)))
        }
        // What the set was told last is renewed even if the size is right already, or this would be done for ever.
        [only] if only.desired.is_some_and(|desired| desired != wish.replicas) => {
            Move::of([(only.name.clone(), wish.replicas)])
        }
        [only] => Move::of(only.resized(wish.replicas)),
        _ if sets.new.as_ref().is_some_and(|new| is_saturated(wish, new)) => {
            Move::of(sets.old.iter().filter_map(|set| set.resized(0)))
        }
        _ if wish.rolls => share(wish, active, pods),
        _ => Move::default(),
    }
}

/// Whether the new set is all that is needed, and knows it.
fn is_saturated(wish: &Wish, new: &Set) -> bool {
    [new.size, new.available, new.desired.unwrap_or(-1)] == [wish.replicas; 3]
}

/// Shares what is to be added or taken away among the sets in proportion to their sizes. What rounding leaves over is the largest's.
fn share(wish: &Wish, mut active: Vec<&Set>, pods: i32) -> Move {
    let allowed = if wish.replicas > 0 { wish.most() } else { 0 };
    let to_add = i64::from(allowed) - active.iter().map(|set| i64::from(set.size)).sum::<i64>();
    active.sort_by_key(|set| set.age());
    if to_add > 0 {
        active.reverse();
    }
    active.sort_by_key(|set| Reverse(set.size));
    let mut added = 0;
    let mut sizes: Vec<i64> = Vec::with_capacity(active.len());
    for set in &active {
        let left = to_add - added;
        let part = if left == 0 { 0 } else { proportion(wish, set, pods) };
        let part = if to_add > 0 { part.min(left) } else { part.max(left) };
        sizes.push(i64::from(set.size) + part);
        added += part;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    // All of them, so that each is told of what was decided.
    let told = |set: &Set| set.desired != Some(wish.replicas) || set.most != Some(wish.most());
    let sizes = sizes.into_iter().map(whole);
    let changed = active.iter().zip(sizes).filter(|(set, size)| *size != set.size || told(set));
    Move::of(changed.map(|(set, size)| (set.name.clone(), size)))
}

/// By how much a set would change if its share of all pods stayed the same.
fn proportion(wish: &Wish, set: &Set, pods: i32) -> i64 {
    if wish.replicas == 0 {
        return -i64::from(set.size);
    }
    let before = set.most.filter(|most| *most > 0).unwrap_or(pods);
    if before <= 0 {
        return 0;
    }
    let (size, most, before) = (i64::from(set.size), i64::from(wish.most()), i64::from(before));
    // Rounded to the nearest. All of these are positive and below 2^31, so nothing overflows.
    (2 * size * most + before) / (2 * before) - size
}

/// The move of a Deployment that replaces its pods a few at a time: up with the new set, or else down with the old ones.
pub(super) fn roll(wish: &Wish, sets: &Sets) -> Move {
    let (now, next) = (sets.new_size(), next_new_size(wish, sets));
    match &sets.new {
        Some(new) if next != now => Move::of(new.resized(next)),
        Some(new) => Move::of(shrink(wish, sets, next, new.available)),
        None => Move { create: Some(next), ..Move::of(shrink(wish, sets, next, 0)) },
    }
}

/// As many as are wanted, or as there is room for.
fn next_new_size(wish: &Wish, sets: &Sets) -> i32 {
    let now = sets.new_size();
    if now >= wish.replicas {
        return wish.replicas;
    }
    let room = (i64::from(wish.most()) - sets.total()).max(0);
    whole(i64::from(now) + room.min(i64::from(wish.replicas) - i64::from(now)))
}

/// Takes from the old sets, the oldest first, what can be spared: first pods that are not available anyway.
fn shrink(wish: &Wish, sets: &Sets, new_size: i32, new_available: i32) -> Vec<(String, i32)> {
    let old = sets.active_old();
    let (new_size, new_available) = (i64::from(new_size), i64::from(new_available));
    let least = i64::from(wish.least());
    let total = new_size + old.iter().map(|set| i64::from(set.size)).sum::<i64>();
    // What of the new set is not available yet must not be made up for by the old ones twice.
    let mut spare = total - least - (new_size - new_available);
    if spare <= 0 {
        return Vec::new();
    }
    let mut sizes: Vec<i64> = old.iter().map(|set| i64::from(set.size)).collect();
    for (set, size) in old.iter().zip(&mut sizes) {
        let taken = spare.min(i64::from(set.size) - i64::from(set.available)).max(0);
        *size -= taken;
        spare -= taken;
    }
    let available = new_available + old.iter().map(|set| i64::from(set.available)).sum::<i64>();
    let mut spare = (available - least).max(0);
    for size in &mut sizes {
        let taken = spare.min(*size);
        *size -= taken;
        spare -= taken;
    }
    old.iter().zip(sizes).filter_map(|(set, size)| set.resized(whole(size))).collect()
}

/// A size as specs have it. Sums are made in 64 bits, where none overflows.
fn whole(size: i64) -> i32 {
    i32::try_from(size.max(0)).unwrap_or(i32::MAX)
}

/// The move of a Deployment that replaces all of its pods at once: the new ones come when the old ones are gone, not before.
/// `old_pods` says whether there are still any.
pub(super) fn recreate(wish: &Wish, sets: &Sets, old_pods: bool) -> Move {
    let down: Vec<_> = sets.old.iter().filter_map(|set| set.resized(0)).collect();
    if !down.is_empty() {
        return Move::of(down);
    }
    if old_pods || sets.old.iter().any(|set| set.actual > 0) {
        return Move::default();
    }
    match &sets.new {
        None => Move { create: Some(wish.replicas), ..Move::default() },
        Some(new) => Move::of(new.resized(wish.replicas)),
    }
}
