//! What a cluster makes of workloads, services and claims: one operator, a handler for each kind.
//!
//! Each folder or file is one controller: a pure function from a snapshot to what should exist. `pods` has what those that make
//! pods share, `revisions` what those that keep their former templates do.

mod bounds;
mod cron_job;
mod daemon_set;
mod deployment;
mod endpoints;
pub(crate) mod ephemeral;
mod job;
mod names;
mod orphans;
mod pod;
pub(crate) mod pods;
mod replica_set;
mod revisions;
mod share;
mod stateful_set;
pub mod storage;
#[cfg(test)]
mod tests;

use self::names::Gone;
use mainstay::{DeletionBudget, Kind, OperatorBuilder};

/// The operator's name, and its field manager.
pub const NAME: &str = "mainstay-controllers";

/// Adds all controllers to an operator.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    configure_only(operator, |_| true)
}

/// Adds those controllers to an operator whose parents are of a kind that is wanted. The others are some other operator's, or
/// nobody's: what is simulated alone is simulated faster.
pub fn configure_only(operator: OperatorBuilder, wanted: impl Fn(&Kind) -> bool) -> OperatorBuilder {
    let gone = Gone::default();
    let all = [
        deployment::controller(),
        replica_set::controller(gone.clone()),
        stateful_set::controller(),
        daemon_set::controller(gone.clone()),
        job::controller(gone.clone()),
        pod::controller(gone),
        cron_job::controller(),
        endpoints::controller(),
        storage::claims(),
        storage::volumes(operator.client()),
    ];
    // What is to go here is what somebody deleted or scaled down; nobody is served by its going slowly.
    let operator = operator.deletion_budget(DeletionBudget { burst: u32::MAX, per_minute: u32::MAX });
    let chosen = all.into_iter().filter(|controller| wanted(controller.parent()));
    chosen.fold(operator, OperatorBuilder::controller)
}
