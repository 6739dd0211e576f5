//! An operator that is started and does not work: only its caches fill.

use crate::failure::Failure;
use crate::systems::System;
use mainstay::cache::{KindReport, KindState};
use mainstay::plan::Plan;
use mainstay::{Key, Kind, Operator, PlanError, Stepper};
use std::time::Duration;
use tokio::time::Instant;

/// How long caches may take to fill.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Starts the watches.
pub(super) fn start(operator: &Operator, system: &System) -> Result<Stepper, Failure> {
    operator.stepper().map_err(|error| Failure::new(error).context(format!("cannot plan {}", system.name)))
}

/// Waits until the controller of a kind can decide.
pub(super) async fn until_ready(operator: &Operator, system: &System, kind: &Kind) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let controllers = operator.controllers();
        let controller = controllers.iter().find(|controller| controller.parent == kind.to_string());
        if controller.is_some_and(|controller| controller.ready) {
            return Ok(());
        }
        let caches = operator.caches();
        if let Some(hopeless) = caches.iter().find_map(|report| hopeless(report, system)) {
            return Err(hopeless);
        }
        if Instant::now() > deadline {
            return Err(late(&caches, system));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Why it makes no sense to wait for a cache.
fn hopeless(report: &KindReport, system: &System) -> Option<Failure> {
    let (name, kind) = (system.name, &report.kind);
    match &report.state {
        KindState::Missing => Some(
            Failure::new(anyhow::anyhow!("the cluster does not have the kind {kind}"))
                .context(format!("cannot plan {name}"))
                .next(system.define()),
        ),
        KindState::Forbidden { verb, message, .. } => Some(
            Failure::new(anyhow::anyhow!("{message}"))
                .context(format!("cannot plan {name}: you may not {verb} {}", kind.plural()))
                .next(format!(
                    "mainstay rbac {name} prints what it takes; -n NAMESPACE needs it in one namespace only"
                )),
        ),
        _ => None,
    }
}

fn late(caches: &[KindReport], system: &System) -> Failure {
    let waiting = caches.iter().filter(|report| report.state != KindState::Live);
    let told: Vec<_> = waiting.map(|report| format!("{}: {:?}", report.kind, report.state)).collect();
    Failure::new(anyhow::anyhow!(told.join("\n")))
        .context(format!("cannot plan {}: its objects could not be read within {PATIENCE:?}", system.name))
        .next("mainstay check looks further")
}

/// Plans, once all that the handler asks for has been read.
pub(super) async fn plan(operator: &Operator, kind: &Kind, key: &Key) -> Result<Plan, PlanError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let plan = operator.plan(kind, key).await;
        let is_filling =
            |report: &KindReport| matches!(report.state, KindState::Starting | KindState::Listing);
        // What a handler asks for is watched from its first question on, and only then can it answer.
        let filling = matches!(plan, Err(PlanError::Handler(_))) && operator.caches().iter().any(is_filling);
        if !filling || Instant::now() > deadline {
            return plan;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
