//! What the framework counts, in Prometheus' terms.
//!
//! - A caller says what happened ([`Metrics::sync_finished`]) and never sees a label.
//! - Labels are kinds, verbs, codes and words of the program itself, never the name of an object: the number of
//!   series does not grow with the number of objects.
//! - Numbers that somebody keeps anyway (queue depth, cached objects) are asked for when they are scraped
//!   ([`Metrics::observe`]), not maintained twice.
//! - The text is the same for the same numbers: series come in the order of their labels.
//!
//! `docs/metrics.md` lists all of them; a test compares it with what is here.

mod family;
mod reading;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use crate::Kind;
use family::Family;
pub use prometheus_client;
pub use reading::Reading;
use reading::Readings;

/// The content type of [`Metrics::render`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From a cached answer to a handler that waits for the network.
const SECONDS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// All metrics of one operator. Cheap to clone; clones count together.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: RwLock<Registry>,
    readings: Readings,
    syncs: Family<ByResult, Counter>,
    sync_duration: Family<ByKind, Seconds>,
    handler_duration: Family<ByKind, Seconds>,
    sync_errors: Family<ByReason, Counter>,
    queue_latency: Family<ByKind, Seconds>,
    api_requests: Family<ByCode, Counter>,
    api_request_duration: Family<ByVerb, Seconds>,
    writes: Family<ByStep, Counter>,
    deletions_withheld: Family<ByKind, Counter>,
    event_drops: Family<OnlyReason, Counter>,
}

impl Metrics {
    /// The metrics of an operator of that name and version, all at zero.
    pub fn new(operator: &str, version: &str) -> Self {
        let mut root = Registry::default();
        let registry = root.sub_registry_with_prefix("mainstay");
        let build = Info::new(vec![
            ("operator".to_owned(), operator.to_owned()),
            ("version".to_owned(), version.to_owned()),
            ("framework".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ]);
        registry.register("build", "The operator, its version and that of the framework; always 1", build);
        let readings = Readings::default();
        let r = &mut *registry;
        let inner = Inner {
            syncs: add(r, "syncs", "Syncs of parents, by how they ended"),
            sync_duration: add(
                r,
                "sync_duration_seconds",
                "Time of a sync: snapshot, handler, plan and writes",
            ),
            handler_duration: add(r, "handler_duration_seconds", "Time that the handler took of a sync"),
            sync_errors: add(r, "sync_errors", "Syncs that failed, by the class of the reason"),
            queue_latency: add(
                r,
                "queue_latency_seconds",
                "Time that a parent was due before its sync began",
            ),
            api_requests: add(r, "api_requests", "Requests to the API server; code `none` had no answer"),
            api_request_duration: add(
                r,
                "api_request_duration_seconds",
                "Time until the API server answered",
            ),
            writes: add(r, "writes", "Steps of plans that were executed, by the kind they changed"),
            deletions_withheld: add(r, "deletions_withheld", "Deletions that the budget held back"),
            event_drops: add(r, "event_drops", "Events that were not written, by reason"),
            readings: readings.clone(),
            registry: RwLock::default(),
        };
        registry.register_collector(Box::new(readings));
        Self(Arc::new(Inner { registry: RwLock::new(root), ..inner }))
    }

    /// A sync of a parent ended: `result` is a word such as `ok` or `error`.
    pub fn sync_finished(&self, parent: &Kind, result: &'static str, took: Duration) {
        self.0.syncs.with(ByResult { kind: parent.clone(), result }, Counter::inc);
        self.0.sync_duration.with(ByKind { kind: parent.clone() }, |seconds| seconds.observe(took));
    }

    /// A handler returned, whatever it returned.
    pub fn handler_finished(&self, parent: &Kind, took: Duration) {
        self.0.handler_duration.with(ByKind { kind: parent.clone() }, |seconds| seconds.observe(took));
    }

    /// A sync failed: `reason` is the class of the error, not its text.
    pub fn sync_failed(&self, parent: &Kind, reason: &'static str) {
        self.0.sync_errors.with(ByReason { kind: parent.clone(), reason }, Counter::inc);
    }

    /// A parent's sync began, `waited` after it was due.
    pub fn sync_started(&self, parent: &Kind, waited: Duration) {
        self.0.queue_latency.with(ByKind { kind: parent.clone() }, |seconds| seconds.observe(waited));
    }

    /// A request was answered with a status code, or with none when the connection failed.
    pub fn request_finished(&self, verb: &'static str, kind: &Kind, code: Option<u16>, took: Duration) {
        let labels = ByCode { verb, kind: kind.clone(), code: Code(code) };
        self.0.api_requests.with(labels, Counter::inc);
        let labels = ByVerb { verb, kind: kind.clone() };
        self.0.api_request_duration.with(labels, |seconds| seconds.observe(took));
    }

    /// A step of a plan was executed on an object of that kind.
    pub fn written(&self, kind: &Kind, step: &'static str) {
        self.0.writes.with(ByStep { kind: kind.clone(), step }, Counter::inc);
    }

    /// The budget held deletions of objects of that kind back.
    pub fn deletions_withheld(&self, kind: &Kind, count: u64) {
        self.0.deletions_withheld.with(ByKind { kind: kind.clone() }, |counter| counter.inc_by(count));
    }

    /// An event was not written.
    pub fn event_dropped(&self, reason: &'static str) {
        self.0.event_drops.with(OnlyReason { reason }, Counter::inc);
    }

    /// Asks `source` at every scrape. What several sources say of the same gauge and labels is added up.
    pub fn observe(&self, source: impl Fn(&mut Reading) + Send + Sync + 'static) {
        self.0.readings.add(Arc::new(source));
    }

    /// Adds an operator's own metrics, under their own names.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        let mut registry = self.0.registry.write().unwrap_or_else(PoisonError::into_inner);
        registry.register(name, help, metric);
    }

    /// All metrics as text, of the type [`CONTENT_TYPE`].
    pub fn render(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0.registry.read().unwrap_or_else(PoisonError::into_inner))?;
        Ok(text)
    }
}

fn add<S, M>(registry: &mut Registry, name: &str, help: &str) -> Family<S, M>
where
    Family<S, M>: Metric + Default + Clone,
{
    let family = Family::default();
    registry.register(name, help, Family::clone(&family));
    family
}

/// A histogram of durations.
#[derive(Debug, Clone)]
struct Seconds(Histogram);

impl Seconds {
    fn observe(&self, duration: Duration) {
        self.0.observe(duration.as_secs_f64());
    }
}

impl Default for Seconds {
    fn default() -> Self {
        Self(Histogram::new(SECONDS))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByKind {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByResult {
    kind: Kind,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByReason {
    kind: Kind,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OnlyReason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByStep {
    kind: Kind,
    step: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByVerb {
    verb: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct ByCode {
    verb: &'static str,
    kind: Kind,
    code: Code,
}

/// A status code, or none when there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Code(Option<u16>);

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        use fmt::Write as _;
        match self.0 {
            Some(code) => write!(encoder, "{code}"),
            None => encoder.write_str("none"),
        }
    }
}

impl EncodeLabelValue for Kind {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        use fmt::Write as _;
        write!(encoder, "{self}")
    }
}
