//! The series of one metric, in the order of their labels.
//!
//! The library's own family keeps them in a hash map, whose order differs from run to run. A scrape of ours is the
//! same text whenever the numbers are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::{MetricType, TypedMetric};

use super::Seconds;

/// One metric per set of labels, made when it is first counted.
#[derive(Debug)]
pub(super) struct Family<S, M>(Arc<RwLock<BTreeMap<S, M>>>);

impl<S, M> Clone for Family<S, M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S, M> Default for Family<S, M> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<S: Ord, M: Default> Family<S, M> {
    /// Counts in the series of these labels.
    pub(super) fn with<T>(&self, labels: S, count: impl FnOnce(&M) -> T) {
        if let Some(metric) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&labels) {
            count(metric);
            return;
        }
        count(self.0.write().unwrap_or_else(PoisonError::into_inner).entry(labels).or_default());
    }
}

/// A metric that a family can hold.
pub(super) trait Series: fmt::Debug + Send + Sync + 'static {
    const TYPE: MetricType;
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result;
}

impl Series for Counter {
    const TYPE: MetricType = <Counter as TypedMetric>::TYPE;
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        EncodeMetric::encode(self, encoder)
    }
}

impl Series for Seconds {
    const TYPE: MetricType = MetricType::Histogram;
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

impl<S: EncodeLabelSet + fmt::Debug, M: Series> EncodeMetric for Family<S, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let series = self.0.read().unwrap_or_else(PoisonError::into_inner);
        series.iter().try_for_each(|(labels, metric)| metric.encode(encoder.encode_family(labels)?))
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}
