//! What a Deployment says of itself: numbers, summed over its sets, and whether it gets on.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus};

use super::conditions::{self, Conditions};
use super::limits::Wish;
use super::sets::{self, Revisions};
use crate::controllers::pods;

/// The numbers of a status. Conditions are for [`conditions::told`].
pub(super) fn numbers(deployment: &Deployment, revisions: &Revisions) -> DeploymentStatus {
    let statuses = || revisions.all().filter_map(|set| set.status.as_ref());
    let sum = |count: &dyn Fn(&ReplicaSetStatus) -> Option<i32>| {
        statuses().filter_map(count).fold(0, i32::saturating_add)
    };
    let available = sum(&|status| status.available_replicas);
    let wanted = revisions.all().map(sets::size).fold(0, i32::saturating_add);
    let updated = revisions.new.as_ref().and_then(|new| new.status.as_ref()).map_or(0, |new| new.replicas);
    DeploymentStatus {
        replicas: pods::unless_zero(sum(&|status| Some(status.replicas))),
        updated_replicas: pods::unless_zero(updated),
        ready_replicas: pods::unless_zero(sum(&|status| status.ready_replicas)),
        available_replicas: pods::unless_zero(available),
        unavailable_replicas: pods::unless_zero(wanted.saturating_sub(available).max(0)),
        terminating_replicas: terminating(revisions),
        collision_count: deployment.status.as_ref().and_then(|status| status.collision_count),
        conditions: None,
        observed_generation: None,
    }
}

/// How many pods are going; unknown while a set does not say.
fn terminating(revisions: &Revisions) -> Option<i32> {
    let of = |set: &ReplicaSet| match &set.status {
        Some(status) if status.observed_generation.is_some() || status.terminating_replicas.is_some() => {
            status.terminating_replicas
        }
        // Nobody has looked after it yet, so it has had no pods.
        _ => Some(0),
    };
    revisions.all().map(of).try_fold(0, |sum: i32, of| Some(sum.saturating_add(of?)))
}

/// How far a rollout is, as two statuses can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    replicas: i32,
    updated: i32,
    ready: i32,
    available: i32,
}

impl Progress {
    pub(super) fn of(status: &DeploymentStatus) -> Self {
        Self {
            replicas: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
        }
    }

    /// Whether all pods are of the present template and available, and there are no others.
    pub(super) fn is_complete(self, wish: &Wish) -> bool {
        [self.replicas, self.updated, self.available] == [wish.replicas; 3]
    }

    /// Whether no pods of former templates are left.
    pub(super) fn is_updated(self) -> bool {
        self.replicas == self.updated
    }

    /// Whether something came or went that had to, since `before`.
    pub(super) fn is_further_than(self, before: Self) -> bool {
        let old = |progress: Self| progress.replicas.saturating_sub(progress.updated);
        self.updated > before.updated
            || old(self) < old(before)
            || self.ready > before.ready
            || self.available > before.available
    }

    pub(super) fn is_available(self, wish: &Wish) -> bool {
        self.available >= wish.least()
    }
}

/// Whether the rollout of what the Deployment is now was over at the last look.
pub(super) fn was_complete(deployment: &Deployment, wish: &Wish) -> bool {
    deployment.status.as_ref().is_some_and(|status| {
        status.observed_generation >= deployment.metadata.generation && Progress::of(status).is_complete(wish)
    })
}

/// The whole status.
pub(super) fn status(told: &conditions::Told<'_>, revisions: &Revisions) -> (DeploymentStatus, Conditions) {
    let mut status = numbers(told.deployment, revisions);
    let conditions = conditions::told(told, revisions, Progress::of(&status));
    status.conditions = Some(conditions.list());
    (status, conditions)
}
