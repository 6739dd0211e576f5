//! The load's numbers by OTLP, as JSON over HTTP, to where `OTEL_EXPORTER_OTLP_ENDPOINT` says.
//!
//! Names and attributes are those that Prometheus sees. Whether anything arrives makes no difference to the run.

use std::convert::Infallible;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use super::Shared;
use super::metrics::{FAILURES, LATENCY, Name, Numbers, PREFIX, QUANTILES, REQUESTS, WORKERS};
use crate::fetch::{Body, Fetch};
use crate::runner::simulate::settings::Collector;

/// How often numbers are sent: often, for most runs are short.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long a collector may take, and how much of its answer is read.
const LIMITS: (Duration, usize) = (Duration::from_secs(5), 64 * 1024);
/// OTLP's word for counters that begin with the process.
const CUMULATIVE: i32 = 2;

/// Sends the numbers of a run.
pub(super) struct Export {
    collector: Collector,
    began: Timestamp,
    fetch: Fetch,
}

impl Export {
    pub(super) fn to(collector: Collector) -> Self {
        Self { collector, began: Timestamp::now(), fetch: Fetch::default() }
    }

    /// Sends them again and again. What goes wrong is told when it begins to.
    pub(super) async fn keep_sending(&self, shared: &Shared, tell: &impl Fn(&str)) -> Infallible {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_failed = false;
        loop {
            ticks.tick().await;
            let sent = self.send(shared).await;
            if let Err(why) = &sent
                && !has_failed
            {
                tell(why);
            }
            has_failed = sent.is_err();
        }
    }

    /// Sends them once.
    pub(super) async fn send(&self, shared: &Shared) -> Result<(), String> {
        let numbers = Numbers::of(&shared.run());
        let document = document(&numbers, &self.collector.resource, (self.began, Timestamp::now()));
        let url = format!("{}/v1/metrics", self.collector.endpoint.trim_end_matches('/'));
        let sent = self.fetch.ask(&Method::POST, &url, &Body::json(&document), LIMITS).await;
        sent.map(drop).map_err(|error| format!("numbers do not get to the collector at {url}: it {error}"))
    }
}

fn document(numbers: &Numbers, resource: &[(String, String)], (began, now): (Timestamp, Timestamp)) -> Value {
    let point = |attributes: &[(&str, String)], value: (&str, Value)| {
        json!({
            "attributes": attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>(),
            "startTimeUnixNano": began.as_nanosecond().to_string(),
            "timeUnixNano": now.as_nanosecond().to_string(),
            value.0: value.1,
        })
    };
    // 64-bit integers are strings in OTLP's JSON.
    let whole = |count: u64| ("asInt", json!(count.to_string()));
    let count = |count: usize| whole(u64::try_from(count).unwrap_or(u64::MAX));
    let failures = numbers.failures.iter();
    let failures = failures.map(|(kind, count)| point(&[("kind", kind.as_str().to_owned())], whole(*count)));
    let latencies = QUANTILES.iter().map(|quantile| {
        let value = ("asDouble", json!(numbers.latency(*quantile)));
        point(&[("quantile", quantile.to_string())], value)
    });
    let workers = numbers.workers.iter();
    let workers = workers.map(|(state, number)| point(&[("state", (*state).to_owned())], count(*number)));
    let metrics = [
        sum(REQUESTS, &[point(&[], whole(numbers.requests))]),
        sum(FAILURES, &failures.collect::<Vec<_>>()),
        gauge(LATENCY, "s", &latencies.collect::<Vec<_>>()),
        gauge(WORKERS, "1", &workers.collect::<Vec<_>>()),
    ];
    let resource: Vec<Value> = resource.iter().map(|(key, value)| attribute(key, value)).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": resource},
        "scopeMetrics": [{
            "scope": {"name": "mainstay-networks", "version": env!("CARGO_PKG_VERSION")},
            "metrics": metrics,
        }],
    }]})
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn sum(name: Name, points: &[Value]) -> Value {
    let points = json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true});
    json!({"name": format!("{PREFIX}_{}", name.0), "description": name.1, "unit": "1", "sum": points})
}

fn gauge(name: Name, unit: &str, points: &[Value]) -> Value {
    let points = json!({"dataPoints": points});
    json!({"name": format!("{PREFIX}_{}", name.0), "description": name.1, "unit": unit, "gauge": points})
}
