//! Why a key waits: the pushes that caused it, in a list that stays small.

use tokio::time::Instant;

use super::Priority;

/// How many pushes are listed. A key that was pushed more often counts the others.
const LISTED_MAX: usize = 4;

/// The pushes that wait to be answered by the next run of a key.
///
/// The most urgent ones are listed, the earliest first among equals, each distinct one once. The others are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggers<T> {
    listed: Vec<(Priority, T)>,
    unlisted: u32,
    since: Option<Instant>,
}

impl<T> Default for Triggers<T> {
    fn default() -> Self {
        Self { listed: Vec::new(), unlisted: 0, since: None }
    }
}

impl<T> Triggers<T> {
    /// The listed ones, the most urgent first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.listed.iter().map(|(_, trigger)| trigger)
    }

    /// The most urgent one, the earliest of them.
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    /// How many pushes are not listed, because the list was full or had the same trigger already.
    pub fn unlisted(&self) -> u32 {
        self.unlisted
    }

    /// When the first push came.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Whether nobody pushed: the key comes because a time of its own has come.
    pub fn is_empty(&self) -> bool {
        self.since.is_none()
    }
}

impl<T: PartialEq> Triggers<T> {
    pub(super) fn add(&mut self, priority: Priority, trigger: T, now: Instant) {
        self.since.get_or_insert(now);
        let place = self.listed.partition_point(|(listed, _)| *listed <= priority);
        if place == LISTED_MAX || self.listed[..place].iter().any(|(_, listed)| *listed == trigger) {
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        // Nearly every key has one trigger: no room for more is taken before there are more.
        self.listed.reserve_exact(1);
        self.listed.insert(place, (priority, trigger));
        let repeated = (place + 1..self.listed.len()).find(|at| self.listed[*at].1 == self.listed[place].1);
        if let Some(at) = repeated {
            self.listed.remove(at);
            self.unlisted = self.unlisted.saturating_add(1);
        } else if self.listed.len() > LISTED_MAX {
            self.listed.truncate(LISTED_MAX);
            self.unlisted = self.unlisted.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(pushes: &[(Priority, &'static str)]) -> (Vec<&'static str>, u32) {
        let mut triggers = Triggers::default();
        for (priority, trigger) in pushes {
            triggers.add(*priority, *trigger, Instant::now());
        }
        (triggers.iter().copied().collect(), triggers.unlisted())
    }

    #[test]
    fn the_most_urgent_triggers_are_listed_and_the_others_counted() {
        use Priority::{Low, Normal, Now};
        let pushes = [
            (Low, "resync"),
            (Normal, "pod a"),
            (Normal, "pod b"),
            (Normal, "pod c"),
            (Now, "spec"),
            (Low, "start"),
        ];
        assert_eq!(pushed(&pushes), (vec!["spec", "pod a", "pod b", "pod c"], 2));
    }

    #[test]
    fn the_same_trigger_is_listed_once() {
        use Priority::{Low, Normal};
        assert_eq!(pushed(&[(Normal, "pod"), (Normal, "pod"), (Low, "pod")]), (vec!["pod"], 2));
        assert_eq!(pushed(&[(Low, "pod"), (Low, "resync"), (Normal, "pod")]), (vec!["pod", "resync"], 1));
    }

    #[test]
    fn the_first_push_is_timed() {
        let start = Instant::now();
        let mut triggers = Triggers::default();
        assert_eq!(triggers.since(), None);
        triggers.add(Priority::Low, "resync", start);
        triggers.add(Priority::Now, "spec", start + std::time::Duration::from_secs(1));
        assert_eq!(triggers.since(), Some(start));
    }
}
