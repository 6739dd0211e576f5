//! What is counted about streams, by their kind. `docs/streams.md` lists it.
//!
//! Everything follows from what statuses say when they are seen, not from what a decision is about to do: a decision can be made twice,
//! or only be asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use mainstay::Kind;
use mainstay::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::kinds::{Outcome, Phase, StreamCounts, StreamStatus};
use crate::shared::lock;

/// From a second to a month.
const SECONDS: [f64; 12] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0, 2_592_000.0];

/// See the [module](self). Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct StreamMetrics {
    streams: Family<ByPhase, Gauge>,
    restarts: Family<ByKind, Counter>,
    phase_seconds: Family<ByPhase, Histogram, fn() -> Histogram>,
    backfill_seconds: Family<ByKind, Histogram, fn() -> Histogram>,
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPhase {
    kind: Kind,
    phase: String,
}

/// What a stream's status said when it was last seen.
struct Seen {
    phase: Option<Phase>,
    since: Timestamp,
    restarts: u64,
    newest_run: u64,
}

impl Default for StreamMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        Self {
            streams: Family::default(),
            restarts: Family::default(),
            phase_seconds: Family::new_with_constructor(histogram),
            backfill_seconds: Family::new_with_constructor(histogram),
            seen: Arc::default(),
        }
    }
}

impl StreamMetrics {
    /// Has them served with those of the operator.
    pub(crate) fn register(&self, metrics: &Metrics) {
        metrics.register("mainstay_streams", "Streams, by phase", self.streams.clone());
        metrics.register(
            "mainstay_stream_restarts",
            "Runs of streams that were followed by another",
            self.restarts.clone(),
        );
        metrics.register(
            "mainstay_stream_phase_seconds",
            "Time that streams were in a phase, when they left it",
            self.phase_seconds.clone(),
        );
        metrics.register(
            "mainstay_stream_backfill_seconds",
            "Time that completed backfills took",
            self.backfill_seconds.clone(),
        );
    }

    /// So many streams of the kind are in each phase.
    pub(crate) fn counted(&self, kind: &Kind, streams: &StreamCounts) {
        for phase in Phase::ALL {
            let count = streams.by_phase.get(phase.as_str()).copied().unwrap_or_default();
            let labels = ByPhase { kind: kind.clone(), phase: phase.to_string() };
            self.streams.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// No class has the kind any more.
    pub(crate) fn forget_kind(&self, kind: &Kind) {
        for phase in Phase::ALL {
            self.streams.remove(&ByPhase { kind: kind.clone(), phase: phase.to_string() });
        }
    }

    /// A stream was seen with this status. The first time nothing is counted: who knows since when.
    pub(crate) fn saw(&self, kind: &Kind, uid: &str, status: &StreamStatus, now: Timestamp) {
        let newest_run = status.history.iter().map(|run| run.number).max().unwrap_or_default();
        let current = Seen { phase: status.phase, since: now, restarts: status.restarts, newest_run };
        let mut all = lock(&self.seen);
        let Some(seen) = all.get_mut(uid) else {
            all.insert(uid.to_owned(), current);
            return;
        };
        if let Some(restarts) = status.restarts.checked_sub(seen.restarts).filter(|restarts| *restarts > 0) {
            self.restarts.get_or_create(&ByKind { kind: kind.clone() }).inc_by(restarts);
        }
        for run in status.history.iter().filter(|run| run.number > seen.newest_run) {
            if run.kind == "Backfill" && run.outcome == Outcome::Completed {
                let took = seconds(run.started_at, run.ended_at);
                self.backfill_seconds.get_or_create(&ByKind { kind: kind.clone() }).observe(took);
            }
        }
        let since = if seen.phase == status.phase { seen.since } else { now };
        if let Some(left) = seen.phase.filter(|_| since == now && seen.phase != status.phase) {
            let labels = ByPhase { kind: kind.clone(), phase: left.to_string() };
            self.phase_seconds.get_or_create(&labels).observe(seconds(seen.since, now));
        }
        *seen = Seen { since, ..current };
    }

    /// A stream is gone.
    pub(crate) fn forget(&self, uid: &str) {
        lock(&self.seen).remove(uid);
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    Duration::try_from(to.duration_since(from)).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use mainstay::Scope;

    use super::*;
    use crate::kinds::PastRun;

    #[test]
    fn what_is_counted_follows_from_statuses_that_were_seen() {
        let metrics = StreamMetrics::default();
        let served = Metrics::new("streams", "");
        metrics.register(&served);
        let kind = Kind::new("example.com/v1", "Feed", "feeds", Scope::Namespaced);
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut status =
            StreamStatus { phase: Some(Phase::Backfilling), restarts: 7, ..StreamStatus::default() };
        metrics.saw(&kind, "uid", &status, at(0));
        status.phase = Some(Phase::Running);
        status.restarts = 9;
        status.history.push(PastRun {
            number: 1,
            kind: "Backfill".into(),
            job: "feed-1".into(),
            started_at: at(0),
            ended_at: at(40),
            outcome: Outcome::Completed,
            exit_code: None,
            reason: "Completed".into(),
        });
        metrics.saw(&kind, "uid", &status, at(100));
        // The same once more changes nothing.
        metrics.saw(&kind, "uid", &status, at(200));
        metrics.counted(&kind, &StreamCounts { total: 1, by_phase: [("Running".to_owned(), 1)].into() });
        let text = served.render().unwrap();
        for line in [
            r#"mainstay_streams{kind="Feed.example.com/v1",phase="Running"} 1"#,
            r#"mainstay_stream_restarts_total{kind="Feed.example.com/v1"} 2"#,
            r#"mainstay_stream_phase_seconds_sum{kind="Feed.example.com/v1",phase="Backfilling"} 100.0"#,
            r#"mainstay_stream_backfill_seconds_sum{kind="Feed.example.com/v1"} 40.0"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
