//! Every crash, every stale read: an operator in a simulated world, with everything that can go wrong, at every place at
//! which it can.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use mainstay::{Controller, Kind, SyncRequest, SyncResponse};
//! use mainstay_testkit::simulation::{self, Script};
//! use serde_json::json;
//!
//! // Every ConfigMap shall have a Secret of its name.
//! let pairs = simulation::operator("pairs", |operator| {
//!     operator.controller(Controller::of::<ConfigMap>().owns::<Secret>().sync(|request: &SyncRequest| {
//!         SyncResponse::new().with_child(json!({
//!             "apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name()},
//!         }))
//!     }))
//! });
//! let script = Script::new()
//!     .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}}))
//!     .delete(&Kind::of::<Secret>(), "paint");
//! simulation::check(pairs).script(script).every_crash_point().run();
//! ```
//!
//! A *world* has API servers, programs and a user who follows a [`Script`], all on one thread under virtual time. Nothing
//! reaches a server but one at a time, in an order that a seed decides, so the same seed gives the same [`Trace`], byte for byte.
//!
//! A *check* first runs the world without faults and notes each write, read and event of the program under test. Then it runs
//! the world again with each [`Mishap`] at each of these, leaving out places that come to the same; then with several at once,
//! from seeds; then, if asked, with every property of a spec changed. In the end of each run:
//!
//! - the state is that of the run without faults, but for uids, generated names, times and revisions;
//! - the program, started once more, changes nothing;
//! - nothing that the user made, or that holds data, was removed that is not removed without faults;
//! - what the author said must [always](Check::always) be true was, after every single change;
//! - nobody panicked, and there was an end to it.
//!
//! What is wrong is made as short as it gets and told as a story: what went wrong, who wrote what, which event was withheld,
//! and the code that does it again.
//!
//! ```text
//! check ─▶ campaign ─▶ world ─▶ oracle ─▶ shrink ─▶ story, report
//!           family      │ programs, user
//!           walk        ▼
//!                     wire ─▶ stage (sequence, faults) ─▶ API server ─▶ deliveries ─▶ programs
//!                                                            └─▶ record (state, trace, properties)
//! ```
//!
//! Any program can be put into a world that uses a `kube::Client`: operators written with `mainstay` ([`operator`]) or with
//! kube's `Controller` ([`program`]). `docs/simulation.md` has an example of a bug that was found, and what the faults are.
//!
//! What is absent: sockets, threads and the machine's clock. A program that needs them cannot be in a world.

mod account;
mod ask;
mod campaign;
mod check;
mod clock;
mod compare;
mod deliveries;
mod describe;
mod effort;
mod external;
mod family;
mod fault;
mod life;
mod normal;
mod oracle;
mod panics;
pub mod pods;
mod program;
mod property;
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
mod witness;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use check::{Check, check};
pub use clock::WorldClock;
pub use external::{External, ExternalError};
pub use family::{Family, NoFamily};
pub use fault::{Fault, Faults, Mishap, NoFault, Point};
pub use pods::pods;
pub use program::{Program, Seat, operator, operator_at, program};
pub use report::{Failure, Part, Progress, Report, Row};
pub use script::Script;
pub use state::{MAIN, Place, State};
pub use trace::{Actor, Answer, Change, Entry, Fate, Trace, What};
pub use violation::Violation;

/// A lock whose holder panicked holds consistent data here: every critical section is a single change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
