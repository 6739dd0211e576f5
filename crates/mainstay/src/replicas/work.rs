//! How much work runs for a shard, and whether it is being drained. A unit test compiles this a second time, with atomics whose scheduling is
//! controlled.

use super::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// The work for one shard.
#[derive(Debug, Default)]
pub(super) struct Work {
    draining: AtomicBool,
    running: AtomicUsize,
}

impl Work {
    /// Counts work that would like to begin, and tells whether it may. It is to be [ended](Self::end) either way.
    pub(super) fn begin(&self) -> bool {
        // Counted before it looks whether the shard is drained, and whoever drains looks for running work after having said so:
        // one of them sees the other.
        self.running.fetch_add(1, SeqCst);
        !self.draining.load(SeqCst)
    }

    /// Counts work that has ended. Tells whether somebody who drains the shard may be waiting for that.
    pub(super) fn end(&self) -> bool {
        self.running.fetch_sub(1, SeqCst) == 1 && self.draining.load(SeqCst)
    }

    /// From now on no work may begin, or may again.
    pub(super) fn drain(&self, draining: bool) {
        self.draining.store(draining, SeqCst);
    }

    /// Whether no work runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.load(SeqCst) == 0
    }
}
