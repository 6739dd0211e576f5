//! How long requests took.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What takes longer is told as this long: an hour.
const MICROSECONDS_MAX: u64 = 3_600_000_000;
/// Times are told as exactly as this many digits can.
const DIGITS: u8 = 3;

/// How long requests took. As JSON: pairs of microseconds and how many took so long, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    #[expect(clippy::expect_used, reason = "the bounds are constants, and a test makes one")]
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, MICROSECONDS_MAX, DIGITS).expect("bounds that fit each other"))
    }
}

impl Latencies {
    /// Adds a request that took so long.
    pub fn record(&mut self, took: Duration) {
        self.record_many(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), 1);
    }

    fn record_many(&mut self, microseconds: u64, count: u64) {
        self.0.saturating_record_n(microseconds.clamp(1, MICROSECONDS_MAX), count);
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        other.pairs().for_each(|(microseconds, count)| self.record_many(microseconds, count));
    }

    /// Microseconds, and how many took so long.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What so many in a hundred do not exceed, in milliseconds. Nothing if there are none.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.some(|all| milliseconds(all.value_at_percentile(percent)))
    }

    /// The least, in milliseconds.
    pub fn min(&self) -> Option<f64> {
        self.some(|all| milliseconds(all.min()))
    }

    /// The most, in milliseconds.
    pub fn max(&self) -> Option<f64> {
        self.some(|all| milliseconds(all.max()))
    }

    /// The mean, in milliseconds. It is never beyond the least and the most, however it was rounded.
    pub fn mean(&self) -> Option<f64> {
        self.some(|all| (all.mean() / 1000.0).clamp(milliseconds(all.min()), milliseconds(all.max())))
    }

    fn some(&self, value: impl Fn(&Histogram<u64>) -> f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| value(&self.0))
    }

    /// The ones that people look at.
    pub fn percentiles(&self) -> Percentiles {
        let at = |percent| self.percentile(percent).unwrap_or_default();
        Percentiles {
            mean: self.mean().unwrap_or_default(),
            p50: at(50.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            max: self.max().unwrap_or_default(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an hour of microseconds is far below 2^52")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pairs())
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut latencies = Self::default();
        for (microseconds, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            latencies.record_many(microseconds, count);
        }
        Ok(latencies)
    }
}

/// How long requests took, in milliseconds; all 0 if there were none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Percentiles {
    /// The mean.
    pub mean: f64,
    /// What half of them did not exceed.
    pub p50: f64,
    /// What 90 in 100 did not exceed.
    pub p90: f64,
    /// What 95 in 100 did not exceed.
    pub p95: f64,
    /// What 99 in 100 did not exceed.
    pub p99: f64,
    /// The most.
    pub max: f64,
}
