//! How many children an operator may delete. A bucket that fills slowly: a mistake that would delete everything takes
//! long enough to be noticed. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// How many deletions of children are allowed: so many at once, then so many per minute, over all parents of an operator.
///
/// Deletions beyond it are put off, not dropped. Children that Kubernetes deletes with their parent don't count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletionBudget {
    /// So many at once.
    pub burst: u32,
    /// So many per minute after that.
    pub per_minute: u32,
}

impl Default for DeletionBudget {
    fn default() -> Self {
        Self { burst: 100, per_minute: 100 }
    }
}

/// What is left of a budget.
#[derive(Debug)]
pub(crate) struct Bucket {
    budget: DeletionBudget,
    /// In deletions times a minute in milliseconds, so that nothing is lost to rounding.
    level: u128,
    filled: Option<Instant>,
}

const MINUTE_MS: u128 = 60_000;

impl Bucket {
    pub(crate) fn new(budget: DeletionBudget) -> Self {
        Self { budget, level: u128::from(budget.burst) * MINUTE_MS, filled: None }
    }

    fn fill(&mut self, now: Instant) {
        let passed = self.filled.map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
        let full = u128::from(self.budget.burst) * MINUTE_MS;
        self.level = full.min(self.level + passed.as_millis() * u128::from(self.budget.per_minute));
        self.filled = Some(self.filled.map_or(now, |then| then + Duration::from_millis(millis(passed))));
    }

    /// How many deletions may be made now.
    pub(crate) fn allowed(&mut self, now: Instant) -> usize {
        self.fill(now);
        usize::try_from(self.level / MINUTE_MS).unwrap_or(usize::MAX)
    }

    /// Takes one deletion out before it is made, so that syncs at the same time cannot spend it twice. Tells whether there
    /// was one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let allowed = self.allowed(now) > 0;
        if allowed {
            self.level -= MINUTE_MS;
        }
        allowed
    }

    /// Puts back one that was not made.
    pub(crate) fn put_back(&mut self) {
        self.level = (self.level + MINUTE_MS).min(u128::from(self.budget.burst) * MINUTE_MS);
    }

    /// When the next deletion may be made, if none may now.
    pub(crate) fn wait(&self) -> Duration {
        let missing = MINUTE_MS.saturating_sub(self.level);
        let per_minute = u128::from(self.budget.per_minute.max(1));
        Duration::from_millis(u64::try_from(missing.div_ceil(per_minute)).unwrap_or(u64::MAX))
    }
}

/// Whole milliseconds; the rest is left for the next filling.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(DeletionBudget { burst: 3, per_minute: 60 });
        assert_eq!(bucket.allowed(start), 3);
        assert!((0..3).all(|_| bucket.take(start)));
        assert_eq!(bucket.allowed(start), 0);
        assert!(!bucket.take(start));
        bucket.put_back();
        assert!(bucket.take(start));
        assert_eq!(bucket.wait(), Duration::from_secs(1));
        assert_eq!(bucket.allowed(start + Duration::from_millis(999)), 0);
        assert_eq!(bucket.allowed(start + Duration::from_secs(1)), 1);
        assert_eq!(bucket.allowed(start + Duration::from_hours(1)), 3, "it never holds more than the burst");
    }

    #[test]
    fn a_budget_of_nothing_deletes_nothing() {
        let start = Instant::now();
        let mut bucket = Bucket::new(DeletionBudget { burst: 0, per_minute: 0 });
        assert_eq!(bucket.allowed(start + Duration::from_hours(1)), 0);
    }
}
