//! The load's numbers, of all peers together (a peer's name would be a label with thousands of values), and as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::state::Run;
use crate::simulation::report::{FailureKind, Latencies};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const PREFIX: &str = "mainstay_simulation";
pub(super) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 1.0];

/// A number's name and what it says.
pub(super) type Name = (&'static str, &'static str);

pub(super) const REQUESTS: Name = ("requests", "Requests to peers, failures included");
pub(super) const FAILURES: Name = ("failures", "Requests to peers that failed");
pub(super) const LATENCY: Name = ("latency_seconds", "How long answers took");
pub(super) const WORKERS: Name = ("workers", "Workers");

type Labels = Vec<(&'static str, String)>;

/// What is known of a run at one time.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) requests: u64,
    pub(super) failures: BTreeMap<FailureKind, u64>,
    pub(super) latencies: Latencies,
    /// By what they have done.
    pub(super) workers: [(&'static str, usize); 3],
}

impl Numbers {
    pub(super) fn of(run: &Run) -> Self {
        let progress = run.progress(Instant::now());
        let workers = [
            ("expected", progress.expected),
            ("registered", progress.registered),
            ("reported", progress.reported),
        ];
        let mut numbers = Self { workers, ..Self::default() };
        for report in run.latest().values() {
            numbers.latencies.merge(&report.latencies);
            numbers.requests = numbers.requests.saturating_add(report.requests);
            for (kind, count) in &report.failures {
                *numbers.failures.entry(*kind).or_default() += count;
            }
        }
        numbers
    }

    /// What so large a part of the answers took at most, in seconds.
    pub(super) fn latency(&self, quantile: f64) -> f64 {
        self.latencies.percentile(quantile * 100.0).unwrap_or_default() / 1000.0
    }

    /// As Prometheus scrapes them.
    pub(super) fn render(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix(PREFIX);
        let all: Counter = Counter::default();
        all.inc_by(self.requests);
        registry.register(REQUESTS.0, REQUESTS.1, all);
        let failed: Family<Labels, Counter> = Family::default();
        for (kind, count) in &self.failures {
            failed.get_or_create(&vec![("kind", kind.as_str().to_owned())]).inc_by(*count);
        }
        registry.register(FAILURES.0, FAILURES.1, failed);
        let took: Family<Labels, Gauge<f64, AtomicU64>> = Family::default();
        for quantile in QUANTILES {
            took.get_or_create(&vec![("quantile", quantile.to_string())]).set(self.latency(quantile));
        }
        registry.register(LATENCY.0, LATENCY.1, took);
        let workers: Family<Labels, Gauge> = Family::default();
        for (state, count) in self.workers {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            workers.get_or_create(&vec![("state", state.to_owned())]).set(count);
        }
        registry.register(WORKERS.0, WORKERS.1, workers);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}
