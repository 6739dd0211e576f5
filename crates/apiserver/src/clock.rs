//! Time and identity, passed in so that whoever embeds the server decides what they are.

use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the time that objects are stamped with.
///
/// Timers (watch time-outs, bookmarks, grace periods) follow tokio's clock, which tests can pause.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and moves with tokio's, which can be paused and advanced.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: Timestamp,
    zero: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that shows `start` now. Needs a tokio runtime if its time is to be paused.
    pub fn starting_at(start: Timestamp) -> Self {
        TokioClock { start, zero: tokio::time::Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let passed = jiff::SignedDuration::try_from(self.zero.elapsed()).unwrap_or_default();
        self.start.checked_add(passed).unwrap_or(self.start)
    }
}

/// Gives out uids and the random suffixes of generated names.
pub trait Identities: Send + Sync + 'static {
    /// A fresh random number. All uids and suffixes are made from these.
    fn next(&self) -> u64;
}

/// Uids that nobody can foresee.
#[derive(Debug, Default)]
pub struct RandomIdentities;

impl Identities for RandomIdentities {
    fn next(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        // Each RandomState is keyed from the system's randomness.
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }
}

/// The same uids in the same order for the same seed.
#[derive(Debug)]
pub struct SeededIdentities(AtomicU64);

impl SeededIdentities {
    /// Identities from a seed.
    pub fn new(seed: u64) -> Self {
        SeededIdentities(AtomicU64::new(seed))
    }
}

impl Identities for SeededIdentities {
    // SplitMix64: a full-period sequence, each step independent of the order of threads' other work.
    fn next(&self) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A version 4 UUID from two random numbers.
pub(crate) fn uuid(identities: &dyn Identities) -> String {
    let (high, low) = (identities.next(), identities.next());
    let version = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
    let variant = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        version >> 32,
        (version >> 16) & 0xffff,
        version & 0xffff,
        variant >> 48,
        variant & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_version_four_and_seeded_ones_repeat() {
        let (one, two) = (SeededIdentities::new(7), SeededIdentities::new(7));
        let id = uuid(&one);
        assert_eq!(id, uuid(&two));
        assert_ne!(id, uuid(&one));
        assert_eq!(&id[14..15], "4");
        assert_eq!(id.len(), 36);
    }
}
