//! The load's numbers for Prometheus.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use tokio::time::Instant;

use super::state::Run;
use crate::simulation::report::{FailureKind, Latencies};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, &'static str)>;

/// Of all peers together: a peer's name would be a label with thousands of values.
pub(super) fn render(run: &Run) -> Result<String, fmt::Error> {
    let mut latencies = Latencies::default();
    let mut requests = 0_u64;
    let mut failures: BTreeMap<FailureKind, u64> = BTreeMap::new();
    for report in run.latest().values() {
        latencies.merge(&report.latencies);
        requests = requests.saturating_add(report.requests);
        for (kind, count) in &report.failures {
            *failures.entry(*kind).or_default() += count;
        }
    }
    let mut registry = Registry::with_prefix("mainstay_simulation");
    let all: Counter = Counter::default();
    all.inc_by(requests);
    registry.register("requests", "Requests to peers, failures included", all);
    let failed: Family<Labels, Counter> = Family::default();
    for (kind, count) in failures {
        failed.get_or_create(&vec![("kind", kind.as_str())]).inc_by(count);
    }
    registry.register("failures", "Requests to peers that failed", failed);
    let took: Family<Labels, Gauge<f64, AtomicU64>> = Family::default();
    for (quantile, percent) in [("0.5", 50.0), ("0.9", 90.0), ("0.95", 95.0), ("0.99", 99.0), ("1", 100.0)] {
        let seconds = latencies.percentile(percent).unwrap_or_default() / 1000.0;
        took.get_or_create(&vec![("quantile", quantile)]).set(seconds);
    }
    registry.register("latency_seconds", "How long answers took", took);
    let progress = run.progress(Instant::now());
    let workers: Family<Labels, Gauge> = Family::default();
    for (state, count) in [
        ("expected", progress.expected),
        ("registered", progress.registered),
        ("reported", progress.reported),
    ] {
        workers.get_or_create(&vec![("state", state)]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("workers", "Workers", workers);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}
