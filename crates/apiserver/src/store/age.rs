//! How long ago a revision was the newest. A list can be continued, or asked for as of a revision, for a while and no longer:
//! kube-apiserver has etcd forget what is older than five minutes, and clients rely on being told so.
//!
//! Nothing is timed. Each write notes which revision it found, and a question compares that with the time it is asked.

use super::Revision;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// For how long a revision that is no longer the newest can be listed.
pub(super) const LISTED_MAX: Duration = Duration::from_mins(5);
/// Notes are taken at most this often, which bounds their number.
const NOTED_EVERY: Duration = Duration::from_secs(5);

/// Which revision was the newest at which times.
#[derive(Debug, Default)]
pub(super) struct Ages(VecDeque<(Instant, Revision)>);

impl Ages {
    /// Notes that until now this was the newest revision.
    pub(super) fn note(&mut self, now: Instant, newest: Revision) {
        if self.0.back().is_some_and(|(last, _)| now.saturating_duration_since(*last) < NOTED_EVERY) {
            return;
        }
        // Of those that are old enough, the newest says it all.
        while self.0.get(1).is_some_and(|(at, _)| is_old(*at, now)) {
            self.0.pop_front();
        }
        self.0.push_back((now, newest));
    }

    /// The first revision that can still be listed. Zero if all can.
    pub(super) fn oldest(&self, now: Instant) -> Revision {
        let old = self.0.iter().take_while(|(at, _)| is_old(*at, now));
        old.last().map_or(0, |(_, revision)| revision + 1)
    }
}

fn is_old(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) >= LISTED_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_long_ago_has_expired() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut ages = Ages::default();
        assert_eq!(ages.oldest(at(1000)), 0);
        ages.note(at(0), 10);
        ages.note(at(100), 11);
        // Revision 10 was the newest until second 0, and 11 until second 100.
        assert_eq!(ages.oldest(at(299)), 0);
        assert_eq!(ages.oldest(at(300)), 11);
        assert_eq!(ages.oldest(at(399)), 11);
        assert_eq!(ages.oldest(at(400)), 12);
    }

    #[test]
    fn few_notes_are_kept_however_much_is_written() {
        let start = Instant::now();
        let mut ages = Ages::default();
        for write in 0..1_000_000_u64 {
            ages.note(start + Duration::from_millis(write), write);
        }
        assert!(ages.0.len() < 64, "{}", ages.0.len());
        let now = start + Duration::from_secs(1000);
        let oldest = ages.oldest(now);
        assert!((695_000..=700_001).contains(&oldest), "{oldest}");
    }
}
