//! Which objects are being written, and the changes of them that are kept back meanwhile. A unit test compiles this a second time, with
//! locks whose scheduling is controlled.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::sync::{Mutex, MutexGuard};

/// The objects of a kind that are being written, with the changes that are kept back.
#[derive(Debug)]
pub(super) struct InFlight<K, C>(Mutex<BTreeMap<K, Flight<C>>>);

#[derive(Debug)]
struct Flight<C> {
    writers: usize,
    withheld: Vec<C>,
}

impl<K, C> Default for InFlight<K, C> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord + Clone, C> InFlight<K, C> {
    fn flights(&self) -> MutexGuard<'_, BTreeMap<K, Flight<C>>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write of an object begins.
    pub(super) fn begin(&self, key: &K) {
        let mut flights = self.flights();
        let flight =
            flights.entry(key.clone()).or_insert_with(|| Flight { writers: 0, withheld: Vec::new() });
        flight.writers += 1;
    }

    /// Keeps back a change of an object that is being written; gives it back if none is.
    pub(super) fn withhold(&self, key: &K, change: C) -> Option<C> {
        match self.flights().get_mut(key) {
            Some(flight) => {
                flight.withheld.push(change);
                None
            }
            None => Some(change),
        }
    }

    /// Takes the change that a write has made out of those that are kept back.
    pub(super) fn claim(&self, key: &K, is_own: impl Fn(&C) -> bool) -> Option<C> {
        let mut flights = self.flights();
        let withheld = &mut flights.get_mut(key)?.withheld;
        let place = withheld.iter().position(is_own)?;
        Some(withheld.remove(place))
    }

    /// A write has ended. Returns what is to be told now.
    pub(super) fn end(&self, key: &K) -> Vec<C> {
        let mut flights = self.flights();
        let Some(flight) = flights.get_mut(key) else { return Vec::new() };
        flight.writers -= 1;
        if flight.writers > 0 {
            return Vec::new();
        }
        flights.remove(key).map(|flight| flight.withheld).unwrap_or_default()
    }
}
