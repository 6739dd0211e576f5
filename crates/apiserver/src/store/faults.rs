//! A disk that fails on purpose, for tests.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// What the store asks of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Write,
    SetLength,
    Sync,
    SyncDirectory,
}

/// Decides which operations fail. The default lets all of them pass; clones share one plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Option<Arc<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    plan: Mutex<Plan>,
    /// Every operation needs it for a moment.
    gate: Mutex<()>,
}

/// Lets `before` operations pass, and fails the next `failing`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub before: u64,
    pub failing: u64,
    /// The only operation that is counted and fails; none: all are.
    pub only: Option<Operation>,
    /// The system's number of the error.
    pub errno: i32,
}

impl Faults {
    /// Called before each operation: the error if it is to fail.
    pub(super) fn strike(&self, operation: Operation) -> io::Result<()> {
        let Some(disk) = &self.0 else { return Ok(()) };
        drop(disk.gate.lock());
        let mut plan = disk.plan.lock().unwrap_or_else(PoisonError::into_inner);
        if plan.only.is_some_and(|only| only != operation) || plan.failing == 0 {
            return Ok(());
        }
        if plan.before > 0 {
            plan.before -= 1;
            return Ok(());
        }
        plan.failing -= 1;
        Err(io::Error::from_raw_os_error(plan.errno))
    }
}

#[cfg(test)]
impl Faults {
    /// Faults that [`Faults::arm`] can set.
    pub(super) fn some() -> Self {
        Faults(Some(Arc::default()))
    }

    /// From here on, this plan is followed.
    pub(super) fn arm(&self, plan: Plan) {
        if let Some(disk) = &self.0 {
            *disk.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        }
    }

    /// From here on, nothing fails.
    pub(super) fn disarm(&self) {
        self.arm(Plan::default());
    }

    /// What is left of the plan.
    pub(super) fn left(&self) -> Plan {
        let plan = self.0.as_ref().map(|disk| *disk.plan.lock().unwrap_or_else(PoisonError::into_inner));
        plan.unwrap_or_default()
    }

    /// Lets every operation wait until this is dropped.
    pub(super) fn hold(&self) -> Option<std::sync::MutexGuard<'_, ()>> {
        self.0.as_ref().map(|disk| disk.gate.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
