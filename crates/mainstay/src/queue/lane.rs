//! One lane: its keys, and those of them that stand in line.

use std::collections::BTreeMap;

use super::entry::{Entry, Place};
use super::{Depth, LaneSettings, Priority, Timer};

#[derive(Debug)]
pub(super) struct Lane<L, K, T> {
    pub(super) name: L,
    pub(super) settings: LaneSettings,
    pub(super) paused: bool,
    /// Taken away while some of its keys were running; goes when the last of them is done.
    pub(super) removed: bool,
    pub(super) entries: BTreeMap<K, Entry<T>>,
    /// The ready keys of each priority by their tickets.
    pub(super) lines: [BTreeMap<u64, K>; Priority::COUNT],
    /// Whether the lane stands in the line of lanes of each priority.
    pub(super) in_turn: [bool; Priority::COUNT],
    pub(super) depth: Depth,
}

impl<L, K: Ord + Clone, T> Lane<L, K, T> {
    pub(super) fn new(name: L, settings: LaneSettings) -> Self {
        Self {
            name,
            settings,
            paused: false,
            removed: false,
            entries: BTreeMap::new(),
            lines: Default::default(),
            in_turn: Default::default(),
            depth: Depth::default(),
        }
    }

    /// Whether one of its keys of this priority could be taken.
    pub(super) fn can_serve(&self, priority: Priority) -> bool {
        !self.paused
            && self.depth.running < self.settings.running_max
            && !self.lines[priority.index()].is_empty()
    }

    /// Moves a key, and counts it where it is now. Its timer is not touched.
    pub(super) fn put(&mut self, key: &K, place: Place) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Place::Ready { priority, ticket, .. } = entry.place {
            self.lines[priority.index()].remove(&ticket);
        }
        if let Place::Ready { priority, ticket, .. } = place {
            self.lines[priority.index()].insert(ticket, key.clone());
        }
        if let Some(count) = count(&mut self.depth, &entry.place) {
            *count -= 1;
        }
        if let Some(count) = count(&mut self.depth, &place) {
            *count += 1;
        }
        entry.place = place;
    }

    /// Takes a key out.
    pub(super) fn remove(&mut self, key: &K) {
        self.put(key, Place::New);
        self.entries.remove(key);
    }
}

fn count<'a>(depth: &'a mut Depth, place: &Place) -> Option<&'a mut usize> {
    match place {
        Place::New => None,
        Place::Ready { priority, .. } => Some(&mut depth.ready[priority.index()]),
        Place::Waiting { why: Timer::Requeue, .. } => Some(&mut depth.delayed),
        Place::Waiting { why: Timer::Retry, .. } => Some(&mut depth.backing_off),
        Place::Waiting { why: Timer::Held, .. } => Some(&mut depth.held),
        Place::Resting => Some(&mut depth.resting),
        Place::Running { .. } => Some(&mut depth.running),
    }
}
