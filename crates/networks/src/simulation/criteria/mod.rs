//! What was measured beside what a network had to stand. Pure.

#[cfg(test)]
mod tests;

use crate::kinds::{Aggregation, Comparison, CriterionResult, CriterionSpec, Metric, NetworkSample, Verdict};
use crate::simulation::report::{PeerReport, Report};

/// All that was measured.
#[derive(Debug, Clone, Copy)]
pub struct Measures<'a> {
    /// What the load came to.
    pub report: &'a Report,
    /// What the network looked like meanwhile.
    pub samples: &'a [NetworkSample],
}

/// What was found for each criterion. Where nothing was measured it is not met.
pub fn judge(criteria: &[CriterionSpec], measures: Measures<'_>) -> Vec<CriterionResult> {
    criteria.iter().map(|criterion| judge_one(criterion, measures)).collect()
}

/// Whether all criteria are met. In any case a request must have been answered: load that only failed shows nothing.
pub fn verdict(results: &[CriterionResult], measures: Measures<'_>) -> Verdict {
    let stood = results.iter().all(|result| result.met) && measures.report.total.answered() > 0;
    if stood { Verdict::Passed } else { Verdict::Failed }
}

fn judge_one(criterion: &CriterionSpec, measures: Measures<'_>) -> CriterionResult {
    let aggregation = criterion.aggregation.unwrap_or(Aggregation::Mean);
    let (metric, sign, threshold) = (word(criterion.metric), word(criterion.comparison), criterion.threshold);
    let what = format!("{} of {metric}", word(aggregation));
    let (value, message) = match value(criterion.metric, aggregation, measures) {
        Ok(value) if compare(value, criterion.comparison, threshold) => {
            (Some(value), format!("{what} is {value}, which is {sign} {threshold}"))
        }
        Ok(value) => (Some(value), format!("{what} is {value}, which is not {sign} {threshold}")),
        Err(missing) => (None, format!("{what} cannot be told: {}", missing.as_str())),
    };
    CriterionResult {
        name: criterion.name.clone().unwrap_or_else(|| format!("{what} {sign} {threshold}")),
        met: value.is_some_and(|value| compare(value, criterion.comparison, threshold)),
        value,
        threshold,
        message,
    }
}

/// A word as users write it.
fn word(value: impl serde::Serialize) -> String {
    // Each of them is a unit variant, which serialises to a string.
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[expect(clippy::float_cmp, reason = "who asks for equality gets it; counts are whole numbers")]
fn compare(value: f64, comparison: Comparison, threshold: f64) -> bool {
    match comparison {
        Comparison::Less => value < threshold,
        Comparison::AtMost => value <= threshold,
        Comparison::Equal => value == threshold,
        Comparison::AtLeast => value >= threshold,
        Comparison::More => value > threshold,
    }
}

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// No peer reported anything.
    NoRequests,
    /// The network was never looked at.
    NoSamples,
    /// Peers have no order in time.
    NoOrder,
}

impl Missing {
    fn as_str(self) -> &'static str {
        match self {
            Self::NoRequests => "no request was answered",
            Self::NoSamples => "the network was not looked at while the load was there",
            Self::NoOrder => "what is measured for each peer has no last value",
        }
    }
}

/// What an aggregation makes of a metric.
///
/// # Errors
/// If nothing was measured.
pub fn value(metric: Metric, aggregation: Aggregation, measures: Measures<'_>) -> Result<f64, Missing> {
    let Measures { report, samples } = measures;
    let sampled = |of: fn(&NetworkSample) -> i32| {
        let values: Vec<f64> = samples.iter().map(|sample| f64::from(of(sample))).collect();
        aggregate(&values, aggregation).ok_or(Missing::NoSamples)
    };
    let of_peers = |of: &dyn Fn(&PeerReport) -> Option<f64>| {
        if aggregation == Aggregation::Last {
            return Err(Missing::NoOrder);
        }
        let values: Vec<f64> = report.peers.iter().filter_map(of).collect();
        aggregate(&values, aggregation).ok_or(Missing::NoRequests)
    };
    match metric {
        Metric::Requests => of_peers(&|peer| Some(float(peer.requests))),
        Metric::Failures => of_peers(&|peer| Some(float(peer.failed()))),
        Metric::FailureRatio => of_peers(&|peer| ratio(float(peer.failed()), float(peer.requests))),
        Metric::RequestsPerSecond => {
            of_peers(&|peer| ratio(float(peer.requests), float(peer.duration_milliseconds) / 1000.0))
        }
        Metric::LatencyMilliseconds => latency(report, aggregation),
        Metric::ReadyPeers => sampled(|sample| sample.ready_peers),
        Metric::MissingEdges => sampled(|sample| sample.missing_edges),
        Metric::Components => sampled(|sample| sample.components),
    }
}

/// Of all requests together, not of the peers' own means or percentiles.
fn latency(report: &Report, aggregation: Aggregation) -> Result<f64, Missing> {
    let all = &report.latencies;
    let found = match aggregation {
        Aggregation::Min => all.min(),
        Aggregation::Max => all.max(),
        Aggregation::Mean => all.mean(),
        Aggregation::Sum => all.mean().map(|mean| mean * float(all.count())),
        Aggregation::Last => return Err(Missing::NoOrder),
        Aggregation::P50 => all.percentile(50.0),
        Aggregation::P90 => all.percentile(90.0),
        Aggregation::P95 => all.percentile(95.0),
        Aggregation::P99 => all.percentile(99.0),
    };
    found.ok_or(Missing::NoRequests)
}

/// What an aggregation makes of values. Nothing of none.
pub fn aggregate(values: &[f64], aggregation: Aggregation) -> Option<f64> {
    let mut ascending = values.to_vec();
    ascending.sort_by(f64::total_cmp);
    let (min, max) = (*ascending.first()?, *ascending.last()?);
    let at = |percent: usize| {
        // The nearest rank: the least value that so many in a hundred do not exceed.
        let rank = (ascending.len() * percent).div_ceil(100).max(1);
        ascending.get(rank - 1).copied()
    };
    let sum: f64 = ascending.iter().sum();
    match aggregation {
        Aggregation::Min => Some(min),
        Aggregation::Max => Some(max),
        // Rounding does not bring it beyond them.
        Aggregation::Mean => Some((sum / float(ascending.len() as u64)).clamp(min, max)),
        Aggregation::Sum => Some(sum),
        Aggregation::Last => values.last().copied(),
        Aggregation::P50 => at(50),
        Aggregation::P90 => at(90),
        Aggregation::P95 => at(95),
        Aggregation::P99 => at(99),
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then_some(part / whole)
}

#[expect(clippy::cast_precision_loss, reason = "counts of one run are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}
