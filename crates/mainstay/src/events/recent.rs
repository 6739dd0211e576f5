//! A map that keeps what was used last.

use std::collections::BTreeMap;
use std::sync::Arc;

/// At most so many values. When one more comes, the one that was not used for longest goes.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    capacity: usize,
    turn: u64,
    values: BTreeMap<Arc<K>, (u64, V)>,
    /// By the turn of their last use; the same keys as `values` has, each once.
    turns: BTreeMap<u64, Arc<K>>,
}

impl<K: Ord, V> Recent<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, turn: 0, values: BTreeMap::new(), turns: BTreeMap::new() }
    }

    /// The value of a key, which is now the one used last.
    pub(super) fn touch(&mut self, key: &K) -> Option<&mut V> {
        let (turn, value) = self.values.get_mut(key)?;
        if let Some(key) = self.turns.remove(turn) {
            self.turn += 1;
            *turn = self.turn;
            self.turns.insert(self.turn, key);
        }
        Some(value)
    }

    /// Puts a value in, as the one used last.
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        while self.values.len() >= self.capacity.max(1) {
            self.forget_oldest();
        }
        self.turn += 1;
        let key = Arc::new(key);
        self.turns.insert(self.turn, key.clone());
        self.values.insert(key, (self.turn, value));
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some((turn, _)) = self.values.remove(key) {
            self.turns.remove(&turn);
        }
    }

    /// In the order of keys.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.values.iter_mut().map(|(key, (_, value))| (&**key, value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &V> {
        self.values.values().map(|(_, value)| value)
    }

    /// Forgets values from the oldest on, as long as they are to go.
    pub(super) fn forget_while(&mut self, mut goes: impl FnMut(&V) -> bool) {
        while let Some((_, key)) = self.turns.first_key_value() {
            match self.values.get(key) {
                Some((_, value)) if !goes(value) => return,
                _ => self.forget_oldest(),
            }
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.turns.pop_first() {
            self.values.remove(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.values.len(), self.turns.len());
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_not_used_for_longest_goes() {
        let mut recent = Recent::new(2);
        recent.insert("a", 1);
        recent.insert("b", 2);
        assert_eq!(recent.touch(&"a"), Some(&mut 1));
        recent.insert("c", 3);
        assert_eq!(recent.touch(&"a"), Some(&mut 1));
        assert_eq!(recent.len(), 2);
        assert_eq!(recent.touch(&"b"), None);
        recent.insert("c", 4);
        assert_eq!(recent.touch(&"c"), Some(&mut 4));
        assert_eq!(recent.len(), 2);
        recent.remove(&"a");
        assert_eq!(recent.touch(&"a"), None);
        assert_eq!(recent.len(), 1);
    }

    #[test]
    fn forgetting_stops_at_the_first_that_stays() {
        let mut recent = Recent::new(9);
        for (key, value) in ["a", "b", "c", "d"].into_iter().zip([1, 2, 9, 1]) {
            recent.insert(key, value);
        }
        recent.forget_while(|value| *value < 5);
        assert_eq!(recent.iter().copied().collect::<Vec<_>>(), [9, 1]);
    }
}
