//! Kinds registered at run time; each object of them becomes a supervised Job.
//!
//! A data team installs its own kind, a [`StreamClass`](kinds::StreamClass) that names it, and templates of Jobs; then it applies one object per
//! stream. The operator keeps one Job running for each.
//!
//! ```text
//! StreamClass ─▶ class: is the kind there, whose is it? ─▶ a controller of that kind
//!                                                            │
//! stream ─▶ wish ─┐                                          ▼
//! Jobs, pods ─────┼─▶ lifecycle: phase, what shall be there ─▶ job: the Job as it is made ─▶ status
//! requests ───────┘
//! ```

mod backfill;
mod class;
pub mod config;
pub mod hashes;
pub mod job;
pub mod kinds;
pub mod lifecycle;
mod metrics;
mod orphans;
pub mod pace;
pub mod paths;
pub mod plan;
pub mod record;
mod shared;
mod stream;
pub mod wish;

use std::sync::Arc;
use std::time::Duration;

use mainstay::stability::LoopSettings;
use mainstay::{DeletionBudget, OperatorBuilder};

use crate::shared::Shared;

/// The operator's name in the cluster.
pub const NAME: &str = "streams";

/// All that the operator consists of. Controllers of streams come and go with their classes.
pub fn configure(operator: OperatorBuilder) -> OperatorBuilder {
    let shared = Arc::new(Shared::default());
    let metrics = shared.metrics.clone();
    operator
        // Deleting Jobs is the operator's daily work; how fast is the classes' affair.
        .deletion_budget(DeletionBudget { burst: u32::MAX, per_minute: u32::MAX })
        // A stream that completes is started again and again, as it should be. What is written more often than this is not for that.
        .loops(LoopSettings { writes_max: 100, window: Duration::from_mins(1), ..LoopSettings::default() })
        .metrics(move |served| metrics.register(served))
        .controller(class::controller(&shared))
        .controller(backfill::controller())
        .controller(orphans::controller())
}
