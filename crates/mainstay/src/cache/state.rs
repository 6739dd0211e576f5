//! How a watch of a kind is doing, for readiness, metrics and people.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::WatchScope;
use crate::kind::Kind;

/// How the watch of a kind is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindState {
    /// Nothing has been heard yet.
    Starting,
    /// The objects are being listed.
    Listing,
    /// Every change is told as it happens.
    Live,
    /// Nothing can be heard for the moment. What is cached may be outdated.
    Stale {
        /// Since when. Connections are cut every now and then: a while is normal.
        since: Instant,
        /// What went wrong last.
        error: String,
    },
    /// There is no such kind. It is asked for again and again, and taken up when it comes.
    Missing,
    /// A permission is missing. It is asked for again and again.
    Forbidden {
        /// The permission: `list` or `watch`.
        verb: &'static str,
        /// On what.
        kind: Kind,
        /// In which namespace, unless in all.
        namespace: Option<String>,
        /// What the server said.
        message: String,
    },
}

impl KindState {
    /// The same trouble as before began when that began.
    pub(super) fn troubled(&self, error: String) -> Self {
        match self {
            Self::Stale { since, .. } => Self::Stale { since: *since, error },
            _ => Self::Stale { since: Instant::now(), error },
        }
    }

    /// One word for it, for metrics and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Listing => "Listing",
            Self::Live => "Live",
            Self::Stale { .. } => "Stale",
            Self::Missing => "Missing",
            Self::Forbidden { .. } => "Forbidden",
        }
    }
}

/// Everything there is to know about the watch of one kind.
#[derive(Debug, Clone)]
pub struct KindReport {
    /// The kind.
    pub kind: Kind,
    /// Which of its objects are watched.
    pub scope: WatchScope,
    /// How the watch is doing.
    pub state: KindState,
    /// Whether everything in the scope has been listed, be it some time ago.
    pub synced: bool,
    /// How long ago the server was heard last, be it only to say that nothing changed.
    pub heard_ago: Option<Duration>,
    /// How many users share the watch.
    pub users: usize,
    /// How many objects are cached.
    pub objects: usize,
    /// The bytes of their text.
    pub json_bytes: usize,
    /// The bytes that all of it takes, at most.
    pub allocated_bytes: usize,
    /// Events that the watch has brought.
    pub events: u64,
    /// Lists that were completed, the first one included.
    pub lists: u64,
    /// Attempts to list or watch that failed.
    pub errors: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
}

/// What is counted while a watch runs.
#[derive(Debug)]
pub(super) struct Counts {
    started: Instant,
    /// Milliseconds after `started`, plus one; 0 for never.
    heard: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) lists: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) unreadable: AtomicU64,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            heard: AtomicU64::new(0),
            events: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        }
    }

    pub(super) fn hear(&self) {
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.heard.store(millis + 1, Ordering::Relaxed);
    }

    pub(super) fn heard_ago(&self) -> Option<Duration> {
        let millis = self.heard.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.started.elapsed().saturating_sub(Duration::from_millis(millis)))
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
