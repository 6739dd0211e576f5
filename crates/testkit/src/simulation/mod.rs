//! Simulation.

mod account;
mod ask;
mod campaign;
mod check;
mod clock;
mod compare;
mod deliveries;
mod external;
mod family;
mod fault;
mod life;
mod normal;
mod oracle;
mod panics;
mod program;
mod record;
mod report;
mod script;
mod sequence;
mod shrink;
mod stage;
mod state;
mod story;
mod trace;
mod user;
mod violation;
mod walk;
mod walking;
mod webhooks;
mod wire;
mod workloads;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use check::{Check, check};
pub use clock::WorldClock;
pub use external::{External, ExternalError};
pub use family::{Family, NoFamily};
pub use fault::{Fault, Faults, Mishap, NoFault, Point};
pub use program::{Program, Seat, operator, operator_at, program};
pub use report::{Failure, Part, Progress, Report, Row};
pub use script::Script;
pub use state::{MAIN, Place, State};
pub use trace::{Actor, Answer, Change, Entry, Fate, Trace, What};
pub use violation::Violation;
pub use workloads::workloads;

/// A lock whose holder panicked holds consistent data here: every critical section is a single change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
