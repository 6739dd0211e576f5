//! Gauges that are read when they are scraped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::ByKind;
use crate::Kind;

type Source = Arc<dyn Fn(&mut Reading) + Send + Sync>;

/// Whoever is asked at a scrape.
#[derive(Clone, Default)]
pub(super) struct Readings(Arc<RwLock<Vec<Source>>>);

impl Readings {
    pub(super) fn add(&self, source: Source) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(source);
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readings").finish_non_exhaustive()
    }
}

impl Collector for Readings {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // A source is not called with the lock held: it may add another one.
        let sources = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reading = Reading::default();
        for source in &sources {
            source(&mut reading);
        }
        reading.encode(encoder)
    }
}

/// The gauges of one scrape, filled in by the sources given to [`Metrics::observe`](super::Metrics::observe).
#[derive(Debug, Default)]
pub struct Reading {
    parents_failing: Gauge<ByKind>,
    queue_depth: Gauge<ByPriority>,
    queue_running: Gauge<ByKind>,
    cache_objects: Gauge<ByKind>,
    cache_bytes: Gauge<ByKind>,
    watch_errors: Gauge<ByKind>,
    watch_lists: Gauge<ByKind>,
    watch_lag: Gauge<ByKind>,
    loops: Gauge<ByKind>,
    lease_held: Gauge<ByShard>,
}

impl Reading {
    /// Parents of a kind whose last sync failed.
    pub fn parents_failing(&mut self, parent: &Kind, count: usize) {
        self.parents_failing.add(ByKind { kind: parent.clone() }, count);
    }

    /// Parents of a kind that wait for their turn with that priority.
    pub fn queue_depth(&mut self, parent: &Kind, priority: &'static str, count: usize) {
        self.queue_depth.add(ByPriority { kind: parent.clone(), priority }, count);
    }

    /// Parents of a kind that are in a sync now.
    pub fn queue_running(&mut self, parent: &Kind, count: usize) {
        self.queue_running.add(ByKind { kind: parent.clone() }, count);
    }

    /// Objects of a kind in the cache, and the bytes that they take there.
    pub fn cached(&mut self, kind: &Kind, objects: usize, bytes: usize) {
        self.cache_objects.add(ByKind { kind: kind.clone() }, objects);
        self.cache_bytes.add(ByKind { kind: kind.clone() }, bytes);
    }

    /// Attempts to list or watch a kind that failed so far, and lists that were completed.
    pub fn watched(&mut self, kind: &Kind, errors: u64, lists: u64) {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        self.watch_errors.add(ByKind { kind: kind.clone() }, count(errors));
        self.watch_lists.add(ByKind { kind: kind.clone() }, count(lists));
    }

    /// For how long nothing could be heard of a kind; zero while every change is told as it happens.
    pub fn watch_lag(&mut self, kind: &Kind, lag: Duration) {
        let seconds = usize::try_from(lag.as_secs()).unwrap_or(usize::MAX);
        self.watch_lag.add(ByKind { kind: kind.clone() }, seconds);
    }

    /// Parents of a kind whose syncs undo each other.
    pub fn loops(&mut self, parent: &Kind, count: usize) {
        self.loops.add(ByKind { kind: parent.clone() }, count);
    }

    /// Whether this replica holds the lease of a shard.
    pub fn lease_held(&mut self, shard: u32, held: bool) {
        self.lease_held.add(ByShard { shard }, usize::from(held));
    }

    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let e = &mut encoder;
        self.parents_failing.encode(e, "parents_failing", "Parents whose last sync failed.")?;
        self.queue_depth.encode(e, "queue_depth", "Parents that wait for their turn.")?;
        self.queue_running.encode(e, "queue_running", "Parents that are in a sync now.")?;
        self.cache_objects.encode(e, "cache_objects", "Objects in the cache.")?;
        self.cache_bytes.encode(e, "cache_bytes", "Bytes that cached objects take.")?;
        self.watch_errors.encode_counter(
            e,
            "watch_errors",
            "Attempts to list or watch the kind that failed.",
        )?;
        self.watch_lists.encode_counter(e, "watch_lists", "Lists of the kind, the first one included.")?;
        self.watch_lag.encode(
            e,
            "watch_lag_seconds",
            "For how long nothing could be heard of the kind; 0 while every change is told as it happens.",
        )?;
        self.loops.encode(e, "loops", "Parents whose syncs undo each other.")?;
        self.lease_held.encode(e, "lease_held", "1 while this replica holds the lease of the shard, else 0.")
    }
}

#[derive(Debug)]
struct Gauge<S>(BTreeMap<S, i64>);

impl<S> Default for Gauge<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Ord + EncodeLabelSet> Gauge<S> {
    fn add(&mut self, labels: S, count: usize) {
        let sum = self.0.entry(labels).or_default();
        *sum = sum.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Numbers that only grow, counted elsewhere.
    fn encode_counter(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        self.0.iter().try_for_each(|(labels, value)| {
            ConstCounter::new(u64::try_from(*value).unwrap_or(0)).encode(family.encode_family(labels)?)
        })
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        self.0
            .iter()
            .try_for_each(|(labels, value)| ConstGauge::new(*value).encode(family.encode_family(labels)?))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByPriority {
    kind: Kind,
    priority: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByShard {
    shard: u32,
}
