//! The locks of the commit path, in one place: a test compiles [`commit`](super::commit) a second time, with locks whose
//! scheduling it controls.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use std::sync::PoisonError;
use std::time::Duration;

/// Waits to be notified, at most for this time.
pub(super) fn wait<'a, T>(
    condition: &Condvar,
    _: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    time_max: Duration,
) -> MutexGuard<'a, T> {
    condition.wait_timeout(guard, time_max).unwrap_or_else(PoisonError::into_inner).0
}
