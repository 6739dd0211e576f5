//! What a cluster makes of workloads, services and claims: one operator, a handler for each kind.
//!
//! Each folder or file is one controller: a pure function from a snapshot to what should exist. [`pods`] has what those that make
//! pods share, [`revisions`] what those that keep their former templates do.

mod cron_job;
mod daemon_set;
mod deployment;
mod endpoints;
mod job;
mod orphans;
mod pods;
mod replica_set;
mod revisions;
mod share;
mod stateful_set;
pub mod storage;

use mainstay::{DeletionBudget, OperatorBuilder};

/// The operator's name, and its field manager.
pub const NAME: &str = "mainstay-controllers";

/// Adds all controllers to an operator.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    let client = operator.client();
    // What is to go here is what somebody deleted or scaled down; nobody is served by its going slowly.
    operator
        .deletion_budget(DeletionBudget { burst: u32::MAX, per_minute: u32::MAX })
        .controller(deployment::controller())
        .controller(replica_set::controller())
        .controller(stateful_set::controller())
        .controller(daemon_set::controller())
        .controller(job::controller())
        .controller(orphans::controller())
        .controller(cron_job::controller())
        .controller(endpoints::controller())
        .controller(storage::claims())
        .controller(storage::volumes(client))
}
