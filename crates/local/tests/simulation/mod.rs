//! Every controller in a world where everything goes wrong: each write, each read and each event of it once.

mod cron_job;
mod daemon_set;
mod deployment;
mod endpoints;
mod job;
mod node;
mod replica_set;
mod scheduler;
mod sets;
mod stateful_set;
mod storage;

use mainstay_local::controllers::{NAME, configure_only};
use mainstay_testkit::simulation::{Program, operator};

/// The controllers whose parents are of these kinds. What the others would watch is not in the way.
fn controllers_of(kinds: &'static [&'static str]) -> Program {
    operator(NAME, move |operator| configure_only(operator, |kind| kinds.contains(&kind.kind())))
}
