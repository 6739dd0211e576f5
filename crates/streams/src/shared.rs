//! What all controllers of the operator share: budgets and numbers. Nothing in it has to survive the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::metrics::StreamMetrics;
use crate::pace::Pace;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Shared {
    paces: Mutex<BTreeMap<String, Arc<Pace>>>,
    pub(crate) metrics: StreamMetrics,
}

impl Shared {
    /// The budgets of a class. They outlast a change of the class.
    pub(crate) fn pace(&self, class: &str) -> Arc<Pace> {
        lock(&self.paces).entry(class.to_owned()).or_default().clone()
    }

    /// A class is gone.
    pub(crate) fn forget_class(&self, class: &str) {
        lock(&self.paces).remove(class);
    }
}

/// A lock whose holder panicked holds consistent data here: every critical section is a single change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
